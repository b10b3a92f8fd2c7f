"""A plan in several partitions, whose number changes, leaves the rows that it leaves in one."""

from __future__ import annotations

import random

import pytest

from hintplan.planner.compile import compile_sql
from tests.runtime.partitioned import Partitioned
from tests.runtime.pipeline import Pipeline

SQL = """CREATE TABLE s (k STRING, v BIGINT) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = 'x');
CREATE TABLE r (k STRING, n BIGINT, t BIGINT, m BIGINT) WITH ('connector' = 'print');
INSERT INTO r SELECT k, COUNT(*), SUM(v), MAX(v) FROM s GROUP BY k;"""


@pytest.mark.parametrize("ways", [(1,), (2,), (5,), (1, 5, 2), (5, 1), (2, 2, 7)])
def test_the_number_of_partitions_changes_nothing(ways: tuple[int, ...]) -> None:
    plan, dice = compile_sql(SQL), random.Random(3)
    one, several = Pipeline(plan), Partitioned(plan, ways[0], tasks=len(ways) - 1)
    for number in range(12):
        rows = [(dice.choice("abcdefghijklm"), dice.randrange(100)) for _ in range(7)]
        several = several.rescaled(ways[number % len(ways)])
        one.batch({"s": rows})
        several.batch({"s": rows})
        assert several.result == one.result
    if max(ways) > 1:
        assert {len(parts) for parts in several.parts.values()} == {ways[11 % len(ways)]}
