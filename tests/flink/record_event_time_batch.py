"""Runs the programs of event_time/ with windows on Flink in batch mode, and writes their rows to event_time_batch.json.

A table is a file of JSON with all rows of its steps. In batch mode no row is late, so programs with late rows have more
rows than in event_time.json. Runs in an environment of its own, which has apache-flink and nothing of ours: ``make
flink-goldens``; with ``--missing`` it asks only for programs that have no answer yet.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any

from event_time import PROGRAMS, Program, timeline
from py4j.protocol import Py4JError
from pyflink.common import Configuration
from pyflink.table import EnvironmentSettings, TableEnvironment
from pyflink.util.exceptions import TableException
from record_event_time import root_cause
from recording import missing, recorded, replace

RECORDED = Path(__file__).parent / "event_time_batch.json"
WINDOWS = re.compile(r"\b(TUMBLE|HOP|CUMULATE|SESSION)\(TABLE")
PHYSICAL = re.compile(r"(\w+) (STRING|BIGINT|TIMESTAMP\(\d\)|TIMESTAMP_LTZ\(\d\))(?=,|$)")
FILES = "'connector' = 'filesystem', 'format' = 'json', 'json.timestamp-format.standard' = 'ISO-8601'"


def is_in_batch(program: Program) -> bool:
    """True for queries of windows of event time over tables that only grow."""
    changes = any("changelog" in body for body in program.tables.values())
    times = all("WATERMARK" in body for body in program.tables.values())
    return program.is_run and times and not changes and bool(WINDOWS.search(program.query))


def value(text: str, kind: str) -> Any:
    if text == "\\N":
        return None
    if kind == "BIGINT":
        return int(text)
    return text.removesuffix("Z").replace(" ", "T") + "Z" if "LTZ" in kind else text


def create_tables(tables: TableEnvironment, program: Program, folder: Path) -> None:
    steps = timeline(program.steps)
    for table, body in program.tables.items():
        columns = body.partition(" WITH ")[0]
        physical = PHYSICAL.findall(columns)
        rows = [
            {name: value(text, kind) for (name, kind), text in zip(physical, step[4:])}  # noqa: B905
            for step in steps
            if step[:2] == ["row", table]
        ]
        path = folder / f"{table}.json"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        tables.execute_sql(f"CREATE TABLE {table} ({columns}) WITH ({FILES}, 'path' = '{path}')")
    for view in program.views:
        tables.execute_sql(view)


def answer_to(program: Program) -> dict[str, Any]:
    configuration = Configuration()
    for key, text in {"table.local-time-zone": "UTC", **program.config, "parallelism.default": "1"}.items():
        configuration.set_string(key, text)
    settings = EnvironmentSettings.new_instance().in_batch_mode().with_configuration(configuration).build()
    tables = TableEnvironment.create(settings)
    with tempfile.TemporaryDirectory() as folder:
        try:
            create_tables(tables, program, Path(folder))
            result = tables.sql_query(program.query)
            schema = result._j_table.getResolvedSchema()
            kinds = [each.getDataType().getLogicalType().asSummaryString() for each in schema.getColumns()]
            with result.execute().collect() as rows:
                found = [[shown(each, kind) for each, kind in zip(row, kinds)] for row in rows]  # noqa: B905
        except (Py4JError, TableException) as error:
            return {"error": root_cause(error).splitlines()[0]}
    return {"rows": sorted(found, key=json.dumps)}


def shown(value: Any, kind: str) -> str | None:
    """A value as event_time.json has it: as Java writes it."""
    if isinstance(value, datetime):
        at = value.replace(tzinfo=None)
        text = at.strftime("%Y-%m-%dT%H:%M:%S" if at.second or at.microsecond else "%Y-%m-%dT%H:%M")
        return text + (f".{at.microsecond // 1000:03}" if at.microsecond else "") + ("Z" if "LTZ" in kind else "")
    return None if value is None else str(value)


def as_json(answers: dict[str, Any]) -> str:
    """Answers as JSON, a line for each row."""
    parts = []
    for name, answer in answers.items():
        if "error" in answer:
            parts.append(f"  {json.dumps(name)}: {json.dumps(answer)}")
        else:
            rows = ",\n".join(f"    {json.dumps(row, ensure_ascii=False)}" for row in answer["rows"])
            parts.append(f'  {json.dumps(name)}: {{"rows": [' + (f"\n{rows}\n  ]}}" if rows else "]}"))
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main() -> None:
    programs = [name for name, program in PROGRAMS.items() if is_in_batch(program)]
    wanted, answers = missing(recorded(RECORDED), programs)
    for number, name in enumerate(wanted, 1):
        answers[name] = answer_to(PROGRAMS[name])
        outcome = answers[name].get("error") or f"{len(answers[name]['rows'])} rows"
        print(f"{number} of {len(wanted)} programs: {name}: {outcome}", file=sys.stderr)
        replace(RECORDED, as_json({each: answers[each] for each in programs if each in answers}))


if __name__ == "__main__":
    main()
