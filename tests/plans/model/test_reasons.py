"""Reasons: notes on edits, kept in the plan under the path of the setting."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import hintplan
from hintplan.plans.compare.json_report import changes_json
from hintplan.plans.compare.report import changes_text
from hintplan.plans.edit.edit import set_value
from hintplan.plans.format.digest import plan_digests
from hintplan.plans.model.plan import Plan
from hintplan.plans.review.annotations import remarks_of_changes
from hintplan.plans.review.diff_html import report_html
from hintplan.plans.review.diff_markdown import report_markdown
from hintplan.plans.review.locations import Location
from hintplan.plans.show.explain import explain_json, plan_tree
from tests.plans.in_process import hintplan as command

Refusal = Callable[..., str]
TTL = "join_o_c.state.leftState.ttl"


def with_reasons(plan_text: str, reasons: dict[str, str]) -> str:
    return json.dumps({**json.loads(plan_text), "reasons": reasons})


def test_a_reason_stands_between_operators_and_digests_and_is_no_fact(plan: Plan) -> None:
    edited, _ = set_value(plan, "join_o_c.leftState.ttl", "5 d", reason="  late payments, see RFC 12 ")
    text = hintplan.dumps(edited).decode()
    assert (
        '  ],\n  "reasons": {\n    "join_o_c.state.leftState.ttl": "late payments, see RFC 12"\n  },\n  "digests"'
        in text
    )
    assert hintplan.loads(text) == edited
    assert plan_digests(edited) == plan_digests(plan)


def test_a_reason_goes_when_the_edit_is_undone(plan: Plan) -> None:
    edited, _ = set_value(plan, TTL, "5 d", reason="late payments")
    assert set_value(edited, TTL, "120 h")[0].reasons == {TTL: "late payments"}, "the same value"
    assert set_value(edited, TTL, "6 d")[0].reasons == {}, "a reason is given for a value"
    assert set_value(edited, TTL, "6 d", reason="later payments")[0].reasons == {TTL: "later payments"}
    assert set_value(edited, TTL, "1 d")[0].reasons == {}  # what the hint says
    assert set_value(edited, TTL, "6 d", reason="")[0].reasons == {}


def test_set_says_that_the_reason_of_another_value_is_gone(plan: Plan, tmp_path: Path) -> None:
    edited, _ = set_value(plan, TTL, "6 h", reason="orders are paid within hours")
    hintplan.dump(edited, tmp_path / "p.json")
    done = command("set", "p.json", f"{TTL}=4 h", folder=tmp_path)
    assert done.returncode == 0
    assert done.stderr == f"note: {TTL}: the reason was for 6 h and is removed; set another one with --reason TEXT\n"
    assert f"- reasons.{TTL}" in done.stdout
    assert hintplan.load(tmp_path / "p.json").reasons == {}
    assert command("set", "p.json", f"{TTL}=5 h", "--reason", "so", folder=tmp_path).stderr == ""
    assert hintplan.load(tmp_path / "p.json").reasons == {TTL: "so"}


@pytest.mark.parametrize(
    ("value", "reason", "label"),
    [
        ("4 h", "paid within hours", "reason (for 6 h): paid within hours"),
        ("360 min", "paid within hours", None),
        ("4 h", "paid within minutes", "reason: paid within minutes"),
    ],
)
def test_a_value_changed_by_hand_is_shown_with_the_value_that_its_reason_was_given_for(
    plan: Plan, tmp_path: Path, value: str, reason: str, label: str | None
) -> None:
    before, _ = set_value(plan, TTL, "6 h", reason="paid within hours")
    text = hintplan.dumps(before).decode().replace('"ttl": "6 h"', f'"ttl": "{value}"')
    after = hintplan.loads(text.replace("paid within hours", reason))
    changes = hintplan.diff(before, after).changes
    report = changes_text(changes)
    assert (label in report) if label else ("reason" not in report)
    if label:
        assert label in report_markdown(changes).replace("`", "")
        assert label in remarks_of_changes(changes, [Location()] * len(changes))[0].message
        assert label in report_html(changes, title="t")
        assert changes_json(changes)["changes"][0]["reason-given-for"] == ("6 h" if "(for" in label else None)


def test_a_reason_needs_an_edit(plan: Plan) -> None:
    with pytest.raises(hintplan.PlanError, match="this value comes from the hint"):
        set_value(plan, TTL, "1 d", reason="because")


def test_config_and_options_can_have_reasons(plan: Plan) -> None:
    edited, changes = set_value(plan, "config.parallelism.default", "8", reason="eight cores")
    assert edited.reasons == {"config.parallelism.default": "eight cores"}
    assert [(c.path, c.after) for c in changes][-1] == ("reasons.config.parallelism.default", "eight cores")


def test_a_reason_of_a_setting_that_does_not_exist_is_refused_with_the_nearest(
    plan_text: str, refusal: Refusal
) -> None:
    said = refusal(with_reasons(plan_text, {"join_o_c.state.lefState.ttl": "x"}))
    assert "reasons.join_o_c.state.lefState.ttl: there is no setting 'join_o_c.state.lefState.ttl'" in said
    assert "did you mean 'join_o_c.state.leftState.ttl'?" in said


@pytest.mark.parametrize("reason", ["", "x" * 1001])
def test_a_reason_has_one_to_a_thousand_characters(plan_text: str, refusal: Refusal, reason: str) -> None:
    assert "characters" in refusal(with_reasons(plan_text, {TTL: reason})) or not reason


def test_explain_lists_reasons_below_the_tree_without_control_characters(plan_text: str) -> None:
    plan = hintplan.loads(with_reasons(plan_text, {TTL: "late\x1b[2K\npayments"}))
    assert plan_tree(plan).endswith("\n\nreasons\njoin_o_c.state.leftState.ttl  late\\x1b[2K payments")
    assert explain_json(plan)["reasons"] == {TTL: "late\x1b[2K\npayments"}


def test_set_keeps_the_reason_in_the_file_whatever_its_layout(plan_text: str, tmp_path: Path) -> None:
    from hintplan.plans.files.rewrite import rewrite

    data = json.dumps(json.loads(plan_text)).encode()
    plan = hintplan.loads(data)
    edited, _ = set_value(plan, TTL, "5 d", reason="late payments")
    written = rewrite(data, plan, edited)
    assert hintplan.loads(written) == edited
    assert b"\n" not in written


def test_the_source_of_a_plan_is_read_and_written_and_a_difference_without_effect(plan_text: str, plan: Plan) -> None:
    from hintplan.plans.compare.diff import compare_plans

    other = hintplan.loads(json.dumps({**json.loads(plan_text), "source": "job.sql"}))
    assert other.source == "job.sql"
    assert json.loads(hintplan.dumps(other))["source"] == "job.sql"
    (change,) = compare_plans(plan, other)
    assert (change.path, change.before, change.after, change.effect.level) == ("source", None, "job.sql", "none")
