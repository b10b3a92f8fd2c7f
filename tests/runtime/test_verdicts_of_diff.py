"""What `diff` says of running state is what `run` does: it refuses a checkpoint exactly if the plan is incompatible."""

from __future__ import annotations

from pathlib import Path

import pytest

import plans
from plans.diff import diff
from runtime.checkpoint import compare, facts_of
from tests.plans.test_effects import SAMPLES, changed_plans


def refused(before: plans.Plan, after: plans.Plan) -> bool:
    """Whether a run refuses to continue the checkpoint that ``before`` wrote."""
    try:
        compare("checkpoint", facts_of(before, 4), after)
    except plans.RunError:
        return True
    return False


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_a_run_refuses_a_checkpoint_exactly_if_diff_calls_the_plan_incompatible(path: Path) -> None:
    verdicts = set()
    for leaf, before, after in changed_plans(path):
        incompatible = any(change.effect.level == "incompatible" for change in diff(before, after))
        assert incompatible == refused(before, after), leaf
        verdicts.add(incompatible)
    assert verdicts == {True, False}
