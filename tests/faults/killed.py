"""A run as a process that is killed with all that it has started.

with running(directory, "--trigger", "10 ms"):
    ...                                    # until something has happened; then its whole group gets SIGKILL
with running(directory, "--once") as process:
    assert process.wait(DEADLINE_SECONDS) == 0
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.connectors.messages.broker import spark_conf

__all__ = ["DEADLINE_SECONDS", "KILLS", "running"]

ROOT = Path(__file__).parents[2]
KILLS = 4
DEADLINE_SECONDS = 180


@contextmanager
def running(directory: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """``hintplan run plan.json`` in ``directory``, which prints into ``log`` there."""
    command = [sys.executable, "-c", "from hintplan.plans.cli import main; main()", "run", "plan.json"]
    allowed = ["--checkpoint", "checkpoint", "--master", "local[2]", "--allow-env", "HINTPLAN_TEST_PASSWORD"]
    conf = [part for key, value in spark_conf().items() for part in ("--conf", f"{key}={value}")]
    with (directory / "log").open("ab") as log:
        process = subprocess.Popen(
            [*command, *allowed, *conf, *options],
            cwd=directory, stdout=log, stderr=log, start_new_session=True,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
        )  # fmt: skip
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(30)
