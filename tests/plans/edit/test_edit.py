"""`set`: one setting, what follows from it, and nothing else in the file."""

from __future__ import annotations

import json

import pytest

import hintplan
from hintplan.plans.analysis.validate import plan_problems
from hintplan.plans.edit.edit import remove_value, set_value
from hintplan.plans.errors import PlanError
from hintplan.plans.files.rewrite import rewrite
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Join
from hintplan.plans.settings.layers import layers_of, set_by
from hintplan.plans.settings.state import StateEntry


def entry(plan: Plan, operator_id: str, name: str) -> StateEntry:
    return next(e for e in plan.operator(operator_id).state if e.name == name)


def changed_lines(before: bytes, after: bytes) -> list[tuple[str, str]]:
    old, new = before.decode().splitlines(), after.decode().splitlines()
    assert len(old) == len(new)
    return [(a.strip(), b.strip()) for a, b in zip(old, new, strict=True) if a != b]


def test_a_ttl_edit_changes_one_line_and_leaves_the_origin_alone(plan: Plan) -> None:
    edited, changes = set_value(plan, "join_o_c.state.rightState.ttl", "36000s")
    ((before, after),) = changed_lines(hintplan.dumps(plan), hintplan.dumps(edited))
    assert before == (
        '{ "index": 1, "name": "rightState", "input": "c", "ttl": "20 d", '
        '"origin": { "config": "1 h", "hint": "20 d" } }'
    )
    assert after == before.replace('"ttl": "20 d"', '"ttl": "10 h"')
    assert set_by(entry(edited, "join_o_c", "rightState").settings, "ttl") == "edit"
    assert [(c.path, c.before, c.after, c.note) for c in changes] == [
        ("join_o_c.rightState.ttl", "20 d", "10 h", "edit over hint 20 d")
    ]
    assert plan_problems(edited) == ()


@pytest.mark.parametrize(
    "path", ["join_o_c.leftState.ttl", "operators.join_o_c.state.leftState.ttl", "join_o_c.state.leftState.ttl"]
)
def test_a_path_copied_from_a_difference_or_an_error_names_the_same_setting(plan: Plan, path: str) -> None:
    assert entry(set_value(plan, path, "5 d")[0], "join_o_c", "leftState").ttl == "5 d"


def test_a_ttl_set_back_to_its_hint_is_no_edit_any_more(plan: Plan) -> None:
    edited, changes = set_value(plan, "join_o_c.state.leftState.ttl", "24 h")
    left = entry(edited, "join_o_c", "leftState")
    assert (left.ttl, set_by(left.settings, "ttl")) == ("1 d", "hint")
    assert changes[0].note == "hint over config 1 h"


def test_a_new_config_ttl_moves_what_follows_config_and_keeps_hints_and_edits(plan: Plan) -> None:
    edited, changes = set_value(plan, "config.table.exec.state.ttl", "2 h")
    assert edited.config == {"table.exec.state.ttl": "2 h"}
    # (ttl, origin): an edit over a hint, a hint, and one that follows config.
    assert [(e.ttl, layers_of(e.settings, "ttl")) for o in edited.operators for e in o.state] == [
        ("3 d", {"config": "2 h", "hint": "1 d"}),
        ("20 d", {"config": "2 h", "hint": "20 d"}),
        ("2 h", {"config": "2 h"}),
    ]
    assert [c.path for c in changes] == ["config.table.exec.state.ttl", "aggregate_t.groupAggregateState.ttl"]
    assert plan_problems(edited) == ()


def test_a_first_config_ttl_takes_the_place_of_the_default(plan: Plan) -> None:
    base, _ = set_value(plan, "aggregate_t.groupAggregateState.ttl", "0 ms")
    text = hintplan.dumps(base).decode().replace('"config": "1 h"', '"default": "0 ms"')
    base = hintplan.loads(text.replace('"table.exec.state.ttl": "1 h"', ""))
    edited, _ = set_value(base, "config.table.exec.state.ttl", "2 h")
    aggregate = entry(edited, "aggregate_t", "groupAggregateState")
    assert (aggregate.ttl, layers_of(aggregate.settings, "ttl")) == ("2 h", {"config": "2 h"})
    assert plan_problems(edited) == ()


