"""A program that kills processes of a running job at random moments, and compares what comes out in the end.

    python -m tests.faults.kills --kills 200 --seed 7

The installed wheel runs on a cluster of two workers that have nothing of it. The driver, its JVM, executors and Python
workers get SIGKILL, in random turns, each after a random number of events since the kill before (commits, begun
batches, state files, rows in SQLite) and a random pause.
Prints each kill. The exit code is 0 if the tables then become, and stay, what SQLite makes of the input; that the same
job comes to the same when nobody disturbs it, a test says. Nothing is asked about time, beyond that something happens.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import plans
from tests.cluster.installed import environment, installed
from tests.cluster.standalone import Cluster, running_cluster
from tests.faults.job import Feed, compiled, expected, rows_of
from tests.spark.quick import quick_jvms

DEADLINE_SECONDS = 240
POLL_SECONDS = 0.1
TARGETS = ("driver", "executor", "jvm", "worker")
# Kills in turn may hit each attempt of a task, and Spark would give up after four.
PATIENT = {"spark.task.maxFailures": "100", "spark.stage.maxConsecutiveAttempts": "100"}


class Failed(Exception):
    """The job did what it must not do, or did nothing for too long."""


def commits(directory: Path) -> int:
    return versions(directory, "*/commits")


def begun(directory: Path) -> int:
    return versions(directory, "*/offsets")


def state_files(directory: Path) -> int:
    return versions(directory, "*/state/*/*/*")


def versions(directory: Path, where: str) -> int:
    """How many numbers have been used as names, up to the newest: Spark removes the oldest files."""
    found = (
        [int(path.name.partition(".")[0]) + 1 for path in place.iterdir() if path.name.partition(".")[0].isdigit()]
        for place in directory.glob(f"checkpoint/{where}")
    )
    return sum(max(numbers, default=0) for numbers in found)


def rows(directory: Path) -> int:
    try:
        connection = sqlite3.connect(f"file:{directory}/result.db?mode=ro", uri=True, timeout=5)
        try:
            return int(connection.execute("SELECT COUNT(*) FROM copies").fetchone()[0])
        finally:
            connection.close()
    except sqlite3.OperationalError:
        return 0  # not there yet, or written to at this moment


EVENTS: dict[str, tuple[Callable[[Path], int], int]] = {
    "commits": (commits, 3), "begun batches": (begun, 3), "state files": (state_files, 4), "rows": (rows, 20)
}  # fmt: skip
"""What is counted, and up to how many of it a kill waits for: no more than three more files of each table bring."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """What is hit, and when: so many events and seconds after more input has come."""

    target: str
    event: str
    wanted: int
    pause: float


def schedule(kills: int, targets: Sequence[str], chance: random.Random) -> Iterator[Kill]:
    """The kills in order; each target has its turn before any has another."""
    queue: list[str] = []
    for _ in range(kills):
        queue = queue or chance.sample(targets, len(targets))
        event = chance.choice(sorted(EVENTS))
        most = EVENTS[event][1]
        yield Kill(target=queue.pop(), event=event, wanted=chance.randint(0, most), pause=chance.uniform(0, 1))


@dataclass(slots=True, kw_only=True)
class Driver:
    """``hintplan run`` as a process of its own, started again when it was killed."""

    directory: Path
    options: Sequence[str]
    process: subprocess.Popen[bytes] | None = None
    ended: set[bytes] = field(default_factory=set)
    """Applications of earlier starts, whose executors need a moment to notice."""

    def ensure_alive(self) -> None:
        """Start it, unless it runs."""
        if self.process is not None and self.process.poll() is None:
            return
        run = ["run", "plan.json", "--checkpoint", "checkpoint", "--trigger", "50 ms"]
        with open(self.directory / "driver.log", "wb") as log:
            self.process = subprocess.Popen(
                [installed().hintplan, *run, *self.options],
                cwd=self.directory,
                env=environment(),
                stdout=log,
                stderr=log,
            )

    def log(self) -> str:
        return (self.directory / "driver.log").read_text(encoding="utf-8", errors="replace")

    def require_alive(self) -> None:
        if self.process is None or self.process.poll() is not None:
            raise Failed(f"the job has ended by itself:\n{self.log()}")

    def stop(self) -> None:
        """Let it end after its batch."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait(DEADLINE_SECONDS) != 128 + signal.SIGTERM:
            raise Failed(f"the job did not stop when told to:\n{self.log()}")


