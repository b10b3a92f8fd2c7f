"""Programs leave the rows that Flink recorded for them, however their input is cut, by way of a legal changelog.

Results are compared after folding the changelog, for Flink's order of events within a batch is not ours. The states of
programs with hints have the TTLs of Flink's compiled plan.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from hintplan.planner.compile import compile_sql
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Aggregate, ChangelogNormalize, Stateful
from tests.flink.programs import (
    CONFIGURED_TTL,
    DOCUMENTS,
    HINTED,
    NULL_FOR_MINUS_ONE,
    NULL_FOR_ZERO,
    PROGRAMS,
    TABLES,
    UPSERTED,
    WATERMARKED,
    WITHOUT_ROW_OF_NONE,
)
from tests.flink.values import plain, typed
from tests.runtime.pipeline import Pipeline

RECORDED: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "programs.json").read_text(encoding="utf-8"))
ALL = PROGRAMS | WITHOUT_ROW_OF_NONE | NULL_FOR_MINUS_ONE | NULL_FOR_ZERO | HINTED
FILES = "'connector' = 'filesystem', 'format' = 'json', 'path' = 'x'"


def plan_of(name: str, config: dict[str, str] | None = None, *, changelogs: bool = True) -> Plan:
    return compiled(*ALL[name], config, changelogs=changelogs)


def compiled(
    columns: str,
    query: str,
    config: dict[str, str] | None = None,
    *,
    changelogs: bool = True,
    functions: dict[str, type | str] | None = None,
) -> Plan:
    """The plan of a query over the tables of the programs."""
    tables = []
    for table, (declared, rows) in TABLES.items():
        fields = ", ".join(f"{column} {kind}" for column, kind in declared.items())
        changelog = changelogs and any(kind != "+I" for kind, *_ in rows)
        options = FILES + (", 'source.changelog' = 'true'" if changelog else "")
        if table in UPSERTED:
            fields += f", PRIMARY KEY ({', '.join(UPSERTED[table])}) NOT ENFORCED"
            options = FILES + ", 'source.changelog' = 'upsert'"
        if table in WATERMARKED:
            # Flink had read all rows before its first watermark, so none was late.
            fields += f", WATERMARK FOR {WATERMARKED[table]} AS {WATERMARKED[table]} - INTERVAL '99' DAY"
        tables.append(f"CREATE TABLE {table} ({fields}) WITH ({options});")
    sink = f"CREATE TABLE result ({columns}) WITH ('connector' = 'print');"
    return compile_sql(f"{''.join(tables)}{sink}INSERT INTO result {query};", config, functions=functions)


def pieces(count: int) -> list[dict[str, list[tuple]]]:
    """The rows of all tables, cut into ``count`` batches, each table's in their order."""
    batches: list[dict[str, list[tuple]]] = [{} for _ in range(count)]
    for table, (declared, rows) in TABLES.items():
        changelog = any(kind != "+I" for kind, *_ in rows)
        for index, (kind, *values) in enumerate(rows):
            row = tuple(typed(v, t) for v, t in zip(values, declared.values(), strict=True))
            place = batches[index * count // len(rows)].setdefault(table, [])
            place.append((kind, *row) if changelog else row)
    return batches


def rows_of(rows: list[list[Any]], columns: str) -> Counter[tuple]:
    """Rows to compare; doubles up to what the order of additions decides."""
    doubles = ["DOUBLE" in column for column in columns.split(", ") if " " in column]
    return Counter(
        tuple(f"{float(v):.10g}" if d and v is not None else v for v, d in zip(row, doubles, strict=True))
        for row in rows
    )


def test_there_is_an_answer_for_each_program_and_none_else() -> None:
    assert RECORDED.keys() == (ALL | DOCUMENTS).keys()
    assert len(ALL) >= 120


@cache
def plain_plan(name: str) -> Plan:
    return plan_of(name)


@pytest.mark.sampled
@pytest.mark.part(of=2)
@pytest.mark.parametrize("count", [1, 3, 17])
@pytest.mark.parametrize("name", ALL)
def test_a_program_leaves_the_rows_that_flink_left(name: str, count: int) -> None:
    pipeline = Pipeline(plain_plan(name))
    for batch in pieces(count):
        pipeline.batch(batch)
    pipeline.drain()
    result = [[plain(value) for value in row] for row in pipeline.result.elements()]
    wanted = RECORDED[name]["rows"]
    if name in NULL_FOR_MINUS_ONE:
        assert "-1.0" in [value for row in wanted for value in row]
        wanted = [[None if value == "-1.0" else value for value in row] for row in wanted]
    if name in WITHOUT_ROW_OF_NONE:
        fewer, wanted = wanted, RECORDED[f"left join {name}"]["rows"]
        assert 0 < len(fewer) < len(wanted)
    if name in NULL_FOR_ZERO:
        assert [None] in [row[-1:] for row in wanted]
        wanted = [[*row[:-1], row[-1] or 0] for row in wanted]
    assert rows_of(result, ALL[name][0]) == rows_of(wanted, ALL[name][0])
    assert_legal(pipeline)


def assert_legal(pipeline: Pipeline) -> None:
    """Nothing is taken back that is not there, and the two halves of an update stand together."""
    kept: Counter[tuple] = Counter()
    for kind, row in pipeline.events:
        kept[row] += 1 if kind in ("+I", "+U") else -1
        assert kept[row] >= 0, f"{kind} of {row}, which is not there"
    last = pipeline.plan.operators[-2]
    if isinstance(last, Aggregate | ChangelogNormalize):
        width = len(last.keys if isinstance(last, Aggregate) else last.key)
        for (kind, row), (after, other) in pairwise([*pipeline.events, ("+I", ())]):
            if kind == "-U":
                assert (after, other[:width]) == ("+U", row[:width]), "an update's -U is followed by its +U"


@pytest.mark.parametrize("name", HINTED)
def test_states_have_the_ttls_of_flinks_compiled_plan(name: str) -> None:
    plan = plan_of(name, {"table.exec.state.ttl": CONFIGURED_TTL}, changelogs=False)
    found = [{s.name: s.ttl for s in o.state} for o in plan.operators if isinstance(o, Stateful)]
    assert sorted(map(sorted_items, found)) == sorted(map(sorted_items, RECORDED[name]["states"]))


def sorted_items(state: dict[str, str]) -> list[tuple[str, str]]:
    return sorted(state.items())
