"""A job whose processes are killed at random moments comes to what an undisturbed one comes to."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.kills import TARGETS, run_kills
from tests.spark.cluster import running_cluster

pytestmark = pytest.mark.cluster

KILLS = 10


def test_ten_kills_leave_the_tables_of_an_undisturbed_run(tmp_path: Path) -> None:
    (tmp_path / "cluster").mkdir()
    with running_cluster(tmp_path / "cluster") as (master, python):
        hit = run_kills(master, python, tmp_path, kills=KILLS, seed=1, say=print, targets=TARGETS)
    assert sum(hit.values()) == KILLS
    assert set(hit) == set(TARGETS)