def wait_until(what: str, holds: Callable[[], bool], driver: Driver) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not holds():
        driver.require_alive()
        if time.monotonic() > deadline:
            raise Failed(f"waited in vain for {what}:\n{driver.log()}")
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
        if driver.process.wait(DEADLINE_SECONDS) != 1 or "Traceback" in driver.log():
            raise Failed(f"without its JVM the job ended badly, with {driver.process.returncode}:\n{driver.log()}")
    else:
        driver.require_alive()


def run_kills(
    cluster: Cluster,
    directory: Path,
    *,
    kills: int,
    seed: int,
    say: Callable[[str], None],
    targets: Sequence[str],
) -> Counter[str]:
    """Kill ``kills`` times, then check the tables below ``directory``, and say how often each was hit; or Failed."""
    feed = Feed(directory, seed)
    plans.dump(compiled(directory), directory / "plan.json")
    driver = Driver(directory=directory, options=cluster.options(**PATIENT))
    chance = random.Random(seed)
    hit: Counter[str] = Counter()
    try:
        for number, planned in enumerate(schedule(kills, targets, random.Random(seed)), start=1):
            target, event = planned.target, planned.event
            count = EVENTS[event][0]
            enough = count(directory) + planned.wanted
            for _ in range(3):
                feed.add()
            driver.ensure_alive()
            wait_until(f"{planned.wanted} {event}", lambda: count(directory) >= enough, driver)  # noqa: B023
            time.sleep(planned.pause)
            pid = kill(target, driver, chance)
            hit[target] += 1
            counts = ", ".join(f"{look(directory)} {name}" for name, (look, _) in EVENTS.items())
            when = f"after {planned.wanted} {event} and {planned.pause:.2f} s"
            say(f"kill {number}: {target} {pid}, {when}; seen so far: {counts}")
            mourn(target, driver)
        driver.ensure_alive()
        read_all(driver)
    finally:
        if driver.process is not None:
            driver.process.kill()
            driver.process.wait()
    return hit


def read_all(driver: Driver) -> None:
    """Let the job read what is left, and stop it; Failed unless the tables become right, and still are when it ends."""
    wanted = expected(driver.directory)

    def wrong() -> str:
        found = rows_of(driver.directory)
        changes = {name: (Counter(wanted[name]), Counter(found[name])) for name in wanted}
        return ", ".join(
            f"{name} has lost {dict(right - there)} and added {dict(there - right)}"
            for name, (right, there) in changes.items()
            if right != there
        )

    def right() -> bool:
        try:
            return not wrong()
        except sqlite3.OperationalError:
            return False  # it is written to at this moment

    try:
        wait_until("the right tables", right, driver)
    except Failed as failure:
        raise Failed(f"{failure}\n{wrong()}") from failure
    driver.stop()
    if difference := wrong():
        raise Failed(f"the tables were right before the job ended: {difference}")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Kill processes of a job at random, and compare what comes out.")
    parser.add_argument("--kills", type=int, default=10, metavar="N")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="decides what is killed and when")
    parser.add_argument("--targets", default=",".join(TARGETS), metavar="A,B", help=f"of {', '.join(TARGETS)}")
    chosen = parser.parse_args(arguments)
    targets = chosen.targets.split(",")
    if unknown := set(targets) - set(TARGETS):
        parser.error(f"cannot kill {', '.join(sorted(unknown))}; known are {', '.join(TARGETS)}")
    quick_jvms()
    directory = Path(tempfile.mkdtemp(prefix="hintplan-kills-"))
    started = time.monotonic()
    try:
        (directory / "cluster").mkdir()
        # Processes that are killed leave files of Spark's behind, which go with the directory.
        os.environ["SPARK_LOCAL_DIRS"] = str(directory / "local")
        with running_cluster(directory / "cluster") as cluster:
            say = lambda line: print(f"{time.monotonic() - started:7.1f} s  {line}", flush=True)  # noqa: E731
            hit = run_kills(cluster, directory, kills=chosen.kills, seed=chosen.seed, say=say, targets=targets)
            say(f"the tables are right after {', '.join(f'{hit[name]} of {name}' for name in targets)}")
    except (Failed, subprocess.TimeoutExpired) as failure:
        print(f"{failure}\nleft for a look: {directory}", file=sys.stderr)
        return 1
    shutil.rmtree(directory, ignore_errors=True)  # executors may just be ending
    return 0


if __name__ == "__main__":
    sys.exit(main())
