"""A plan in several partitions, whose number changes, leaves the rows that it leaves in one, whatever the clock is."""

from __future__ import annotations

import random

import pytest

from hintplan.planner.compile import compile_sql
from tests.runtime.partitioned import Partitioned
from tests.runtime.pipeline import Pipeline

SQL = """CREATE TABLE s (k STRING, v BIGINT) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = 'x');
CREATE TABLE u (k STRING, v BIGINT) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = 'y');
CREATE TABLE r ({}) WITH ('connector' = 'print');
INSERT INTO r {};"""
NUMBERED = "SELECT k, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY {}) AS n FROM s) WHERE n <= {}"
KV, KVW = "k STRING, v BIGINT", "k STRING, v BIGINT, w BIGINT"
QUERIES = {
    "aggregate": ("k STRING, n BIGINT, t BIGINT, m BIGINT", "SELECT k, COUNT(*), SUM(v), MAX(v) FROM s GROUP BY k"),
    "distinct": ("k STRING, n BIGINT", "SELECT k, COUNT(DISTINCT v) FROM s GROUP BY k"),
    "aggregate of changes": (
        "n BIGINT, t BIGINT, m BIGINT",
        "SELECT n, SUM(m), MIN(m) FROM (SELECT k, COUNT(*) AS n, MAX(v) AS m FROM s GROUP BY k) GROUP BY n",
    ),
    "inner join": (KVW, "SELECT s.k, s.v, u.v FROM s JOIN u ON s.k = u.k"),
    "left join": (KVW, "SELECT s.k, s.v, u.v FROM s LEFT JOIN u ON s.k = u.k AND s.v < u.v"),
    "full join": (KVW, "SELECT s.k, s.v, u.v FROM s FULL JOIN u ON s.k = u.k AND s.v < u.v"),
    "semi join": (KV, "SELECT k, v FROM s WHERE EXISTS (SELECT * FROM u WHERE s.k = u.k AND s.v < u.v)"),
    "anti join": (KV, "SELECT k, v FROM s WHERE NOT EXISTS (SELECT * FROM u WHERE s.k = u.k AND s.v < u.v)"),
    "first rows": (KV, NUMBERED.format("v", 1)),
    "top": (KV, NUMBERED.format("v DESC", 3)),
    "over": (KVW, "SELECT k, v, SUM(v) OVER (PARTITION BY k ORDER BY v) FROM s"),
    "distinct rows": (KV, "SELECT DISTINCT k, v FROM s"),
}
CLOCKS = {"goes on": (1, 2, 3, 5, 8, 13), "is set back": (9, 5, 5, 7, 1, 8, 2), "stands still": (4,)}
"""The times of batches, in turn."""


@pytest.mark.sampled
@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("ways", [(1,), (2,), (5,), (1, 5, 2), (5, 1), (2, 2, 7)])
def test_the_number_of_partitions_changes_nothing(ways: tuple[int, ...], query: str, clock: str) -> None:
    plan, dice = compile_sql(SQL.format(*QUERIES[query])), random.Random(3)
    one, several = Pipeline(plan), Partitioned(plan, ways[0], tasks=len(ways) - 1)
    for number in range(12):
        rows = {
            table: [(dice.choice("abcdefghijklm"), dice.randrange(100)) for _ in range(7)]
            for table in plan.tables
            if table != "r"
        }
        now = CLOCKS[clock][number % len(CLOCKS[clock])]
        several = several.rescaled(ways[number % len(ways)])
        one.batch(rows, now)
        several.batch(rows, now)
        assert several.result == one.result
    if max(ways) > 1:
        assert {len(parts) for parts in several.parts.values()} == {ways[11 % len(ways)]}
