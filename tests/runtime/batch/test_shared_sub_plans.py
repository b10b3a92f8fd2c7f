"""What is said of operators that lead to several sinks."""

from __future__ import annotations

import doctest
from dataclasses import replace

import planner
from plans.analysis import sub_plans as sharing
from plans.analysis.streaming_queries import queries, single_queries
from plans.operators import Sink
from runtime.run.execute import _repeated

SCRIPT = """
CREATE TABLE o (id BIGINT, k BIGINT) WITH ('connector' = 'datagen');
CREATE TABLE c (k BIGINT, n STRING) WITH ('connector' = 'datagen');
CREATE TABLE a (n STRING, cnt BIGINT) WITH ('connector' = 'print');
INSERT INTO a SELECT n, COUNT(id) FROM (SELECT o.id, c.n FROM o JOIN c ON o.k = c.k) AS t GROUP BY n;
"""


def test_examples_in_the_docstring() -> None:
    assert doctest.testmod(sharing).failed == 0


def test_the_operator_nearest_to_the_sinks_is_named_and_not_what_is_below_it() -> None:
    plan = planner.compile_sql(SCRIPT, name="p")
    assert sharing.shared_operators(plan) == {}
    top = plan.operator("sink_a").inputs[0]
    twice = replace(plan, operators=(*plan.operators, Sink(id="sink_b", inputs=(top,), table="a")))
    assert sharing.shared_operators(twice) == {top: ("sink_a", "sink_b")}
    assert _repeated(twice, single_queries(twice)) == [
        f"{top} runs once in the query of each of 2 sinks (sink_a, sink_b), with state of its own in each"
    ]
    assert _repeated(twice, queries(twice)) == [], "both are one query"
    both = replace(twice, operators=(*twice.operators, Sink(id="sink_j", inputs=("join_o_c",), table="a")))
    assert sharing.shared_operators(both) == {
        "join_o_c": ("sink_a", "sink_b", "sink_j"),
        top: ("sink_a", "sink_b"),
    }
    together = (*queries(twice), *single_queries(both, ["sink_j"]))
    assert _repeated(both, together) == [
        "join_o_c runs once in the query of each of 2 sinks (sink_a and sink_b, sink_j), with state of its own in each"
    ]
