"""The processes of a job on a cluster of this machine: its driver, which is started again, and those below it."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.cluster.installed import environment, installed

DEADLINE_SECONDS = 600
POLL_SECONDS = 0.1
TARGETS = ("driver", "executor", "jvm", "worker")


class Failed(Exception):
    """The job did what it must not do, or did nothing for too long."""


@dataclass(slots=True, kw_only=True)
class Driver:
    """``hintplan run`` as a process of its own, started again when it was killed."""

    directory: Path
    options: Sequence[str]
    extras: Sequence[str] = ()
    needs_servers: bool = False
    """Whether it may end by itself, in words, when a server that it reads from or writes to is not there."""
    ends: int = 0
    process: subprocess.Popen[bytes] | None = None
    last_words: str = ""
    """What it said when it last ended by itself."""
    ended: set[bytes] = field(default_factory=set)
    """Applications of earlier starts, whose executors need a moment to notice."""

    def ensure_alive(self) -> None:
        """Start it, unless it runs."""
        if self.process is not None and self.process.poll() is None:
            return
        run = ["run", "plan.json", "--checkpoint", "checkpoint", "--trigger", "50 ms"]
        with open(self.directory / "driver.log", "wb") as log:
            self.process = subprocess.Popen(
                [installed(*self.extras).hintplan, *run, *self.options],
                cwd=self.directory,
                env=environment(),
                stdout=log,
                stderr=log,
            )

    def log(self) -> str:
        return (self.directory / "driver.log").read_text(encoding="utf-8", errors="replace")

    def require_alive(self) -> None:
        """Failed if it has ended by itself, unless it may; then it is started again, as whoever runs jobs would."""
        if self.process is not None and self.process.poll() is None:
            return
        said = self.log()
        if not self.needs_servers or self.process is None or self.process.returncode != 1 or _is_a_fault(said):
            raise Failed(f"the job has ended by itself:\n{said}")
        self.ends += 1
        self.last_words = said
        self.ended.update(applications().values())
        self.ensure_alive()

    def stop(self) -> None:
        """Let it end after its batch."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait(DEADLINE_SECONDS) != 128 + signal.SIGTERM:
            raise Failed(f"the job did not stop when told to:\n{self.log()}")


def _is_a_fault(said: str) -> bool:
    return "Traceback" in said or "internal error" in said


def wait_until(
    what: str, holds: Callable[[], bool], driver: Driver, progress: Callable[[], object] = lambda: None
) -> None:
    """Wait as long as ``progress`` changes, and then for DEADLINE_SECONDS; Failed if ``what`` does not come."""
    seen, deadline = progress(), time.monotonic() + DEADLINE_SECONDS
    while not holds():
        driver.require_alive()
        if (now := progress()) != seen:
            seen, deadline = now, time.monotonic() + DEADLINE_SECONDS
        if time.monotonic() > deadline:
            before = f"\nwhen it last ended by itself, it said:\n{driver.last_words}" if driver.ends else ""
            raise Failed(f"waited in vain for {what}:\n{driver.log()}{before}")
        time.sleep(POLL_SECONDS)


def descendants(root: int) -> dict[int, list[bytes]]:
    """The processes that ``root`` has started, and those they have started, by number, with the words of each."""
    found: dict[int, tuple[int, list[bytes]]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state, parent = (entry / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[:2]
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if state not in "ZX":
                found[int(entry.name)] = int(parent), words

    def below(pid: int) -> bool:
        while pid in found and pid != root:
            pid = found[pid][0]
        return pid == root

    return {pid: words for pid, (_, words) in sorted(found.items()) if below(pid) and pid != root}


def processes(target: str, driver: Driver) -> list[int]:
    """Those of the job that a kill of ``target`` may hit."""
    assert driver.process is not None
    if target == "driver":
        return [driver.process.pid]
    if target == "jvm":
        own = descendants(driver.process.pid).items()
        return [pid for pid, words in own if b"org.apache.spark.deploy.SparkSubmit" in words]
    executors = [pid for pid, application in applications().items() if application not in driver.ended]
    if target == "executor":
        return executors
    workers = (descendants(executor).items() for executor in executors)
    return [pid for found in workers for pid, words in found if b"pyspark.daemon" in words]


def applications() -> dict[int, bytes]:
    """The application of each executor."""
    words = descendants(os.getpid()).items()
    return {pid: found[found.index(b"--app-id") + 1] for pid, found in words if b"--app-id" in found}


def kill(target: str, driver: Driver, random: random.Random) -> int:
    """SIGKILL one process of that kind, as soon as there is one."""
    wait_until(f"a process to kill: {target}", lambda: bool(processes(target, driver)), driver)
    while candidates := processes(target, driver):
        pid = random.choice(candidates)
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue  # it has ended by itself since
        return pid
    return kill(target, driver, random)


def mourn(target: str, driver: Driver) -> None:
    """What must follow a kill at once; the rest is the job's own business."""
    assert driver.process is not None
    if target in ("driver", "jvm"):
        driver.ended.update(applications().values())
    if target == "driver":
        driver.process.wait(DEADLINE_SECONDS)
    elif target == "jvm":
        if driver.process.wait(DEADLINE_SECONDS) != 1 or _is_a_fault(driver.log()):
            raise Failed(f"without its JVM the job ended badly, with {driver.process.returncode}:\n{driver.log()}")
    else:
        driver.require_alive()
