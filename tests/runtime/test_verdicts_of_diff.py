"""What `diff` says of running state is what `run` does on the checkpoint of the old plan, and what `check` tells."""

from __future__ import annotations

from pathlib import Path

import pytest

import hintplan
import hintplan.plans.settings.effects
from hintplan.plans.checkpoint.continuation import Continuation, continuation, record_after, refuse
from hintplan.plans.checkpoint.record import CheckpointRecord, parse_record, record_line
from hintplan.plans.compare.diff import compare_plans
from tests.plans.compare.test_effects import SAMPLES, changed_plans

pytestmark = pytest.mark.part(of=2)


def written_by(plan: hintplan.Plan) -> CheckpointRecord | None:
    """What a checkpoint says of ``plan`` once it has run on it, read back."""
    written = record_after(continuation(None, plan), None, plan, partitions=4, spark="4.3.0")
    assert written is not None
    return parse_record([record_line(written)], "checkpoint")


def refused(found: Continuation, *, allow_drop: bool) -> bool:
    """Whether a run refuses to continue the checkpoint."""
    try:
        refuse(found, "checkpoint", allow_drop=allow_drop)
    except hintplan.RunError:
        return True
    return False


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_a_run_refuses_what_diff_calls_incompatible_and_wants_consent_to_what_it_calls_a_drop(path: Path) -> None:
    verdicts = set()
    record = written_by(hintplan.load(path))
    for leaf, before, after in changed_plans(path):
        found = continuation(record, after)
        worst = max(
            (change.effect for change in compare_plans(before, after)),
            key=lambda e: hintplan.plans.settings.effects.LEVELS.index(e.level),
        )
        assert (worst.level == "incompatible") == refused(found, allow_drop=True), leaf
        assert (worst.level in ("drop", "incompatible")) == refused(found, allow_drop=False), leaf
        verdicts.add(worst.level)
    assert {"restart", "drop"} < verdicts
