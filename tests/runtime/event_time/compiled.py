"""Recorded programs as plans of ours, and their steps as batches of a pipeline.

The connector of the recorder becomes files, and its changelogs become ``source.changelog``. Time passes by PACE after
each row, as it did in Flink, and by as much as a program sleeps.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

from hintplan.planner.compile import compile_sql
from hintplan.plans.errors import Diagnostic
from hintplan.plans.model.plan import Plan
from tests.flink.event_time import PROGRAMS
from tests.runtime.event_time.recorded import RECORDED, Step, Steps, batches_of, steps_of
from tests.runtime.event_time.times import milliseconds, text
from tests.runtime.partitioned import Partitioned
from tests.runtime.pipeline import Pipeline

PACE = 120
"""The milliseconds from a row to the next."""
WAKING = 100
"""The milliseconds from a batch without rows to the next, while a program sleeps."""
CHANGELOGS = {"all": "true", "upsert": "upsert"}
PRINTED = "'connector' = 'print'"
FILES = "'connector' = 'filesystem', 'format' = 'json', 'path' = 'x'"
KEYED = "'connector' = 'jdbc', 'url' = 'jdbc:sqlite:x.db', 'table-name' = 't'"
_TO_TIMESTAMP = "TRY_CAST(substring(CAST(TRY_CAST(t AS TIMESTAMP_NTZ) AS STRING), 1, 23) AS TIMESTAMP_NTZ)"
COMPUTED: dict[str, Callable[[dict], Any]] = {
    _TO_TIMESTAMP: lambda row: datetime.fromisoformat(row["t"]),
    "CAST(v AS STRING)": lambda row: str(row["v"]),
    "CAST(shiftright(shiftleft(timestampdiff(SECOND, window_start, window_end), 32), 32) AS INT)": lambda row: (
        (row["window_end"] - row["window_start"]).seconds
    ),
    "upper(k)": lambda row: row["k"].upper(),
}
"""Expressions of programs that only Spark computes."""
OPTION = re.compile(r"'([^']+)' = '([^']+)'")


def script_of(name: str) -> str:
    """The SQL of a program, with tables on files and a sink that prints."""
    program = RECORDED[name]
    statements = [f"SET '{key}' = '{value}'" for key, value in program.get("config", {}).items()]
    for table, body in program["tables"].items():
        columns, _, options = body.partition(" WITH ")
        statements.append(f"CREATE TABLE {table} ({columns}) WITH ({FILES}{''.join(_options(options))})")
    statements += program.get("views", ())
    if "columns" in program:
        columns = [column.partition(" NOT NULL")[0].partition(" *")[0] for column in program["columns"]]
        key = program.get("sink", {}).get("key", ())
        columns += [f"PRIMARY KEY ({', '.join(key)}) NOT ENFORCED"] if key else []
        conflict = PROGRAMS[name].on_conflict
        statements.append(f"CREATE TABLE sink1 ({', '.join(columns)}) WITH ({KEYED if key else PRINTED})")
        statements.append(f"INSERT INTO sink1 {program['query']}{f' ON CONFLICT DO {conflict}' if conflict else ''}")
    else:
        statements.append("CREATE TABLE sink1 (x BIGINT) WITH ('connector' = 'print')")
        statements.append(f"INSERT INTO sink1 SELECT COUNT(*) FROM ({program['query']})")
    return ";\n".join(statements) + ";\n"


def _options(options: str) -> Iterator[str]:
    for key, value in OPTION.findall(options):
        if key == "changelog":
            yield f", 'source.changelog' = '{CHANGELOGS[value]}'"
        elif key != "push-down":
            yield f", '{key}' = '{value}'"


@cache
def plan_of(name: str) -> Plan:
    """The plan of a program; SqlError if the compiler refuses it."""
    return compile_sql(script_of(name))


def compile_with_warnings(name: str) -> list[Diagnostic]:
    """Compile a program that the compiler takes; return what it warns of."""
    warnings: list[Diagnostic] = []
    compile_sql(script_of(name), on_warning=warnings.append)
    return warnings


class Input(NamedTuple):
    """The rows of a batch by table and split, its time in ms, and the tables that have ended."""

    rows: dict[str, list[tuple]]
    now: int
    ended: tuple[str, ...]


def inputs_of(name: str, plan: Plan, cut: Collection[int] | None = None) -> Iterator[tuple[int, list[Input]]]:
    """The batches of a program, with the last step of each; a pause is several batches without rows."""
    steps, now = list(steps_of(name)), 0
    for numbers in batches_of(len(steps), cut):
        rows: dict[str, list[tuple]] = defaultdict(list)
        ended, until = [], 0
        for step in (steps[number] for number in numbers):
            if step.table is not None:
                rows[_split(name, step)].append(_row(plan, step))
                now += PACE
            elif step.kind == "sleep":
                until = max(until, now) + int(str(step.values[0]))
            elif step.kind == "align":
                period, offset = (int(str(value)) for value in step.values)
                until = (max(until, now) - offset) // period * period + period + offset
            else:
                assert step.kind == "end", step
                ended.append(str(step.values[0]))
        batches = [Input(dict(rows), now, tuple(ended))]
        while now < until:
            now = min(now + WAKING, until)
            batches.append(Input({}, now, ()))
        yield numbers[-1], batches


def _split(name: str, step: Step) -> str:
    is_split = "parallelism" in RECORDED[name]
    return f"{step.table}@{step.subtask}" if is_split else str(step.table)


def _row(plan: Plan, step: Step) -> tuple:
    table = plan.tables[str(step.table)]
    types = [column.type for column in table.columns][: len(step.values)]
    values = [_typed(value, kind) for value, kind in zip(step.values, types, strict=True)]
    return (step.kind, *values) if "source.changelog" in table.options else tuple(values)


def _typed(word: str | None, kind: str) -> Any:
    if word is None:
        return None
    if kind.startswith("TIMESTAMP"):
        return datetime.fromisoformat(word.removesuffix("Z"))
    return int(word) if kind == "BIGINT" else word


def run(name: str, pipeline: Pipeline, cut: Collection[int] | None = None, *, woken: bool = False) -> Steps:
    """Run a program to the end of its input; the rows that were put out, by step, as the recording writes them.

    If the pipeline is ``woken``, batches without rows run only at the times that its operators ask for.
    """
    result: Steps = defaultdict(Counter)
    now = 0
    for step, batches in inputs_of(name, pipeline.plan, cut):
        for batch in batches:
            now = batch.now
            if woken:
                wake(pipeline, batch.now)
            if batch.rows or batch.ended or not woken:
                pipeline.batch(batch.rows, batch.now, ended=batch.ended)
        _collect(pipeline, result, name, step)
    pipeline.drain(now)
    _collect(pipeline, result, name, len(RECORDED[name]["steps"]))
    return {step: rows for step, rows in result.items() if rows}


def wake(pipeline: Pipeline, until: int) -> None:
    """Run the batches without rows that the operators of ``pipeline`` ask for up to a time."""
    while dues := [due for of_operator in pipeline.dues.values() for due in of_operator if due <= until]:
        passed = min(dues)
        pipeline.batch({}, passed)
        assert passed < min((due for of_operator in pipeline.dues.values() for due in of_operator), default=until + 1)


def run_rescaled(
    name: str, cut: Collection[int] | None, partitions: Collection[int], *, tasks: int = 0
) -> tuple[Steps, Partitioned]:
    """Run a program as :func:`run`, with a restart in the next number of ``partitions`` before each batch."""
    result: Steps = defaultdict(Counter)
    ways = list(partitions)
    pipeline = Partitioned(plan_of(name), ways[0], tasks=tasks, computed=COMPUTED)
    for number, (step, batches) in enumerate(inputs_of(name, pipeline.plan, cut)):
        pipeline = pipeline.rescaled(ways[number % len(ways)])
        for batch in batches:
            pipeline.batch(batch.rows, batch.now, ended=batch.ended)
        _collect(pipeline, result, name, step)
    pipeline = pipeline.rescaled(ways[-1])
    pipeline.drain(batches[-1].now)
    _collect(pipeline, result, name, len(RECORDED[name]["steps"]))
    return {step: rows for step, rows in result.items() if rows}, pipeline


def _collect(pipeline: Pipeline, into: Steps, name: str, step: int) -> None:
    types = [column.split(" ", 1)[1] for column in RECORDED[name]["columns"]]
    for kind, row in pipeline.events:
        into[step][kind, tuple(_shown(value, of) for value, of in zip(row, types, strict=True))] += 1
    pipeline.events.clear()


def _shown(value: Any, kind: str) -> str | None:
    if isinstance(value, datetime):
        return text(milliseconds(value.replace(tzinfo=None).isoformat())) + ("Z" if "LTZ" in kind else "")
    return None if value is None else str(value)


def left_by(steps: Steps, key: int = 0) -> Counter:
    """The multiset of rows that all steps leave; with ``key``, rows replace each other by as many leading columns."""
    result: Counter = Counter()
    by_key: dict[tuple, tuple] = {}
    for _, rows in sorted(steps.items()):
        for (kind, row), count in rows.items():
            result[row] += count if kind in ("+I", "+U") else -count
            by_key[row[:key]] = row
    return Counter(by_key.values()) if key else +result
