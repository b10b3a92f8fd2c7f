"""A stream takes a window function if Flink has planned it; a refusal says if Flink runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hintplan.planner.compile import compile_sql
from hintplan.plans.errors import SqlError
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import OverAggregate

RECORDED: dict[str, str | None] = json.loads(
    Path(__file__).with_name("over_in_streams.json").read_text(encoding="utf-8")
)
TABLES = """CREATE TABLE t (id BIGINT, k BIGINT, v BIGINT, s STRING, ts TIMESTAMP(3), pt AS PROCTIME(),
 WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'filesystem', 'path' = 't', 'format' = 'json');
CREATE TABLE r (a BIGINT, b DOUBLE) WITH ('connector' = 'filesystem', 'path' = 'r', 'format' = 'json',
 'sink.changelog' = 'true');
"""
WINDOWS = [line for line in RECORDED if not line.startswith("first rows")]
TAKEN = [line for line in WINDOWS if RECORDED[line] is None]
TIMES = {"ORDER BY ts": "rowtime", "ORDER BY pt": "arrival"}


def refusal(query: str) -> str:
    with pytest.raises(SqlError) as caught:
        compile_sql(f"{TABLES}INSERT INTO r {query};")
    (found,) = caught.value.diagnostics
    assert found.hint
    assert found.line == 5
    return found.message


def order_of(window: str) -> str:
    return next((order for words, order in TIMES.items() if words in window), "column")


@pytest.mark.parametrize("window", [line for line in WINDOWS if RECORDED[line] is not None])
def test_a_stream_refuses_what_flink_refuses(window: str) -> None:
    said = refusal(f"SELECT id, {window} FROM t")
    assert "not supported in a stream, by Flink neither" in said, RECORDED[window]


@pytest.mark.parametrize("window", TAKEN)
def test_a_stream_takes_what_flink_plans(window: str) -> None:
    order = order_of(window)
    over = over_of(compile_sql(f"{TABLES}INSERT INTO r SELECT id, {window} FROM t;"))
    assert (over.time, len(over.order)) == {"rowtime": ("ts", 0), "arrival": (None, 0), "column": (None, 1)}[order]
    assert over.changelog == (("+I", "-U", "+U") if order == "column" else ("+I",))


@pytest.mark.parametrize("function", ["RANK()", "DENSE_RANK()"])
def test_first_rows_by_a_rank_are_a_filter_though_flink_takes_none(function: str) -> None:
    assert "on streaming table is not supported" in (RECORDED[f"first rows by {function}"] or "")
    ranked = f"SELECT *, {function} OVER (PARTITION BY k ORDER BY ts) AS n FROM t"
    plan = compile_sql(f"{TABLES}INSERT INTO r SELECT id, v FROM ({ranked}) WHERE n <= 3;")
    assert over_of(plan).time == "ts"


def over_of(plan: Plan) -> OverAggregate:
    (over,) = (operator for operator in plan.operators if isinstance(operator, OverAggregate))
    return over
