"""Signals to all processes of a run at once, as systemd, Kubernetes with ``tini -g``, a terminal and ``timeout`` send
them, in the middle of a batch that a Python worker is at; and no process is left, whatever becomes of the driver.
"""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cluster.installed import environment, installed
from tests.faults.processes import descendants
from tests.sample import sampled

DEADLINE_SECONDS = 120

WAITS = """
from hintplan.runtime.functions import ScalarFunction


class Wait(ScalarFunction):
    arguments, result = ("BIGINT",), "BIGINT"

    def eval(self, k):
        return k + len(open({pipe!r}).read())
"""
SCRIPT = """
CREATE TABLE o (id BIGINT) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = 'orders');
CREATE TABLE r (n BIGINT, total BIGINT) WITH ('connector' = 'print');
CREATE FUNCTION wait AS 'waits.Wait' LANGUAGE PYTHON;
CREATE TABLE g (n BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '1');
CREATE TABLE nothing (n BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO r SELECT COUNT(*), SUM(wait(id)) FROM o;
INSERT INTO nothing SELECT n FROM g;
"""


@dataclass(slots=True)
class Run:
    """A run whose first batch calls a function that waits for whoever writes into ``pipe``."""

    directory: Path
    process: subprocess.Popen[bytes]
    pipe: Path
    held: int = -1

    def said(self) -> str:
        return (self.directory / "err").read_text(encoding="utf-8")

    def wait_for(self, what: str, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not holds():
            assert time.monotonic() < deadline, f"waited in vain for {what}:\n{self.said()}"
            try:
                self.process.wait(0.05)
            except subprocess.TimeoutExpired:
                continue
            assert holds(), f"waited in vain for {what}, it has ended with {self.process.returncode}:\n{self.said()}"

    def wait_for_generator(self) -> None:
        """Wait for the process that generates rows, which a signal to all ends as long as it starts."""
        self.wait_for(
            "the process that generates rows", lambda: any(map(generates, descendants(self.process.pid).values()))
        )

    def is_called(self) -> bool:
        """Whether the function waits, of which the pipe is held open from then on."""
        try:
            self.held = os.open(self.pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:  # nobody reads
                raise
        return self.held >= 0

    def release(self) -> None:
        """Let the function go on."""
        if self.held >= 0:
            os.close(self.held)
            self.held = -1


def is_there(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def generates(words: list[bytes]) -> bool:
    """Whether Spark asks this process for the offsets of a source in Python."""
    return any(b"streaming_source_runner" in word for word in words)


def left(pids: Iterable[int]) -> list[int]:
    """Which of the processes are there, after a while in which they may end."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while (found := [pid for pid in pids if is_there(pid)]) and time.monotonic() < deadline:
        threading.Event().wait(0.1)
    return found


@contextmanager
def at_work(directory: Path, *options: str) -> Iterator[Run]:
    pipe = directory / "pipe"
    os.mkfifo(pipe)
    (directory / "orders").mkdir()
    (directory / "orders" / "1.json").write_text('{"id": 7}\n', encoding="utf-8")
    (directory / "waits.py").write_text(WAITS.format(pipe=str(pipe)), encoding="utf-8")
    (directory / "job.sql").write_text(SCRIPT, encoding="utf-8")
    hintplan, variables = str(installed().hintplan), environment(PYTHONPATH=str(directory))
    allowed = ("--allow-module", "waits")
    made = [hintplan, "compile", "job.sql", *allowed, "-o", "plan.json"]
    subprocess.run(made, cwd=directory, env=variables, check=True, capture_output=True)
    command = [hintplan, "run", "plan.json", *allowed, "--checkpoint", "checkpoint", "--master", "local[2]", *options]
    with open(directory / "out", "wb") as out, open(directory / "err", "wb") as err:
        # Shells let what they start in the background ignore SIGQUIT, tests among it.
        process = subprocess.Popen(
            command, cwd=directory, env=variables, stdout=out, stderr=err, stdin=subprocess.DEVNULL,
            start_new_session=True, preexec_fn=lambda: signal.signal(signal.SIGQUIT, signal.SIG_DFL),
        )  # fmt: skip
    run = Run(directory, process, pipe)
    try:
        yield run
    finally:
        for pid in (process.pid, *descendants(process.pid)):
            if is_there(pid):
                os.kill(pid, signal.SIGKILL)
        process.wait(30)
        run.release()


def to_group(run: Run, number: int) -> None:
    os.killpg(run.process.pid, number)


def to_all(run: Run, number: int) -> None:
    """As to all processes of a control group: the driver first, or last, makes no difference."""
    for pid in reversed((run.process.pid, *descendants(run.process.pid))):
        with suppress(ProcessLookupError):  # programs that Spark's scripts call end by themselves
            os.kill(pid, number)


@pytest.mark.parametrize(
    ("send", "number"),
    sampled([(to_group, signal.SIGTERM), (to_group, signal.SIGINT), (to_all, signal.SIGTERM)], keep=1),
)
def test_a_signal_to_all_processes_lets_the_batch_end(
    tmp_path: Path, send: Callable[[Run, int], None], number: signal.Signals
) -> None:
    with at_work(tmp_path, "--grace", "100 s") as run:
        run.wait_for("the call", run.is_called)
        run.wait_for_generator()
        processes = descendants(run.process.pid)
        assert any(b"org.apache.spark.deploy.SparkSubmit" in words for words in processes.values())
        assert sum(b"hintplan.runtime.worker.daemon" in words for words in processes.values()) >= 2
        send(run, number)
        run.wait_for("the word", lambda: "stopping after this batch" in run.said())
        # Spark starts another planner of sources in Python when it next plans one; a batch at work needs none.
        assert all(is_there(pid) for pid, words in processes.items() if b"pyspark.daemon" not in words)
        run.release()
        assert run.process.wait(DEADLINE_SECONDS) == 128 + number, run.said()
        assert (tmp_path / "out").read_text(encoding="utf-8") == "+I[1, 7]\n"
        assert "\nstopped after " in run.said()
        assert left(processes) == []


def test_a_batch_that_goes_on_is_stopped_at_the_end_of_the_grace_time(tmp_path: Path) -> None:
    with at_work(tmp_path, "--grace", "1 s") as run:
        run.wait_for("the call", run.is_called)
        run.wait_for_generator()
        processes = descendants(run.process.pid)
        to_all(run, signal.SIGTERM)
        assert run.process.wait(DEADLINE_SECONDS) == 143, run.said()
        assert left(processes) == []


@pytest.mark.parametrize("number", sampled([signal.SIGKILL, signal.SIGHUP, signal.SIGQUIT], keep=1))
def test_a_driver_that_is_killed_leaves_no_process(tmp_path: Path, number: signal.Signals) -> None:
    with at_work(tmp_path) as run:
        run.wait_for("the call", run.is_called)
        processes = descendants(run.process.pid)
        run.process.send_signal(number)
        assert run.process.wait(DEADLINE_SECONDS) == -number
        assert left(processes) == []


def test_a_run_that_still_starts_is_stopped_and_leaves_no_process(tmp_path: Path) -> None:
    with at_work(tmp_path) as run:
        run.wait_for("the JVM", lambda: any(b"java" in words[0] for words in descendants(run.process.pid).values()))
        processes = descendants(run.process.pid)
        to_all(run, signal.SIGTERM)
        assert run.process.wait(DEADLINE_SECONDS) == 143, run.said()
        assert "Traceback" not in run.said()
        assert left(processes) == []
