"""An over-aggregate of a stream: its states, its texts, and what is wrong in a plan that is edited by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hintplan.planner.compile import compile_sql
from hintplan.plans.analysis.validate import plan_problems
from hintplan.plans.declarations.computations import SortKey
from hintplan.plans.edit.edit import set_value
from hintplan.plans.errors import PlanError
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import OverAggregate
from hintplan.plans.operators.over_aggregate import Frame

TABLES = """CREATE TABLE t (k BIGINT, v BIGINT, s STRING, ts TIMESTAMP(3), pt AS PROCTIME(),
 WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'filesystem', 'path' = 't', 'format' = 'json');
CREATE TABLE r (a BIGINT, b BIGINT) WITH ('connector' = 'print');
"""
RANGE = "RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW"
ROWS = "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW"
BY_V = (SortKey(column="v", direction="asc", nulls="first"),)


def compiled(window: str, call: str = "SUM(v)") -> Plan:
    return compile_sql(f"{TABLES}INSERT INTO r SELECT k, {call} OVER (PARTITION BY k ORDER BY {window}) FROM t;")


def over_of(plan: Plan) -> OverAggregate:
    (over,) = (operator for operator in plan.operators if isinstance(operator, OverAggregate))
    return over


def edited(plan: Plan, **fields: Any) -> list[str]:
    """The problems of the plan with an over-aggregate that is edited by hand, without the digest's."""
    over = replace(over_of(plan), **fields)
    operators = tuple(over if operator.id == over.id else operator for operator in plan.operators)
    return [str(problem) for problem in plan_problems(replace(plan, operators=operators))]


@pytest.mark.parametrize(
    ("window", "states"),
    [
        ("ts", {"waitingState": "until the watermark passes its time", "overState": "never"}),
        (f"ts {ROWS}", {"waitingState": "until the watermark passes its time", "overState": "never"}),
        (f"ts {RANGE}", {"waitingState": "until the watermark passes its time", "overState": "1 h of event time"}),
        ("pt", {"overState": "never"}),
        (f"pt {RANGE}", {"overState": "1 h of processing time"}),
    ],
)
def test_each_state_says_how_long_it_keeps_a_row(window: str, states: dict[str, str]) -> None:
    over = over_of(compiled(window))
    assert {entry.name: over.readable_lifetime(entry) for entry in over.state} == states
    assert over.changelog == ("+I",)


def test_a_ttl_is_edited_where_there_is_one() -> None:
    plan, _ = set_value(compiled("ts"), "over_t.overState.ttl", "3 d")
    assert [entry.ttl for entry in over_of(plan).state] == [None, "3 d"]
    for path, text in (("waitingState", "until the watermark passes its time"), ("overState", "1 h of event time")):
        with pytest.raises(PlanError, match=f"'{path}' has no TTL: it keeps rows {text}"):
            set_value(compiled(f"ts {RANGE}"), f"over_t.{path}.ttl", "3 d")


@pytest.mark.parametrize(
    ("window", "text"),
    [
        ("ts", "SUM(v) OVER (PARTITION BY k ORDER BY ts)"),
        ("pt", "SUM(v) OVER (PARTITION BY k ORDER BY ARRIVAL)"),
        (f"ts {ROWS}", "SUM(v) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)"),
        (f"ts {RANGE}", "SUM(v) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN 1 h PRECEDING AND CURRENT ROW)"),
    ],
)
def test_it_is_described_in_words_of_sql(window: str, text: str) -> None:
    plan = compiled(window)
    assert over_of(plan).describe(plan) == f"expr0 = {text}"


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"time": "v"}, "a rowtime is TIMESTAMP or TIMESTAMP_LTZ of precision 0 to 3, but 'v' is BIGINT"),
        ({"order": BY_V}, "a stream is ordered by a rowtime or by another column, not by both"),
        ({"frame": Frame(unit="rows", start=None, end=1)}, "a frame ends with its row in a stream"),
        ({"frame": Frame(unit="range", start=5, end=0)}, "a frame from 5 to 0 has no row"),
        ({"changelog": ("+I", "-U", "+U")}, "changelog"),
        ({"state": ()}, "the entry with state index 0, 'waitingState', is missing"),
    ],
)
def test_an_edit_of_a_fact_is_refused_with_its_place(fields: dict[str, Any], problem: str) -> None:
    plan = compiled("ts")
    assert edited(plan) == []
    assert any(problem in text and "over_t" in text for text in edited(plan, **fields)), edited(plan, **fields)


@pytest.mark.parametrize(
    ("call", "fields", "problem"),
    [
        ({"function": "LEAD", "count": 1}, {}, "LEAD needs all rows"),
        ({"distinct": True}, {}, "DISTINCT over the rows around a row needs a frame with a start"),
        (
            {"distinct": True, "function": "MAX"},
            {"frame": Frame(unit="rows", start=-1, end=0)},
            "DISTINCT is for COUNT, and for SUM and AVG of whole numbers, found MAX(DISTINCT v)",
        ),
    ],
)
def test_a_call_that_a_stream_cannot_compute_is_refused(
    call: dict[str, Any], fields: dict[str, Any], problem: str
) -> None:
    plan = compiled("ts")
    (only,) = over_of(plan).calls
    found = edited(plan, calls=(replace(only, **call),), **fields)
    assert any(problem in text for text in found), found


def test_names_of_results_do_not_belong_to_the_state() -> None:
    over = over_of(compiled("ts"))
    facts = {"calls": [{"name": "x", "function": "SUM", "argument": "v"}], "key": ["k"]}
    assert over.state_facts(facts) == {"calls": [{"function": "SUM", "argument": "v"}], "key": ["k"]}
