"""Operators through which a processing time passes; above others, it is a plain time. EXPLAIN of Flink 2.3 says so."""

from __future__ import annotations

from collections import Counter

import pytest

from hintplan.planner.compile import compile_script
from hintplan.plans.errors import SqlError
from hintplan.plans.operators import Rank

FILES = "WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'json')"
TABLES = f"""
CREATE TABLE a (k BIGINT, v BIGINT, at TIMESTAMP(3), ts TIMESTAMP(3), pt AS PROCTIME(), WATERMARK FOR ts AS ts) {FILES};
CREATE TABLE b (k BIGINT, v BIGINT, at TIMESTAMP(3), ts TIMESTAMP(3), pt AS PROCTIME(), WATERMARK FOR ts AS ts) {FILES};
CREATE TABLE dim (k BIGINT, name STRING) WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:x.db', 'table-name' = 'dim');
CREATE TABLE r (k BIGINT) WITH ('connector' = 'print');
"""
HOUR = "INTERVAL '1' HOUR"
NUMBERED = "SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY {}) AS n FROM a"
PASSING = {
    "interval join": f"SELECT a.k, a.v, a.pt FROM a JOIN b ON a.k = b.k AND a.pt BETWEEN b.pt - {HOUR} AND b.pt",
    "by WHERE": f"SELECT a.k, a.v, a.pt FROM a, b WHERE a.k = b.k AND a.pt BETWEEN b.pt - {HOUR} AND b.pt",
    "by rowtime": f"SELECT a.k, a.v, a.pt FROM a JOIN b ON a.k = b.k AND a.ts BETWEEN b.ts - {HOUR} AND b.ts",
    "first row": f"SELECT k, v, pt FROM ({NUMBERED.format('pt')}) WHERE n = 1",
    "OVER by arrival": "SELECT k, v, pt, SUM(v) OVER (PARTITION BY k ORDER BY pt) AS s FROM a",
    "OVER by rowtime": "SELECT k, v, pt, SUM(v) OVER (PARTITION BY k ORDER BY ts) AS s FROM a",
    "UNION ALL": "SELECT k, v, pt FROM a UNION ALL SELECT k, v, pt FROM b",
    "call above a join": "SELECT a.k, a.v, PROCTIME() AS pt FROM a JOIN b ON a.k = b.k",
}
MATERIALIZING = {
    "regular join": "SELECT a.k, a.v, a.pt FROM a JOIN b ON a.k = b.k",
    "plain times": f"SELECT a.k, a.v, a.pt FROM a JOIN b ON a.k = b.k AND a.at BETWEEN b.at - {HOUR} AND b.at",
    "EXISTS": "SELECT k, v, pt FROM a WHERE EXISTS (SELECT * FROM b WHERE a.k = b.k)",
    "GROUP BY": "SELECT DISTINCT k, v, pt FROM a",
}


def operators(view: str, query: str) -> list[str]:
    """The operators that a query over ``view`` adds to it."""
    tables = f"{TABLES}CREATE VIEW q AS {view};"
    below, whole = (
        [o.op for o in compile_script(f"{tables}INSERT INTO r {text};", file="job").plan.operators]
        for text in ("SELECT k FROM q", query)
    )
    return list((Counter(whole) - Counter(below)).elements())


LAST = "SELECT k FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY pt DESC) AS rn FROM q) WHERE rn = 1"
WINDOWS = f"SELECT k FROM TABLE(TUMBLE(TABLE q, DESCRIPTOR(pt), {HOUR})) GROUP BY k, window_start, window_end"
BOUNDS = f"SELECT q.k FROM q JOIN b ON q.k = b.k AND q.pt BETWEEN b.pt - {HOUR} AND b.pt"


@pytest.mark.parametrize("view", PASSING)
def test_a_processing_time_passes_operators_that_do_not_materialize_it(view: str) -> None:
    assert "deduplicate" in operators(PASSING[view], LAST)
    assert "window-aggregate" in operators(PASSING[view], WINDOWS)
    assert "interval-join" in operators(PASSING[view], BOUNDS)


@pytest.mark.parametrize("view", MATERIALIZING)
def test_a_processing_time_is_a_plain_time_above_operators_that_materialize_it(view: str) -> None:
    assert "rank" in operators(MATERIALIZING[view], LAST)
    with pytest.raises(SqlError, match=r"TUMBLE needs a rowtime.*, but 'pt' is (none|neither): it ") as caught:
        operators(MATERIALIZING[view], WINDOWS)
    assert ("PROCTIME() in a query above the join" in str(caught.value)) == (view != "GROUP BY")
    assert "interval-join" not in operators(MATERIALIZING[view], BOUNDS)


def test_of_rows_that_were_joined_in_one_batch_the_last_one_is_the_latest() -> None:
    script = f"{TABLES}CREATE VIEW q AS {MATERIALIZING['regular join']};INSERT INTO r {LAST};"
    (rank,) = (each for each in compile_script(script, file="job").plan.operators if isinstance(each, Rank))
    assert ([key.column for key in rank.order], rank.arrival) == (["pt"], "last")


@pytest.mark.parametrize("view", [*PASSING, "regular join", "EXISTS"])
def test_a_lookup_takes_any_processing_time(view: str) -> None:
    text = {**PASSING, **MATERIALIZING}[view]
    query = "SELECT q.k FROM q LEFT JOIN dim FOR SYSTEM_TIME AS OF q.pt AS d ON q.k = d.k"
    assert "lookup-join" in operators(text, query)
