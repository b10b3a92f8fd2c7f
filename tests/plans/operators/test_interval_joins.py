"""Interval joins in a plan: how they are read and written, what they keep, and what a hand edit of them receives."""

from __future__ import annotations

from dataclasses import replace

import pytest

import hintplan
from hintplan.plans.analysis.validate import plan_problems
from hintplan.plans.analysis.windows import rowtimes_of
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import IntervalJoin
from hintplan.runtime.builders.event_time import event_times
from hintplan.runtime.engine.watermarks import EventTime

SCRIPT = """
CREATE TABLE o (id BIGINT, ts TIMESTAMP(3), other TIMESTAMP(3), at TIMESTAMP_LTZ(3), WATERMARK FOR ts AS ts)
WITH ('connector' = 'filesystem', 'path' = 'o', 'format' = 'json');
CREATE TABLE p (id BIGINT, ts TIMESTAMP(3), at TIMESTAMP_LTZ(3), WATERMARK FOR ts AS ts)
WITH ('connector' = 'filesystem', 'path' = 'p', 'format' = 'json');
CREATE TABLE r (id BIGINT, ts TIMESTAMP(3), other TIMESTAMP(3), at TIMESTAMP_LTZ(3), pts TIMESTAMP(3),
  pat TIMESTAMP_LTZ(3)) WITH ('connector' = 'print');
INSERT INTO r SELECT o.id, o.ts, o.other, o.at, p.ts, p.at FROM o {kind} JOIN p
ON o.id = p.id AND o.ts BETWEEN p.ts - INTERVAL '3' SECOND AND p.ts + INTERVAL '5' SECOND;
"""


def plan_of(kind: str = "LEFT") -> tuple[Plan, IntervalJoin]:
    plan = hintplan.compile_sql(SCRIPT.format(kind=kind))
    (join,) = (operator for operator in plan.operators if isinstance(operator, IntervalJoin))
    return plan, join


def changed(plan: Plan, join: IntervalJoin) -> Plan:
    operators = tuple(join if operator.id == join.id else operator for operator in plan.operators)
    return replace(plan, operators=operators)


def test_a_plan_is_read_as_it_was_written_and_has_no_problem() -> None:
    plan, join = plan_of()
    assert plan_problems(plan) == ()
    assert hintplan.loads(hintplan.dumps(plan).decode()).by_id[join.id] == join
    assert rowtimes_of(plan)[join.id] == ("pts", "ts")


def test_each_side_is_kept_for_the_time_by_which_a_match_may_be_later() -> None:
    _, join = plan_of()
    assert [join.kept_until(name) for name in join.state_names] == ["3 s of event time", "5 s of event time"]
    assert [replace(join, lower="2 s").kept_until(name) for name in join.state_names] == [
        "0 ms of event time",
        "5 s of event time",
    ]


@pytest.mark.parametrize(
    ("kind", "lower", "upper", "held"),
    [
        ("INNER", "-3 s", "5 s", 5000),
        ("INNER", "-7 s", "5 s", 7000),
        ("INNER", "2 s", "3 s", 3000),
        ("INNER", "-3 s", "-1 s", 3000),
        ("INNER", "0 ms", "0 ms", 0),
        ("LEFT", "-7 s", "5 s", 7001),
        ("LEFT", "-3 s", "5 s", 5000),
        ("RIGHT", "-3 s", "5 s", 5001),
        ("FULL", "0 ms", "0 ms", 1),
        ("FULL", "1 h", "0 ms", 0),
    ],
)
def test_the_watermark_is_held_back_by_the_longest_time_that_a_row_is_kept(
    kind: str, lower: str, upper: str, held: int
) -> None:
    plan, join = plan_of(kind)
    assert event_times(changed(plan, replace(join, lower=lower, upper=upper)))[join.id].hold == held


TEXTS = {
    ("INNER", "-3 s", "5 s"): "INTERVAL JOIN ON o.id = p.id, o.ts BETWEEN p.ts - 3 s AND p.ts + 5 s",
    ("LEFT", "0 ms", "1 min"): "INTERVAL LEFT JOIN ON o.id = p.id, o.ts BETWEEN p.ts AND p.ts + 1 min",
    ("FULL", "2 s", "2 s"): "INTERVAL FULL JOIN ON o.id = p.id, o.ts = p.ts + 2 s",
}


