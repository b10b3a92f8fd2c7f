"""A program that kills processes of a running job at random moments, and compares what comes out in the end.

    python -m tests.faults.kills --kills 200 --seed 7
    python -m tests.faults.kills --job times --kills 20
    python -m tests.faults.kills --job topics --kills 20

The installed wheel runs on a cluster of two workers that have nothing of it. The driver, its JVM, executors and Python
workers get SIGKILL, in random turns, each after a random number of events since the kill before (commits, begun
batches, state files, rows that were written) and a random pause; with ``--job topics`` the broker, the database and
the catalog as well, which are away for a while. Prints each kill. Then the driver is killed once more, and goes on with
larger micro-batches. The exit code is 0 if the results become, and stay, what SQLite makes of the input; that the same
job comes to the same when nobody disturbs it, a test says. Nothing is asked about time, beyond that something happens.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import hintplan
from tests.cluster.standalone import Cluster, running_cluster
from tests.faults.job import files_job
from tests.faults.jobs import Job, have_begun
from tests.faults.processes import TARGETS, Driver, Failed, kill, mourn, wait_until
from tests.faults.times_job import times_job
from tests.faults.topics_job import topics_job
from tests.spark.quick import quick_jvms

# Kills in turn may hit each attempt of a task, and Spark would give up after four.
PATIENT = {"spark.task.maxFailures": "100", "spark.stage.maxConsecutiveAttempts": "100"}
MOST_AWAY_SECONDS = 4.0

JOBS: Mapping[str, Callable[[Path, int], AbstractContextManager[Job]]] = {
    "files": files_job,
    "times": times_job,
    "topics": topics_job,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """What is hit, and when: so many events and seconds after more input has come."""

    target: str
    event: str
    wanted: int
    pause: float


def schedule(kills: int, targets: Sequence[str], most: Mapping[str, int], chance: random.Random) -> Iterator[Kill]:
    """The kills in order; each target has its turn before any has another, and waits for no more than ``most``."""
    queue: list[str] = []
    for _ in range(kills):
        queue = queue or chance.sample(targets, len(targets))
        event = chance.choice(sorted(most))
        wanted = chance.randint(0, most[event])
        yield Kill(target=queue.pop(), event=event, wanted=wanted, pause=chance.uniform(0, 1))


def run_kills(
    job: Job,
    cluster: Cluster,
    directory: Path,
    *,
    kills: int,
    seed: int,
    say: Callable[[str], None],
    targets: Sequence[str],
) -> Counter[str]:
    """Kill ``kills`` times, then check what ``job`` has written, and say how often each was hit; or Failed."""
    hintplan.dump(job.plan, directory / "plan.json")
    driver = Driver(
        directory=directory, options=[*cluster.options(**PATIENT, **job.conf), *job.options], extras=job.extras,
        needs_servers=bool(job.servers),
    )  # fmt: skip
    chance = random.Random(seed)
    hit: Counter[str] = Counter()
    most = {name: most for name, (_, most) in job.events.items()}
    try:
        for number, planned in enumerate(schedule(kills, targets, most, random.Random(seed)), start=1):
            target, event = planned.target, planned.event
            count = job.events[event][0]
            enough = count() + planned.wanted
            for _ in range(3):
                job.feed()
            driver.ensure_alive()
            wait_until(f"{planned.wanted} {event}", lambda: count() >= enough, driver)  # noqa: B023
            time.sleep(planned.pause)
            counts = ", ".join(f"{look()} {name}" for name, (look, _) in job.events.items())
            if target in job.servers:
                away = chance.uniform(0, MOST_AWAY_SECONDS)
                job.servers[target].kill()
                time.sleep(away)
                job.servers[target].start()
                which = f"away for {away:.2f} s"
            else:
                which = str(kill(target, driver, chance))
                mourn(target, driver)
            hit[target] += 1
            when = f"after {planned.wanted} {event} and {planned.pause:.2f} s"
            say(f"kill {number}: {target} {which}, {when}; seen so far: {counts}")
        driver.ensure_alive()
        # Larger batches need a watermark before them, or an order in them that is meant to be late is not.
        for _ in range(6):
            job.feed()
        wait_until("the first batches of each query", lambda: have_begun(directory), driver)
        hintplan.dump(job.rest, directory / "plan.json")
        kill("driver", driver, chance)
        mourn("driver", driver)
        driver.ensure_alive()
        read_all(job, driver)
    finally:
        if driver.process is not None:
            driver.process.kill()
            driver.process.wait()
    if job.servers:
        say(f"the job has ended {driver.ends} times for want of a server, and was started again")
    return hit


def read_all(job: Job, driver: Driver) -> None:
    """Let the job read what is left, and stop it; Failed unless its results become right, and still are at its end."""
    try:
        wait_until(
            "the right results", lambda: job.wrong() == "", driver, lambda: [look() for look, _ in job.events.values()]
        )
    except Failed as failure:
        raise Failed(f"{failure}\n{job.wrong()}") from failure
    driver.stop()
    if difference := job.wrong():
        raise Failed(f"the results were right before the job ended: {difference}")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Kill processes of a job at random, and compare what comes out.")
    parser.add_argument("--job", default="files", choices=JOBS)
    parser.add_argument("--kills", type=int, default=10, metavar="N")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="decides what is killed and when")
    parser.add_argument("--targets", metavar="A,B", help="all if not given")
    chosen = parser.parse_args(arguments)
    quick_jvms()
    directory = Path(tempfile.mkdtemp(prefix="hintplan-kills-"))
    started = time.monotonic()
    say = lambda line: print(f"{time.monotonic() - started:7.1f} s  {line}", flush=True)  # noqa: E731
    try:
        (directory / "cluster").mkdir()
        # Processes that are killed leave files of Spark's behind, which go with the directory.
        os.environ["SPARK_LOCAL_DIRS"] = str(directory / "local")
        with JOBS[chosen.job](directory, chosen.seed) as job:
            known = (*TARGETS, *job.servers)
            targets = chosen.targets.split(",") if chosen.targets else known
            if unknown := set(targets) - set(known):
                parser.error(f"cannot kill {', '.join(sorted(unknown))}; known are {', '.join(known)}")
            with running_cluster(directory / "cluster", python=job.python) as cluster:
                hit = run_kills(job, cluster, directory, kills=chosen.kills, seed=chosen.seed, say=say, targets=targets)
        say(f"the results are right after {', '.join(f'{hit[name]} of {name}' for name in targets)}")
    except (Failed, subprocess.TimeoutExpired) as failure:
        print(f"{failure}\nleft for a look: {directory}", file=sys.stderr)
        return 1
    shutil.rmtree(directory, ignore_errors=True)  # executors may just be ending
    return 0


if __name__ == "__main__":
    sys.exit(main())
