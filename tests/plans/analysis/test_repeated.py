"""Lookups that are alike: how often they are asked, and edits of one of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import hintplan as api
from hintplan.plans.analysis.repeated import one_sided_changes, one_sided_edits, repeated, times_computed
from hintplan.plans.edit.edit import set_value
from tests.plans.in_process import hintplan
from tests.plans.lint.lint_examples import BRANCHES

ONE, OTHER = "lookup_r", "lookup_r_in_priced"


@pytest.fixture
def plan_file(tmp_path: Path) -> Path:
    path = tmp_path / "plan.json"
    path.write_bytes(api.dumps(BRANCHES))
    return path


def test_both_branches_ask() -> None:
    (found,) = repeated(BRANCHES)
    assert (found.target, found.operators, found.times) == ("rates", (ONE, OTHER), 2)
    assert [times_computed(BRANCHES)[name] for name in (ONE, OTHER)] == [1, 1]


def test_set_tells_of_the_branch_that_stays_as_it_was(plan_file: Path) -> None:
    done = hintplan("set", plan_file, f"{ONE}.async.capacity=50")
    assert done.returncode == 0
    (note,) = [line for line in done.stderr.splitlines() if line.startswith("note:")]
    assert note == (
        f"note: {ONE}.async.capacity: 50, applies to this operator alone: '{OTHER}', which looks 'rates' up by the "
        "same columns, has 100"
    )


def test_set_of_both_branches_or_back_to_what_the_other_has_tells_nothing(plan_file: Path) -> None:
    both = hintplan("set", plan_file, f"{ONE}.async.capacity=50", f"{OTHER}.async.capacity=50")
    assert (both.returncode, "note:" in both.stderr) == (0, False)
    apart = hintplan("set", plan_file, f"{OTHER}.async.capacity=60")
    assert "has 50" in apart.stderr
    again = hintplan("set", plan_file, f"{OTHER}.async.capacity=50")
    assert (again.returncode, "note:" in again.stderr) == (0, False)


def test_a_group_that_is_switched_on_or_off_in_one_branch_is_told() -> None:
    retrying, _ = set_value(BRANCHES, f"{ONE}.retry", "2 x 10 s")
    on = {change.path: (change.value, change.other_value) for change in one_sided_changes(BRANCHES, retrying)}
    assert on[f"{ONE}.retry.max-attempts"] == (2, None)
    both, _ = set_value(retrying, f"{OTHER}.retry", "2 x 10 s")
    assert list(one_sided_changes(BRANCHES, both)) == []
    off, _ = set_value(both, f"{ONE}.retry", "off")
    gone = {change.path: (change.value, change.other_value) for change in one_sided_changes(both, off)}
    assert gone[f"{ONE}.retry.max-attempts"] == (None, 2)


def test_a_plan_whose_edges_are_wrong_has_no_branches() -> None:
    edited, _ = set_value(BRANCHES, f"{ONE}.async.capacity", "50")
    broken = replace(edited, operators=edited.operators[1:])
    assert (list(repeated(broken)), list(one_sided_edits(broken))) == ([], [])