def test_setting_config_repairs_a_plan_whose_config_was_edited_alone(plan_text: str) -> None:
    text = plan_text.replace('"table.exec.state.ttl": "1 h"', '"table.exec.state.ttl": "2 h"')
    broken = hintplan.loads(text, check_meaning=False)
    assert plan_problems(broken)
    edited, _ = set_value(broken, "config.table.exec.state.ttl", "2 h")
    assert plan_problems(edited) == ()
    assert entry(edited, "aggregate_t", "groupAggregateState").ttl == "2 h"


def test_an_edited_entry_that_equalled_config_stays_an_edit_when_config_moves_away(plan: Plan) -> None:
    edited, _ = set_value(plan, "join_o_c.leftState.ttl", "1 h")
    moved, _ = set_value(edited, "config.table.exec.state.ttl", "2 h")
    assert entry(moved, "join_o_c", "leftState").ttl == "1 h"


def test_a_table_option_can_be_set(plan: Plan) -> None:
    edited, changes = set_value(plan, "tables.orders.options.path", "elsewhere")
    assert edited.tables["orders"].options["path"] == "elsewhere"
    assert [(c.path, c.before, c.after) for c in changes] == [
        ("tables.orders.options.path", "data/orders", "elsewhere")
    ]


STATES = "join_o_c.state.leftState.ttl, join_o_c.state.rightState.ttl"
OF_JOIN = f"{STATES}, join_o_c.max-rows-per-key.left, join_o_c.max-rows-per-key.right"
SETTABLE = (
    f"can be set: {STATES}, aggregate_t.state.groupAggregateState.ttl, config.<key>, tables.<table>.options.<option>"
)
RECOMPILE = "change the SQL and compile it again"


@pytest.mark.parametrize(
    ("path", "value", "answer"),
    [
        (
            "join_o_c.state.leftState.ttl",
            "5",
            "join_o_c.state.leftState.ttl: bad duration '5': the duration '5' has no unit\n"
            "  hint: write its unit: ms, s, min, h or d",
        ),
        (
            "join_o_c.state.lefState.ttl",
            "1 d",
            "join_o_c.state.lefState.ttl: there is no state 'lefState'\n"
            f"  hint: did you mean 'join_o_c.state.leftState.ttl'? can be set: {OF_JOIN}",
        ),
        (
            "join_oc.state.leftState.ttl",
            "1 d",
            f"join_oc.state.leftState.ttl: there is no operator 'join_oc'\n  hint: did you mean 'join_o_c'? {SETTABLE}",
        ),
        (
            "join_o_c.keys",
            "x",
            f"join_o_c.keys: 'keys' of an operator is a fact of the query\n  hint: {RECOMPILE}; can be set: {OF_JOIN}",
        ),
        (
            "scan_orders.columns",
            "x",
            "scan_orders.columns: 'columns' of an operator is a fact of the query\n"
            f"  hint: {RECOMPILE}; 'scan_orders' keeps no state and has nothing to set",
        ),
        (
            "join_o_c.state.leftState.origin.hint",
            "1 d",
            "join_o_c.state.leftState.origin.hint: an origin records what default, config and hint set; it cannot be "
            "edited\n  hint: set join_o_c.state.leftState.ttl, or change the hint and compile again",
        ),
        (
            "join_o_c.state.leftState.name",
            "x",
            "join_o_c.state.leftState.name: 'name' of a state is a fact of the query\n"
            "  hint: can be set: join_o_c.state.leftState.ttl",
        ),
        (
            "config.table.exec.state.tll",
            "1 d",
            "config.table.exec.state.tll: 'table.exec.state.tll' cannot be set in config\n"
            "  hint: did you mean 'table.exec.state.ttl'?",
        ),
        (
            "config.parallelism.default",
            "many",
            "config.parallelism.default: expected a whole number from 1 to 32768, found 'many'",
        ),
        (
            "tables.order.options.path",
            "x",
            "tables.order.options.path: there is no table 'order'\n  hint: did you mean 'orders'?",
        ),
        (
            "tables.orders.options.connector",
            "x",
            "tables.orders.options.connector: 'connector' is a fact: another connector may have other columns and row "
            f"kinds\n  hint: {RECOMPILE}",
        ),
        (
            "tables.orders.columns",
            "x",
            "tables.orders.columns: 'columns' of a table is a fact of the query\n"
            f"  hint: {RECOMPILE}; can be set: tables.orders.options.<option>",
        ),
        ("digests", "x", f"digests: 'digests' cannot be set\n  hint: {SETTABLE}"),
    ],
)
def test_what_cannot_be_set_says_why_and_what_can(plan: Plan, path: str, value: str, answer: str) -> None:
    with pytest.raises(hintplan.PlanError) as caught:
        set_value(plan, path, value)
    assert str(caught.value) == answer


