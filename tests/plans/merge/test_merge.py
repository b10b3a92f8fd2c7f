"""Merging two versions of a plan by meaning: what each side changed, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings

import hintplan
from hintplan.plans.merge.conflict_text import sides_of, with_conflict_markers
from hintplan.plans.merge.decompose import Parts, compose, decompose, settings_by_key
from hintplan.plans.merge.merge import conflict_sides, merge_plans
from hintplan.plans.merge.three_way import merged_order, merged_units
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Join, LookupJoin
from hintplan.plans.settings.layers import layers_of
from tests.plans.format.test_canonical_form import PLANS as ANY_PLAN
from tests.plans.merge.versions import VERSIONS, compiled, edited

QUICK = settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
PLANS = sorted(Path(__file__).parents[1].glob("*.json"))


def ttls(plan: Plan) -> list[str]:
    join = plan.operator("join_o_c")
    assert isinstance(join, Join)
    return [entry.ttl for entry in join.state]


def lookup(plan: Plan) -> LookupJoin:
    operator = plan.operator("lookup_r")
    assert isinstance(operator, LookupJoin)
    return operator


def merged(base: Plan, ours: Plan, theirs: Plan) -> Plan:
    done = merge_plans(base, ours, theirs)
    assert done.plan is not None, done
    return done.plan


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_a_plan_taken_apart_and_put_together_is_the_same_to_the_byte(path: Path) -> None:
    plan = hintplan.load(path)
    assert hintplan.dumps(compose(decompose(plan))) == hintplan.dumps(plan)


@QUICK
@given(ANY_PLAN)
def test_any_plan_survives_being_taken_apart(plan: Plan) -> None:
    # Two states of one name are refused before anything is merged.
    assume(all(len({entry.name for entry in o.state}) == len(o.state) for o in plan.operators))
    assert hintplan.dumps(compose(decompose(plan))) == hintplan.dumps(plan)


def test_edits_of_two_states_of_one_operator_are_both_there() -> None:
    base = compiled()
    ours = edited(base, ("join_o_c.state.leftState.ttl", "3 d"))
    theirs = edited(base, ("join_o_c.state.rightState.ttl", "30 d"))
    assert ttls(merged(base, ours, theirs)) == ["3 d", "30 d"]


def test_two_values_for_one_ttl_are_a_conflict_that_names_both() -> None:
    base = compiled()
    ours = edited(base, ("join_o_c.state.leftState.ttl", "3 d"))
    theirs = edited(base, ("join_o_c.state.leftState.ttl", "5 d"))
    done = merge_plans(base, ours, theirs)
    assert done.plan is None
    (conflict,) = done.conflicts
    assert conflict.key == ("operators", "join_o_c", "state", "leftState", "ttl")
    assert (conflict.base.value, conflict.ours.value, conflict.theirs.value) == ("1 d", "3 d", "5 d")


def test_an_edit_stays_over_the_hint_that_the_other_side_changed_and_is_reported() -> None:
    base = compiled()
    done = merge_plans(base, edited(base, ("join_o_c.state.leftState.ttl", "5 d")), compiled("hint"))
    assert done.plan is not None
    assert ttls(done.plan) == ["5 d", "20 d"]
    assert done.plan.operator("join_o_c").state[0].settings.origin["hint"]["ttl"] == "2 d"  # type: ignore[union-attr]
    (carried,) = done.underneath
    assert (carried.path, carried.before, carried.after) == (
        "join_o_c.state.leftState.ttl",
        "hint 1 d",
        "hint 2 d",
    )


def test_a_new_config_reaches_the_operators_that_only_the_other_side_has() -> None:
    base = compiled(config="1 h")
    ours = edited(base, ("config.table.exec.state.ttl", "5 h"))
    more = "INSERT INTO log SELECT o.id, c.id + 0.5E0 FROM orders o JOIN customers c ON o.customer = c.id;"
    theirs = compiled(log=more)
    plan = merged(base, ours, theirs)
    (added,) = [o for o in plan.operators if isinstance(o, Join) and o.id != "join_o_c"]
    assert [(entry.ttl, layers_of(entry.settings, "ttl")) for entry in added.state] == [("5 h", {"config": "5 h"})] * 2


def test_an_option_and_a_retry_that_one_side_took_away_stay_away() -> None:
    base = compiled()
    ours = edited(base, ("lookup_r.retry", "off"))
    theirs = edited(base, ("tables.orders.options.path", "data/test"))
    plan = merged(base, ours, theirs)
    assert lookup(plan).retry is None
    assert plan.tables["orders"].options["path"] == "data/test"


def test_taking_a_retry_away_conflicts_with_changing_it() -> None:
    base = compiled()
    done = merge_plans(base, edited(base, ("lookup_r.retry", "off")), compiled("attempts"))
    assert [conflict.key for conflict in done.conflicts] == [("operators", "lookup_r", "retry")]


def test_edits_that_have_no_place_beside_each_other_are_no_result() -> None:
    base = compiled()
    ours = edited(base, ("lookup_r.cache.lookup.cache", "NONE"))
    theirs = edited(base, ("lookup_r.cache.lookup.partial-cache.expire-after-write", "9 min"))
    done = merge_plans(base, ours, theirs)
    assert (done.plan, done.conflicts) == (None, ())
    assert [problem.path for problem in done.problems] == ["lookup_r.cache.lookup.partial-cache.expire-after-write"]


def test_facts_that_both_sides_changed_differently_are_a_conflict_of_the_operator() -> None:
    done = merge_plans(
        compiled("filter"), compiled(where="WHERE {o}.total > 9"), compiled(where="WHERE {o}.total > 100")
    )
    assert [conflict.key for conflict in done.conflicts] == [("operators", "calc_o")]


def test_plans_that_both_sides_added_are_merged_without_a_base() -> None:
    assert merge_plans(None, compiled(), compiled()).plan == compiled()
    done = merge_plans(None, compiled(), compiled("hint"))
    assert [conflict.key[-2:] for conflict in done.conflicts] == [("leftState", "ttl")]


def test_an_operator_that_one_side_removed_and_the_other_edited_is_a_conflict() -> None:
    with_sink = compiled("sink")
    more = "INSERT INTO log SELECT o.id, c.id + 0.5E0 FROM orders o JOIN customers c ON o.customer = c.id;"
    base = compiled(log=more)
    (name,) = {o.id for o in base.operators if isinstance(o, Join)} - {"join_o_c"}
    ours = edited(base, (f"{name}.state.leftState.ttl", "9 d"))
    done = merge_plans(base, ours, with_sink)
    assert [conflict.key[1] for conflict in done.conflicts] == [name]


def test_new_names_stand_after_what_they_stood_after() -> None:
    assert merged_order(("a", "b"), ("a", "x", "b"), ("a", "b", "y")) == ("a", "x", "b", "y")
    assert merged_order(("a", "b"), ("b", "a"), ("a", "b", "c")) == ("b", "c", "a")
    assert merged_order((), ("a", "x"), ("a", "b")) == ("a", "b", "x")


def test_conflict_markers_stand_only_where_the_versions_disagree() -> None:
    base = compiled()
    ours = edited(base, ("join_o_c.state.leftState.ttl", "3 d"), ("join_o_c.state.rightState.ttl", "30 d"))
    theirs = edited(base, ("join_o_c.state.leftState.ttl", "5 d"), ("lookup_r.async.capacity", "10"))
    sides = conflict_sides(base, ours, theirs)
    text = with_conflict_markers(sides["ours"], sides["theirs"], base=sides["base"], labels=("ours", "theirs")).decode()
    start, end = text.index("<<<<<<<"), text.index(">>>>>>>")
    assert text.count("<<<<<<<") == 1
    lines = text[start:end].splitlines()
    assert [line.split('"ttl": ')[1][:5] for line in lines if "ttl" in line] == ['"3 d"', '"1 d"', '"5 d"']
    for kept, side in zip(("3 d", "5 d"), sides_of(text) or (), strict=True):
        chosen = hintplan.loads(side)
        assert ttls(chosen) == [kept, "30 d"]
        assert lookup(chosen).async_.capacity == 10
    with pytest.raises(hintplan.PlanError, match="the file has merge conflicts"):
        hintplan.loads(text)


def bare(base: Plan, ours: Plan, theirs: Plan) -> Plan:
    """The merge without the shortcuts for sides that have not changed."""
    sides = [decompose(plan) for plan in (base, ours, theirs)]
    units, conflicts = merged_units(*sides)
    assert conflicts == ()
    keys = {**sides[1].orders, **sides[2].orders}
    orders = {key: merged_order(*(side.orders.get(key, ()) for side in sides)) for key in keys}
    return compose(Parts(units=units, orders=orders))


@QUICK
@given(VERSIONS, VERSIONS)
def test_what_one_side_left_alone_is_as_the_other_has_it(x: Plan, y: Plan) -> None:
    assert (
        hintplan.dumps(bare(x, x, y))
        == hintplan.dumps(bare(x, y, x))
        == hintplan.dumps(bare(x, y, y))
        == hintplan.dumps(y)
    )
    assert merge_plans(x, x, y).plan == merge_plans(x, y, x).plan == merge_plans(x, y, y).plan == y


@QUICK
@given(VERSIONS, VERSIONS, VERSIONS)
def test_it_does_not_matter_who_merges_whom(base: Plan, ours: Plan, theirs: Plan) -> None:
    first, second = merge_plans(base, ours, theirs), merge_plans(base, theirs, ours)
    assert (first.plan is None) == (second.plan is None)
    assert {conflict.key for conflict in first.conflicts} == {conflict.key for conflict in second.conflicts}
    if first.plan is not None and second.plan is not None:
        assert hintplan.dumps(first.plan) == hintplan.dumps(second.plan)


@QUICK
@given(VERSIONS, VERSIONS, VERSIONS)
def test_a_merged_plan_is_valid_and_merging_again_changes_nothing(base: Plan, ours: Plan, theirs: Plan) -> None:
    done = merge_plans(base, ours, theirs).plan
    if done is not None:
        assert hintplan.loads(hintplan.dumps(done)) == done
        assert merge_plans(base, done, theirs).plan == done
        assert merge_plans(base, ours, done).plan == done


@QUICK
@given(VERSIONS, VERSIONS, VERSIONS)
def test_no_edit_is_lost_in_a_merge(base: Plan, ours: Plan, theirs: Plan) -> None:
    done = merge_plans(base, ours, theirs).plan
    if done is None:
        return
    found = settings_by_key(decompose(done).units)
    before = settings_by_key(decompose(base).units)
    for side in (ours, theirs):
        for key, setting in settings_by_key(decompose(side).units).items():
            was = before.get(key)
            new_edit = setting.edited and (was is None or was.edit != setting.edit)
            if new_edit and isinstance(setting.edit, str | int):
                assert found[key].value == setting.edit


@QUICK
@given(VERSIONS, VERSIONS, VERSIONS)
def test_the_text_of_a_conflict_holds_both_sides(base: Plan, ours: Plan, theirs: Plan) -> None:
    done = merge_plans(base, ours, theirs)
    if done.plan is None:
        sides = conflict_sides(base, ours, theirs)
        text = with_conflict_markers(sides["ours"], sides["theirs"], labels=("ours", "theirs")).decode()
        assert sides_of(text) == (sides["ours"].decode(), sides["theirs"].decode())
        assert [json.loads(side)["format"] for side in sides_of(text) or ()] == ["1.0", "1.0"]
