"""The cost of a TTL from a checkpoint: `check` reads it by itself, `diff`, `set` and `advise` with --checkpoint."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import hintplan
from hintplan.plans.edit.edit import set_value
from hintplan.plans.model.plan import Plan
from hintplan.runtime.inspect.checked import checked_here
from tests.plans.in_process import hintplan as command
from tests.runtime.inspect.test_evidence import MINUTE, THIRD, run

LEFT = "join_l_r.state.leftState.ttl"
SHORTER = "100 % of the 2 matches of the last 1 d 7 h came later than that"
LONGER = "at least 1 match of the last 1 d 7 h came too late for the TTL before"


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    """A plan in ``plan.json`` that ran for 31 hours on ``checkpoint``."""
    plan = run(tmp_path / "checkpoint")
    hintplan.dump(plan, tmp_path / "plan.json")
    return plan


def test_check_adds_the_matches_to_the_rows_that_a_shorter_ttl_hides(plan: Plan, tmp_path: Path) -> None:
    checkpoint, at = str(tmp_path / "checkpoint"), THIRD + 10 * MINUTE
    # One row of r found its row of l, after an hour; another one came after 31 hours, when the row had expired.
    shorter = checked_here(set_value(plan, LEFT, "30 min")[0], checkpoint, at=at)
    (line,) = (line for line in shorter.text().splitlines() if "leftState.ttl" in line)
    assert "older rows expire: 0 of 1 row" in line
    assert line.endswith(SHORTER)
    (change,) = (change for change in shorter.json()["changes"] if change["path"] == "join_l_r.leftState.ttl")
    assert (change["cost"]["rows-before"], change["cost"]["kept-least"]) == (1, 0.0)
    longer = checked_here(set_value(plan, LEFT, "3 d")[0], checkpoint, at=at).text()
    assert LONGER in longer


def test_commands_read_the_checkpoint(plan: Plan, tmp_path: Path) -> None:
    hintplan.dump(set_value(plan, LEFT, "30 min")[0], tmp_path / "edited.json")
    given = ("--checkpoint", "checkpoint")
    assert SHORTER in command("diff", "plan.json", "edited.json", *given, folder=tmp_path).stdout
    assert SHORTER in command("set", "plan.json", "join_l_r.leftState.ttl=30 min", *given, folder=tmp_path).stdout
    found = json.loads(command("advise", "edited.json", *given, "--json", folder=tmp_path).stdout)
    left = next(state for state in found["states"] if state["state"] == "leftState")
    assert left["advice"]["observed"]["hits"] == 1
