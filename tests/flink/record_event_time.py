"""Runs the programs of event_time/ on Flink, and writes after which row each row of output came to event_time.json.

The rows of all tables come one after the other on one timeline, from the connector in java/script/Script.java.
``pipeline.auto-watermark-interval`` is 0, so Flink sends a watermark after each row that moves it. The sink notes the
step of the timeline with every row; the number of steps stands for the end of the input, where Flink sends the last
watermark. Runs in an environment of its own, which has apache-flink and nothing of ours, and needs ``javac`` of a JDK
17: ``make flink-goldens``; with ``--missing`` it asks only for programs that have no answer yet.

SCRIPT_PACE is the pause after a row in milliseconds. If Flink needs longer than the pause to put out a row, the row
counts for the next step. event_time.json was recorded with 120.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyflink
from event_time import PROGRAMS, Program, timeline
from py4j.protocol import Py4JError
from pyflink.common import Configuration
from pyflink.java_gateway import get_gateway
from pyflink.table import EnvironmentSettings, Table, TableEnvironment
from pyflink.util.exceptions import TableException
from recording import missing, recorded, replace

HERE = Path(__file__).parent
RECORDED = HERE / "event_time.json"
SOURCE = HERE / "java" / "script" / "Script.java"
SERVICES = {
    "org.apache.flink.table.factories.Factory": "script.Script$Factory",
    "org.apache.flink.metrics.reporter.MetricReporterFactory": "script.Script$Reporter",
}
CONFIG = {
    "parallelism.default": "1",
    "pipeline.auto-watermark-interval": "0 ms",
    "execution.buffer-timeout.interval": "0 ms",
    "restart-strategy.type": "none",
    "table.local-time-zone": "UTC",
    "metrics.reporters": "script",
    "metrics.reporter.script.factory.class": "script.Script$Reporter",
    "metrics.reporter.script.interval": "1 h",
}
NOT_OF_INTEREST = {
    *("description", "outputType", "inputProperties", "scanTableSource", "dynamicTableSink", "projection"),
}
"""Fields of the nodes of a compiled plan that are not recorded."""


def build_connector() -> None:
    """Put the connector into Flink's own folder, the only one that it loads reporters of metrics from."""
    jars = Path(pyflink.__file__).parent / "lib"
    jar = jars / "script-connector.jar"
    if jar.exists() and jar.stat().st_mtime > SOURCE.stat().st_mtime:
        return
    with tempfile.TemporaryDirectory() as folder:
        path = ":".join(str(each) for each in jars.glob("flink-*.jar"))
        subprocess.run(["javac", "-nowarn", "-cp", path, "-d", folder, str(SOURCE)], check=True)
        services = Path(folder) / "META-INF" / "services"
        services.mkdir(parents=True)
        for interface, implementation in SERVICES.items():
            (services / interface).write_text(f"{implementation}\n", encoding="utf-8")
        subprocess.run(["jar", "cf", str(jar), "-C", folder, "."], check=True)


def environment(program: Program) -> TableEnvironment:
    configuration = Configuration()
    parallelism = {} if program.parallelism is None else {"parallelism.default": str(program.parallelism)}
    for key, text in {**CONFIG, **program.config, **parallelism}.items():
        configuration.set_string(key, text)
    settings = EnvironmentSettings.new_instance().in_streaming_mode().with_configuration(configuration).build()
    return TableEnvironment.create(settings)


def create_tables(tables: TableEnvironment, program: Program, path: Path) -> None:
    for table, body in program.tables.items():
        columns, _, more = body.partition(" WITH ")
        options = f"'connector' = 'script', 'script' = '{path}'{', ' + more if more else ''}"
        tables.execute_sql(f"CREATE TABLE {table} ({columns}) WITH ({options})")
    for view in program.views:
        tables.execute_sql(view)


def columns_of(table: Table) -> tuple[dict[str, str], dict[str, str]]:
    """The types of columns by name: as a table declares them, and as Flink shows them, with time attributes."""
    schema = table._j_table.getResolvedSchema()
    types = {each.getName(): each.getDataType().getLogicalType() for each in schema.getColumns()}
    declared = {name: kind.copy(True).asSerializableString() for name, kind in types.items()}
    return declared, {name: kind.asSummaryString() for name, kind in types.items()}


def create_sink(tables: TableEnvironment, program: Program, path: Path, columns: dict[str, str]) -> None:
    key = program.sink_key
    fields = [f"`{column}` {kind}{' NOT NULL' if column in key else ''}" for column, kind in columns.items()]
    fields += [f"PRIMARY KEY ({', '.join(key)}) NOT ENFORCED"] if key else []
    options = f"'connector' = 'script', 'script' = '{path}', 'changelog' = '{'upsert' if key else 'I'}'"
    tables.execute_sql(f"CREATE TABLE sink1 ({', '.join(fields)}) WITH ({options})")


