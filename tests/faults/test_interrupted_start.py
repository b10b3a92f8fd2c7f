"""A run that is told to stop, or loses its JVM, while Spark starts: what it says, and that nothing stays behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import hintplan
from tests.faults.processes import descendants
from tests.sample import each_once
from tests.spark.programs import revenue_plan

pytestmark = [pytest.mark.spark, pytest.mark.part(of=2)]

DEADLINE_SECONDS = 120


def poll(what: str, holds: Callable[[], list[int]]) -> list[int]:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not (found := holds()):
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        threading.Event().wait(0.05)
    return found


def java_of(process: subprocess.Popen[str]) -> list[int]:
    """The JVM of Spark; a short one before it finds the command line."""
    return [
        pid
        for pid, words in descendants(process.pid).items()
        if words[0].endswith(b"java") and words.count(b"org.apache.spark.deploy.SparkSubmit") and words[1] == b"-cp"
        if b"org.apache.spark.launcher.Main" not in words
    ]


def started(directory: Path) -> subprocess.Popen[str]:
    """A run whose JVM has just begun."""
    hintplan.dump(revenue_plan(directory), directory / "plan.json")
    command = [sys.executable, "-m", "hintplan", "run", "plan.json", "--once", "--master", "local[1]"]
    with (directory / "said").open("w") as said:
        return subprocess.Popen(command, cwd=directory, stdout=said, stderr=said, text=True)


def has_ended(pid: int) -> list[int]:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return [pid]
    return [pid] if state in "ZX" else []


@pytest.mark.parametrize(("number", "times"), each_once([signal.SIGINT, signal.SIGTERM], [1, 2]))
def test_a_signal_ends_a_run_that_starts(tmp_path: Path, number: signal.Signals, times: int) -> None:
    process = started(tmp_path)
    (java,) = poll("the JVM", lambda: java_of(process))
    said = tmp_path / "said"
    process.send_signal(number)
    if times == 2:
        poll("the answer", lambda: [1] if "stopping" in said.read_text() else [])
        process.send_signal(number)
    assert process.wait(DEADLINE_SECONDS) == 128 + number
    assert "stopping as soon as Spark has started; once more to stop now" in said.read_text()
    poll("the end of the JVM", lambda: has_ended(java))


def test_a_jvm_that_ends_while_it_starts_is_named(tmp_path: Path) -> None:
    process = started(tmp_path)
    (java,) = poll("the JVM", lambda: java_of(process))
    os.kill(java, signal.SIGKILL)
    assert process.wait(DEADLINE_SECONDS) == 1
    said = (tmp_path / "said").read_text()
    assert "Spark cannot be started: " in said
    assert "internal error" not in said
