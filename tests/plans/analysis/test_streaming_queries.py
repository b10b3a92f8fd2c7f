"""Sinks that have anything in common are one query of a stream; its name stays apart from those of its sinks."""

from __future__ import annotations

import pytest

import planner
from plans.analysis.streaming_queries import Query, queries, tops
from plans.model.plan import Plan

TABLES = "".join(
    f"CREATE TABLE {name} (k BIGINT, v BIGINT) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '{name}');"
    for name in "abc"
) + "".join(f"CREATE TABLE {name} (k BIGINT, v BIGINT) WITH ('connector' = 'blackhole');" for name in ("r", "s", "t"))
SUMS = "SELECT k, SUM(v) FROM {} GROUP BY k"


def compiled(**inserts: str) -> Plan:
    return planner.compile_sql(TABLES + "".join(f"INSERT INTO {name} {query};" for name, query in inserts.items()))


@pytest.mark.parametrize(
    ("inserts", "expected", "read"),
    [
        ({"r": SUMS.format("a")}, [("sink_r", ["sink_r"])], [["sink_r"]]),
        (
            {"r": SUMS.format("a"), "s": SUMS.format("b")},
            [("sink_r", ["sink_r"]), ("sink_s", ["sink_s"])],
            [["sink_r"], ["sink_s"]],
        ),
        (
            {"r": SUMS.format("a"), "s": f"{SUMS.format('a')} HAVING SUM(v) > 3"},
            [("aggregate_a", ["sink_r", "sink_s"])],
            [["aggregate_a"]],
        ),
        (
            {"r": "SELECT k, v FROM a", "s": SUMS.format("a")},
            [("scan_a", ["sink_r", "sink_s"])],
            [["scan_a", "aggregate_a"]],
        ),
        (  # r and t have nothing in common but s
            {
                "r": SUMS.format("a"),
                "t": SUMS.format("b"),
                "s": "SELECT k, v FROM a UNION ALL SELECT k, v FROM b",
            },
            [("scan_b", ["sink_r", "sink_t", "sink_s"])],
            [["aggregate_a", "aggregate_b", "union_a_b"]],
        ),
        (
            {"r": SUMS.format("a"), "s": SUMS.format("c"), "t": "SELECT k, v FROM a"},
            [("scan_a", ["sink_r", "sink_t"]), ("sink_s", ["sink_s"])],
            [["aggregate_a", "scan_a"], ["sink_s"]],
        ),
    ],
    ids=["one", "apart", "below one operator", "of one source", "by way of another", "some"],
)
def test_sinks_with_anything_in_common_are_one_query(
    inserts: dict[str, str], expected: list[tuple[str, list[str]]], read: list[list[str]]
) -> None:
    plan = compiled(**inserts)
    found = queries(plan)
    assert [(query.id, list(query.sinks)) for query in found] == expected
    assert [list(tops(plan, query)) for query in found] == read


def test_a_name_that_is_taken_gets_a_number() -> None:
    plan = compiled(r="SELECT k, v FROM a", s=SUMS.format("a"))
    assert queries(plan, taken=["scan_a"]) == (Query(id="scan_a_2", sinks=("sink_r", "sink_s")),)