def insert_of(program: Program, declared: dict[str, str], shown: dict[str, str]) -> str:
    """The statement that is run. A sink takes one rowtime only: of several, each is cast to a plain timestamp."""
    query = program.query
    times = [column for column, kind in shown.items() if "*ROWTIME*" in kind]
    if len(times) > 1:
        items = (f"CAST(`{c}` AS {k}) AS `{c}`" if c in times else f"`{c}`" for c, k in declared.items())
        query = f"SELECT {', '.join(items)} FROM ({query})"
    conflict = "" if program.on_conflict is None else f" ON CONFLICT DO {program.on_conflict}"
    return f"INSERT INTO sink1 {query}{conflict}"


def plan_of(tables: TableEnvironment, insert: str) -> list[dict[str, Any]]:
    """The nodes of Flink's compiled plan: their types, states, windows and times."""
    plan = json.loads(tables.compile_plan_sql(insert).as_json_string())
    return [{key: v for key, v in node.items() if key not in NOT_OF_INTEREST} for node in plan["nodes"]]


def root_cause(error: Exception) -> str:
    """The class and message of the exception of Flink that caused ``error``."""
    java = getattr(error, "java_exception", None)
    while java is not None and java.getCause() is not None:
        java = java.getCause()
    if java is not None:
        return f"{java.getClass().getSimpleName()}: {(java.getMessage() or '').strip()}"[:600]
    causes = [line for line in str(error).splitlines() if line.startswith("Caused by")]
    return (causes[-1] if causes else str(error))[:600]


def answer_to(program: Program) -> dict[str, Any]:
    fields = {"tables": dict(program.tables), "views": list(program.views), "query": program.query}
    sink = {"key": list(program.sink_key), "mode": "upsert"} if program.sink_key else None
    fields |= {"config": dict(program.config), "sink": sink, "parallelism": program.parallelism}
    answer: dict[str, Any] = {key: value for key, value in fields.items() if value}
    steps = timeline(program.steps) if program.is_run else []
    answer["steps"] = [" ".join(step) for step in steps]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "script"
        path.write_text("".join("\t".join(step) + "\n" for step in steps), encoding="utf-8")
        try:
            run(program, path, answer)
        except (Py4JError, TableException) as error:
            answer["error"] = root_cause(error)
        answer["late"] = late_rows()
        answer["output"] = output(Path(f"{path}.out"))
    return answer


def run(program: Program, path: Path, answer: dict[str, Any]) -> None:
    """Compile and run a program, and note in ``answer`` what Flink makes of it, up to where it fails."""
    tables = environment(program)
    create_tables(tables, program, path)
    declared, shown = columns_of(tables.sql_query(program.query))
    create_sink(tables, program, path, declared)
    insert = insert_of(program, declared, shown)
    answer["columns"] = [f"{column} {kind}" for column, kind in shown.items()]
    if program.with_plan or not program.is_run:
        plan = plan_of(tables, insert)
        answer["nodes"] = [node["type"] for node in plan]
        if program.with_plan:
            answer["plan"] = plan
    if program.with_explain:
        answer["explain"] = tables.explain_sql(insert).split("== Optimized Execution Plan ==")[1].strip()
    tables.execute_sql(insert).wait()  # also without rows: some programs Flink refuses when it starts them


def output(path: Path) -> list[list[Any]]:
    """The rows of the sink: step, kind and values."""
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        _, _, step, _, kind, *values = line.split("\t")
        rows.append([int(step), kind, *(None if each == "\\N" else each for each in values)])
    return rows


def late_rows() -> dict[str, int]:
    """The number of late rows by operator, of the program that ran last."""
    result: dict[str, int] = {}
    for line in get_gateway().jvm.script.Script.late().splitlines():
        operator, count = line.split("\t")
        operator = re.sub(r"\[\d+\]", "", operator)
        result[operator] = result.get(operator, 0) + int(count)
    return result


def as_json(answers: dict[str, Any]) -> str:
    """Answers as JSON, a line for each field and for each row of output."""
    parts = []
    for name, answer in answers.items():
        fields = [
            f"    {json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}" for k, v in answer.items() if k != "output"
        ]
        rows = ",\n".join(f"      {json.dumps(row, ensure_ascii=False)}" for row in answer["output"])
        fields.append('    "output": [' + (f"\n{rows}\n    ]" if rows else "]"))
        parts.append(f"  {json.dumps(name)}: {{\n" + ",\n".join(fields) + "\n  }")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main() -> None:
    build_connector()
    wanted, answers = missing(recorded(RECORDED), PROGRAMS)
    for number, name in enumerate(wanted, 1):
        answers[name] = answer_to(PROGRAMS[name])
        outcome = answers[name].get("error") or f"{len(answers[name]['output'])} rows"
        print(f"{number} of {len(wanted)} programs: {name}: {outcome}", file=sys.stderr)
        replace(RECORDED, as_json({each: answers[each] for each in PROGRAMS if each in answers}))


if __name__ == "__main__":
    main()