@pytest.mark.parametrize(("case", "text"), TEXTS.items())
def test_the_bounds_are_described_as_in_sql(case: tuple[str, str, str], text: str) -> None:
    kind, lower, upper = case
    plan, join = plan_of(kind)
    edited = replace(join, lower=lower, upper=upper)
    assert edited.describe(plan) == text
    assert replace(edited, keys=()).describe(plan) == text.replace("o.id = p.id, ", "")


EDITS = {
    "lower in another form": ({"lower": "-3000 ms"}, "lower: an interval join has its durations in the shortest form"),
    "upper without a unit": ({"upper": "5"}, "upper: bad duration '5'"),
    "a time that is no rowtime": ({"left_time": "other"}, "left-time: 'other' is no rowtime"),
    "a time that is a number": ({"right_time": "id"}, "right-time: a rowtime is TIMESTAMP or TIMESTAMP_LTZ"),
    "times of two types": ({"right_time": "at"}, "right-time: both times have the same type, but 'ts' is TIMESTAMP(3)"),
    "an unknown time": ({"left_time": "tz"}, "left-time: "),
    "without a time": ({"left_time": None}, "left-time: an interval join has either the rowtimes of both inputs, or"),
    "rowtimes and the clock": ({"processing_time": True}, "right-time: an interval join has either the rowtimes of"),
}


@pytest.mark.parametrize(("edit", "problem"), EDITS.values(), ids=EDITS)
def test_a_wrong_edit_has_its_place(edit: dict[str, str], problem: str) -> None:
    plan, join = plan_of()
    found = [f"{each.path}: {each.message}" for each in plan_problems(changed(plan, replace(join, **edit)))]
    assert any(each.startswith(f"operators.{join.id}.{problem}") for each in found), found


def by_clock(kind: str = "LEFT", mode: str = "streaming") -> tuple[Plan, IntervalJoin]:
    plan, join = plan_of(kind)
    join = replace(join, left_time=None, right_time=None, processing_time=True)
    return replace(changed(plan, join), mode=mode), join


def test_a_join_by_processing_time_has_no_rowtimes_and_is_kept_by_the_clock() -> None:
    plan, join = by_clock()
    text = hintplan.dumps(plan).decode()
    assert '"processing-time": true' in text
    assert "left-time" not in text
    assert hintplan.loads(text).by_id[join.id] == join
    assert rowtimes_of(plan)[join.id] == ()
    assert event_times(plan)[join.id] == EventTime(number=plan.operators.index(join), by_clock=True)
    assert [join.kept_until(name) for name in join.state_names] == ["3 s of processing time", "5 s of processing time"]
    assert join.describe(plan) == (
        "INTERVAL LEFT JOIN ON o.id = p.id, o.PROCTIME() BETWEEN p.PROCTIME() - 3 s AND p.PROCTIME() + 5 s"
    )


def test_a_batch_plan_has_no_join_by_processing_time() -> None:
    plan, join = by_clock(mode="batch")
    found = [f"{each.path}: {each.message}" for each in plan_problems(plan)]
    assert f"operators.{join.id}.processing-time: in a batch job, no processing time passes" in found


def test_a_semi_join_by_time_is_refused() -> None:
    plan, _ = plan_of()
    text = hintplan.dumps(plan).decode().replace('"join-type": "left"', '"join-type": "semi"')
    with pytest.raises(hintplan.PlanError, match="expected one of 'inner', 'left', 'right', 'full', found 'semi'"):
        hintplan.loads(text)


def test_a_change_of_the_bounds_starts_with_empty_state() -> None:
    old, new = (hintplan.compile_sql(SCRIPT.format(kind="INNER").replace("'3'", number)) for number in ("'3'", "'4'"))
    text = str(hintplan.diff(old, new))
    assert "-3 s → -4 s" in text
    assert "starts empty" in text
