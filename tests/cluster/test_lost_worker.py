"""A stream of a join and an aggregate continues, and ends right, when a worker and its executor are killed."""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from pathlib import Path

import hintplan
from tests.cluster.installed import environment, installed
from tests.cluster.standalone import Cluster
from tests.sample import in_turn
from tests.spark.programs import CUSTOMER_ROWS, add_rows, changes, expected, fold, revenue_plan, sample

DEADLINE_SECONDS = 300


def wait_for(rows: list, directory: Path, process: subprocess.Popen[bytes]) -> None:  # type: ignore[type-arg]
    """Until the result is that of ``rows``."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while fold(changes(directory)) != expected(rows):
        assert process.poll() is None, (directory / "run.log").read_text(encoding="utf-8")
        assert time.monotonic() < deadline, (directory / "run.log").read_text(encoding="utf-8")
        threading.Event().wait(0.3)


@in_turn(1, of=2)
def test_a_stream_ends_right_when_a_worker_is_killed(cluster: Cluster, tmp_path: Path) -> None:
    rows = sample(0, 60)
    add_rows(tmp_path, "customers", CUSTOMER_ROWS)
    add_rows(tmp_path, "orders", rows[:20])
    hintplan.dump(revenue_plan(tmp_path), tmp_path / "plan.json")
    with (tmp_path / "run.log").open("wb") as log:
        command = [installed().hintplan, "run", "plan.json", "--checkpoint", "state", *cluster.options()]
        process = subprocess.Popen(command, cwd=tmp_path, env=environment(), stdout=log, stderr=log)
        try:
            wait_for(rows[:20], tmp_path, process)
            add_rows(tmp_path, "orders", rows[20:40])
            cluster.kill_worker()
            wait_for(rows[:40], tmp_path, process)
            add_rows(tmp_path, "late", rows[40:])
            wait_for(rows, tmp_path, process)
            process.send_signal(signal.SIGTERM)
            assert process.wait(DEADLINE_SECONDS) == 128 + signal.SIGTERM
        finally:
            process.kill()
            process.wait()
            cluster.restore()
    assert fold(changes(tmp_path)) == expected(rows)
