"""`diff`: by meaning, with who set what and what becomes of running state."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

import plans
from plans.diff import Change, diff
from plans.diff_report import report_json, report_markdown, report_text
from plans.digest import plan_digests
from plans.edit import set_value
from plans.model import Plan, Table

Patched = Callable[..., str]


def lines(before: Plan, after: Plan) -> list[str]:
    """The lines of the report with runs of blanks as one |, which leaves layout out of most tests."""
    report = report_text(diff(before, after)).splitlines()
    return [" | ".join(part.strip() for part in line.split("     ") if part.strip()) for line in report]


def accept(text: str) -> Plan:
    return plans.loads(text, allow_fact_edits=True, check_meaning=False)


def test_the_same_plan_in_another_layout_has_no_differences(plan_text: str, plan: Plan) -> None:
    other = plans.loads(json.dumps(json.loads(plan_text), sort_keys=True).replace('"20 d"', '"480 h"'))
    assert diff(plan, other) == ()
    assert report_text(()) == "no differences"


def test_a_ttl_edit_is_one_calm_line(plan: Plan) -> None:
    before, _ = set_value(plan, "join_o_c.leftState.ttl", "1 d")
    assert report_text(diff(before, plan)) == (
        "~ join_o_c.leftState.ttl               1 d → 3 d     edit over hint 1 d     state kept, applies at once\n"
        "1 setting changed · no operator changed · running state stays readable"
    )


def test_a_changed_hint_below_an_edit_has_no_effect(plan: Plan, patched: Patched) -> None:
    assert lines(plan, plans.loads(patched(('"hint": "1 d"', '"hint": "2 d"'))))[0] == (
        "~ join_o_c.leftState.origin.hint | 1 d → 2 d | 3 d stays, from edit | no effect"
    )


def test_a_changed_stateful_operator_makes_state_unreadable(plan: Plan, patched: Patched) -> None:
    assert lines(plan, accept(patched(('"join-type": "left"', '"join-type": "full"')))) == [
        "~ join_o_c.join-type | left → full | running state cannot be read",
        "no setting changed · 1 operator changed · running state cannot be used",
    ]


def test_a_changed_filter_above_state_is_incompatible(plan: Plan, patched: Patched) -> None:
    assert lines(plan, accept(patched(('"o_total > 0"', '"o_total > 1"'))))[0] == (
        "~ calc_o.filter | o_total > 0 → o_total > 1 | plan incompatible with running state"
    )


def test_list_facts_say_what_came_and_went(plan: Plan, patched: Patched) -> None:
    text = patched(('"columns": ["o_custkey", "o_total"]', '"columns": ["o_custkey", "o_id"]'))
    assert lines(plan, accept(text))[0].startswith("~ scan_orders.columns | added o_id; removed o_total | ")


def test_operators_that_come_and_go_are_named_with_their_kind(plan: Plan) -> None:
    assert lines(plan, replace(plan, operators=plan.operators[:-1])) == [
        "- sink_result | sink | plan incompatible with running state",
        "no setting changed · 1 operator removed · running state cannot be used",
    ]
    assert lines(replace(plan, operators=plan.operators[:3]), plan)[0] == (
        "+ join_o_c | join | running state cannot be read"
    )


def test_another_parallelism_keeps_state_and_waits_for_a_new_checkpoint(plan: Plan) -> None:
    assert lines(plan, set_value(plan, "config.parallelism.default", "8")[0]) == [
        "+ config.parallelism.default | 8 | state kept, a checkpoint keeps its partitions",
        "1 setting changed · no operator changed · running state stays readable",
    ]


@pytest.mark.parametrize(
    ("edit", "changes"),
    [
        (('"input": "o"', '"input": "ord"'), [("join_o_c.state.leftState.input", "")]),
        (('{ "name": "c_name", "type": "STRING" },\n', ""), [("tables.customers.columns", "removed c_name (STRING)")]),
        (('"op": "sink",\n      "inputs": ["aggregate_t"]', '"op": "sink",\n      "inputs": ["join_o_c"]'), None),
    ],
)
def test_whatever_a_run_refuses_to_continue_is_called_incompatible(
    plan: Plan, patched: Patched, edit: tuple[str, str], changes: list[tuple[str, str]] | None
) -> None:
    # A run compares the digests that the checkpoint recorded: the verdict of a diff must be the same.
    other = accept(patched(edit))
    found = diff(plan, other)
    assert plan_digests(other) != plan_digests(plan)
    assert found
    assert not any(change.keeps_state for change in found)
    if changes is not None:
        assert [(change.path, change.note) for change in found] == changes


def test_a_refused_option_value_is_not_shown(plan: Plan) -> None:
    options = {"connector": "jdbc", "url": "jdbc:sqlite:x.db", "table-name": "r", "password": "hunter2"}
    before = replace(plan, tables={"r": Table(columns=(), options={**options, "password": "${env:PW}"})})
    after = replace(plan, tables={"r": Table(columns=(), options=options)})
    changes = diff(before, after)
    assert [(c.before, c.after) for c in changes] == [("${env:PW}", "(refused)")]
    assert "hunter2" not in json.dumps(report_json(changes))


def test_control_characters_in_names_do_not_reach_the_report() -> None:
    report = report_text(diff(Plan(name="a"), Plan(name="\x1b[2Kb\n| c")))
    assert "\x1b" not in report
    assert len(report.splitlines()) == 2


def test_markdown_escapes_what_would_break_the_table() -> None:
    report = report_markdown(diff(Plan(name="a"), Plan(name="x|`y`<b>")))
    assert "| ~ | `name` | `a` → ``x\\|`y`<b>`` |" in report


def _many(number: int) -> list[Change]:
    change = Change(kind="~", subject="setting", name="n", path="p" * 100, before="a", after="b", effect="none")
    return [replace(change, name=str(index)) for index in range(number)]


def test_long_markdown_is_folded_and_stays_below_the_limit_of_a_review_comment() -> None:
    assert "<details>" not in report_markdown(_many(30))
    folded = report_markdown(_many(2000))
    assert "<details><summary>2000 changes</summary>" in folded
    assert len(folded) < 65_536
    rows = sum(line.startswith("| ~ |") for line in folded.splitlines())
    assert f"{2000 - rows} more changes" in folded


def test_json_has_every_change_and_the_verdict(plan: Plan) -> None:
    before, _ = set_value(plan, "join_o_c.leftState.ttl", "1 d")
    assert report_json(diff(before, plan)) == {
        "different": True,
        "keeps-state": True,
        "summary": "1 setting changed · no operator changed · running state stays readable",
        "changes": [
            {
                "kind": "changed",
                "subject": "setting",
                "path": "join_o_c.leftState.ttl",
                "before": "1 d",
                "after": "3 d",
                "note": "edit over hint 1 d",
                "effect": "state kept, applies at once",
                "keeps-state": True,
            }
        ],
    }