def test_a_file_in_another_layout_keeps_it(plan_text: str, plan: Plan) -> None:
    data = json.dumps(json.loads(plan_text), indent=4).encode()
    edited, _ = set_value(plan, "join_o_c.state.leftState.ttl", "5 d")
    written = rewrite(data, plan, edited)
    assert changed_lines(data, written) == [('"ttl": "3 d",', '"ttl": "5 d",')]
    assert hintplan.loads(written) == edited


def test_a_setting_that_is_new_in_a_file_of_another_layout_is_added_to_it(plan_text: str, plan: Plan) -> None:
    data = json.dumps(json.loads(plan_text)).encode()
    edited, _ = set_value(plan, "config.parallelism.default", "4")
    edited, _ = set_value(edited, "tables.orders.options.source.monitor-interval", "5 s")
    written = rewrite(data, plan, edited)
    expected = data.replace(
        b'"table.exec.state.ttl": "1 h"', b'"table.exec.state.ttl": "1 h", "parallelism.default": "4"'
    )
    path = b'"path": "data/orders", "format": "json"'
    assert written == expected.replace(path, path + b', "source.monitor-interval": "5 s"')


def test_spellings_that_are_not_edited_stay(plan_text: str, plan: Plan) -> None:
    data = plan_text.replace('"20 d"', '"P20D"').encode()
    edited, _ = set_value(plan, "join_o_c.state.leftState.ttl", "5 d")
    assert rewrite(data, plan, edited) == data.replace(b'"ttl": "3 d"', b'"ttl": "5 d"')


def test_a_removed_config_key_leaves_the_layer_below(plan: Plan) -> None:
    edited, changes = remove_value(plan, "config.table.exec.state.ttl")
    assert "table.exec.state.ttl" not in edited.config
    join = edited.operator("join_o_c")
    assert isinstance(join, Join)
    before = plan.operator("join_o_c")
    assert isinstance(before, Join)
    for old, new in zip(before.state, join.state, strict=True):
        hint = {layer: ttl for layer, ttl in layers_of(old.settings, "ttl").items() if layer == "hint"}
        assert layers_of(new.settings, "ttl") == {"default": "0 ms"} | hint
        assert new.ttl == (old.ttl if hint else "0 ms")
    assert changes
    assert plan_problems(edited) == ()


def test_a_removed_table_option_falls_back_to_its_default(plan: Plan) -> None:
    added, _ = set_value(plan, "tables.orders.options.source.max-files-per-trigger", "3")
    removed, _ = remove_value(added, "tables.orders.options.source.max-files-per-trigger")
    assert removed == plan


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("config.parallelism.default", "'parallelism.default' is not set in config"),
        ("tables.orders.options.pth", "table 'orders' has no option 'pth'"),
        ("tables.orders.options.connector", "'connector' is a fact"),
        ("tables.nothing.options.path", "there is no table 'nothing'"),
        ("join_o_c.state.leftState.ttl", "'join_o_c.state.leftState.ttl' cannot be removed"),
        ("config", "'config' cannot be removed"),
    ],
)
def test_what_cannot_be_removed_is_refused(plan: Plan, path: str, message: str) -> None:
    with pytest.raises(PlanError) as caught:
        remove_value(plan, path)
    assert message in str(caught.value)
    assert caught.value.diagnostics[0].hint


def test_a_duration_in_config_needs_a_unit(plan: Plan) -> None:
    with pytest.raises(PlanError, match="the duration '5000' has no unit"):
        set_value(plan, "config.table.exec.state.ttl", "5000")


def test_a_bare_configuration_key_is_answered_with_its_path(plan: Plan) -> None:
    with pytest.raises(PlanError) as caught:
        set_value(plan, "table.exec.state.ttl", "2 h")
    assert caught.value.diagnostics[0].hint == "write config.table.exec.state.ttl=2 h"
