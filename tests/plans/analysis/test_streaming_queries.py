"""Sinks that share what keeps state are one query of a stream; its name stays apart from those of its sinks."""

from __future__ import annotations

import pytest

import hintplan
from hintplan.plans.analysis.streaming_queries import Query, queries, tops
from hintplan.plans.model.plan import Plan

TABLES = "".join(
    f"CREATE TABLE {name} (k BIGINT, v BIGINT) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '{name}');"
    for name in "abc"
) + "".join(f"CREATE TABLE {name} (k BIGINT, v BIGINT) WITH ('connector' = 'blackhole');" for name in ("r", "s", "t"))
SUMS = "SELECT k, SUM(v) FROM {} GROUP BY k"


def compiled(**inserts: str) -> Plan:
    return hintplan.compile_sql(TABLES + "".join(f"INSERT INTO {name} {query};" for name, query in inserts.items()))


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
            {"r": "SELECT k, v FROM a", "s": "SELECT v, k FROM a WHERE v > 1"},
            [("scan_a", ["sink_r", "sink_s"])],
            [["scan_a"]],
        ),
        (
            {"r": "SELECT k, v FROM a", "s": SUMS.format("a")},
            [("sink_r", ["sink_r"]), ("sink_s", ["sink_s"])],
            [["sink_r"], ["sink_s"]],
        ),
        (
            {"r": SUMS.format("a"), "s": f"SELECT n, COUNT(*) FROM ({SUMS.format('a')}) AS x (k, n) GROUP BY n"},
            [("aggregate_a", ["sink_r", "sink_s"])],
            [["aggregate_a", "aggregate_x"]],
        ),
        (  # r and t have nothing in common but s
            {
                "r": SUMS.format("a"),
                "t": SUMS.format("b"),
                "s": f"{SUMS.format('a')} UNION ALL {SUMS.format('b')}",
            },
            [("aggregate_b", ["sink_r", "sink_t", "sink_s"])],
            [["aggregate_a", "aggregate_b", "union_a_b"]],
        ),
        (
            {
                "r": SUMS.format("a"),
                "s": SUMS.format("c"),
                "t": f"SELECT n, COUNT(*) FROM ({SUMS.format('a')}) AS x (k, n) GROUP BY n",
            },
            [("aggregate_a", ["sink_r", "sink_t"]), ("sink_s", ["sink_s"])],
            [["aggregate_a", "aggregate_x"], ["sink_s"]],
        ),
    ],
    ids=[
        "one",
        "apart",
        "below one operator",
        "below one scan",
        "of one table, with and without state",
        "an aggregate, and one above it",
        "by way of another",
        "some",
    ],
)
def test_sinks_that_share_more_than_a_table_are_one_query(
    inserts: dict[str, str], expected: list[tuple[str, list[str]]], read: list[list[str]]
) -> None:
    plan = compiled(**inserts)
    found = queries(plan)
    assert [(query.id, list(query.sinks)) for query in found] == expected
    assert [list(tops(plan, query)) for query in found] == read


def test_a_name_that_is_taken_gets_a_number() -> None:
    plan = compiled(r=SUMS.format("a"), s=f"{SUMS.format('a')} HAVING SUM(v) > 3")
    assert queries(plan, taken=["aggregate_a"]) == (Query(id="aggregate_a_2", sinks=("sink_r", "sink_s")),)
