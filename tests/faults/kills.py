"""A program that kills processes of a running job at random moments, and compares what comes out in the end.

    python -m tests.faults.kills --kills 200 --seed 7

The driver, its JVM, executors of a two-worker cluster and Python workers get SIGKILL, in random turns, each after a
random number of events since the kill before (commits, begun batches, state files, rows in SQLite) and a random pause.
Prints each kill. The exit code is 0 if the final tables are those of an undisturbed run and of an own computation.
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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.faults.job import Feed, expected, rows_of, write_plan
from tests.spark.cluster import on_cluster, running_cluster

ROOT = Path(__file__).parents[2]
DEADLINE_SECONDS = 240
TARGETS = ("driver", "executor", "jvm", "worker")


class Failed(Exception):
    """The job did what it must not do, or did nothing for too long."""


def commits(directory: Path) -> int:
    return sum(1 for path in directory.glob("checkpoint/*/commits/*") if path.name.isdigit())


def begun(directory: Path) -> int:
    return sum(1 for path in directory.glob("checkpoint/*/offsets/*") if path.name.isdigit())


def state_files(directory: Path) -> int:
    found = (path for path in directory.glob("checkpoint/*/state/**/*") if path.suffix in (".changelog", ".zip"))
    return sum(1 for _ in found)


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


@dataclass(slots=True, kw_only=True)
class Driver:
    """``hintplan run`` as a process of its own, started again when it was killed."""

    directory: Path
    options: Sequence[str]
    process: subprocess.Popen[bytes] | None = None
    starts: int = 0

    def start(self, plan: str = "plan.json", *options: str) -> subprocess.Popen[bytes]:
        self.starts += 1
        with open(self.directory / "driver.log", "wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "plans.cli", "run", plan, "--checkpoint", "checkpoint", *self.options, *options],
                cwd=self.directory,
                env={**os.environ, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1", "NO_COLOR": "1"},
                stdout=log,
                stderr=log,
            )
        return self.process

    def log(self) -> str:
        return (self.directory / "driver.log").read_text(encoding="utf-8", errors="replace")

    def require_alive(self) -> None:
        if self.process is None or self.process.poll() is not None:
            raise Failed(f"the job has ended by itself:\n{self.log()}")

    def finish(self) -> None:
        """Read what is left."""
        process = self.start("plan.json", "--once")
        if process.wait(DEADLINE_SECONDS) != 0:
            raise Failed(f"the last run failed:\n{self.log()}")


def wait_until(what: str, holds: Callable[[], bool], driver: Driver) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not holds():
        driver.require_alive()
        if time.monotonic() > deadline:
            raise Failed(f"waited in vain for {what}:\n{driver.log()}")
        time.sleep(0.05)


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
    executors = [pid for pid, words in descendants(os.getpid()).items() if b"--executor-id" in words]
    if target == "executor":
        return executors
    workers = (descendants(executor).items() for executor in executors)
    return [pid for found in workers for pid, words in found if b"pyspark.daemon" in words]


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
    if target == "driver":
        driver.process.wait(DEADLINE_SECONDS)
    elif target == "jvm":
        if driver.process.wait(DEADLINE_SECONDS) != 1 or "Traceback" in driver.log():
            raise Failed(f"without its JVM the job ended badly, with {driver.process.returncode}:\n{driver.log()}")
    else:
        driver.require_alive()


def run_kills(
    master: str,
    python: Path,
    directory: Path,
    *,
    kills: int,
    seed: int,
    say: Callable[[str], None],
    targets: Sequence[str],
) -> Counter[str]:
    """Kill ``kills`` times, then check the tables below ``directory``, and say how often each was hit; or Failed."""
    chance = random.Random(seed)
    feed = Feed(directory, seed)
    write_plan(directory)
    driver = Driver(directory=directory, options=on_cluster(master, python))
    hit: Counter[str] = Counter()
    queue: list[str] = []
    try:
        for number in range(1, kills + 1):
            event = chance.choice(sorted(EVENTS))
            count, most = EVENTS[event]
            before, wanted = count(directory), chance.randint(0, most)
            for _ in range(3):
                feed.add()
            if driver.process is None or driver.process.poll() is not None:
                driver.start("plan.json", "--trigger", "50 ms")
            if not queue:
                queue = chance.sample(targets, len(targets))
            target = queue.pop()
            wait_until(f"{wanted} {event}", lambda: count(directory) >= before + wanted, driver)  # noqa: B023
            pause = chance.uniform(0, 1)
            time.sleep(pause)
            pid = kill(target, driver, chance)
            hit[target] += 1
            counts = ", ".join(f"{look(directory)} {name}" for name, (look, _) in EVENTS.items())
            say(f"kill {number}: {target} {pid}, after {wanted} {event} and {pause:.2f} s; seen so far: {counts}")
            mourn(target, driver)
        if driver.process is not None and driver.process.poll() is None:
            driver.process.send_signal(signal.SIGTERM)
            if driver.process.wait(DEADLINE_SECONDS) != 143:
                raise Failed(f"the job did not stop when told to:\n{driver.log()}")
        driver.finish()
    finally:
        if driver.process is not None:
            driver.process.kill()
            driver.process.wait()
    compare(directory, feed)
    return hit


def compare(directory: Path, feed: Feed) -> None:
    """Failed unless the tables are those of the reference, and of a run of the same input that nobody disturbs."""
    calm = directory / "calm"
    calm.mkdir()
    shutil.copytree(directory / "input", calm / "input")  # with the times of the files
    write_plan(calm)
    undisturbed = Driver(directory=calm, options=["--master", "local[2]"])
    undisturbed.finish()
    wanted = expected(feed)
    for what, found in (("an undisturbed run", rows_of(calm)), ("the run with kills", rows_of(directory))):
        for table, expected_rows in wanted.items():
            if found[table] != expected_rows:
                lost = Counter(expected_rows) - Counter(found[table])
                added = Counter(found[table]) - Counter(expected_rows)
                raise Failed(f"{what} has other rows in {table}: lost {dict(lost)}, added {dict(added)}")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Kill processes of a job at random, and compare what comes out.")
    parser.add_argument("--kills", type=int, default=10, metavar="N")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="decides what is killed and when")
    parser.add_argument("--targets", default=",".join(TARGETS), metavar="A,B", help=f"of {', '.join(TARGETS)}")
    chosen = parser.parse_args(arguments)
    targets = chosen.targets.split(",")
    if unknown := set(targets) - set(TARGETS):
        parser.error(f"cannot kill {', '.join(sorted(unknown))}; known are {', '.join(TARGETS)}")
    directory = Path(tempfile.mkdtemp(prefix="hintplan-kills-"))
    started = time.monotonic()
    try:
        (directory / "cluster").mkdir()
        with running_cluster(directory / "cluster") as (master, python):
            say = lambda line: print(f"{time.monotonic() - started:7.1f} s  {line}", flush=True)  # noqa: E731
            hit = run_kills(master, python, directory, kills=chosen.kills, seed=chosen.seed, say=say, targets=targets)
            say(f"the tables are right after {', '.join(f'{hit[name]} of {name}' for name in targets)}")
    except Failed as failure:
        print(f"{failure}\nleft for a look: {directory}", file=sys.stderr)
        return 1
    shutil.rmtree(directory)
    return 0


if __name__ == "__main__":
    sys.exit(main())
