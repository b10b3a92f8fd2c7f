"""A soak: a job that runs for a long time, watched for what grows.

    python -m tests.soak --minutes 30

Runs ``hintplan run`` on files that keep coming, with a lookup cache, a join, an aggregate, TTLs and a database sink.
Prints memory, open files, files on disk and batch times once a minute; fails if one of them grows
(:mod:`tests.soak.growth`), if the run ends by itself, or if the totals in the end are not those of what was written.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

import hintplan
from tests.soak.growth import BOUNDS, MIB, grows
from tests.soak.job import Feed, compiled, totals

_PAUSE_SECONDS = 1.0
_FIRST_BATCH_SECONDS = 300
_LAST_BATCHES_SECONDS = 300
# Little, so that what Spark keeps for so many batches, and the heap, are full within the first half.
_CONF = (
    "spark.driver.memory=1g",
    "spark.sql.streaming.minBatchesToRetain=20",
    "spark.cleaner.periodicGC.interval=2min",
    "spark.ui.enabled=false",
)


class Run:
    """The process of the job, and the times of its batches."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._durations: list[int] = []
        hintplan.dump(compiled(directory), directory / "soak.json")
        (directory / "local").mkdir()
        conf = [word for setting in _CONF for word in ("--conf", setting)]
        words = ["run", str(directory / "soak.json"), "--checkpoint", str(directory / "checkpoint"), "--json"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "hintplan", *words, "--master", "local[2]", "--trigger", "2 s", *conf],
            stdout=subprocess.PIPE,
            stderr=(directory / "stderr").open("wb"),
            env={**os.environ, "SPARK_LOCAL_DIRS": str(directory / "local")},
            text=True,
        )
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            event = json.loads(line)
            if event["event"] == "batch" and event["rows_in"]:
                self._durations.append(event["duration_ms"])

    @property
    def ended(self) -> bool:
        return self.process.poll() is not None

    def sample(self) -> dict[str, float]:
        """What the job uses now, in bytes and files, and the median of the batches since the last sample."""
        durations, self._durations = self._durations, []
        driver = psutil.Process(self.process.pid)
        memory = {"driver JVM": 0, "driver Python": driver.memory_info().rss, "workers": 0}
        opened = driver.num_fds()
        for child in driver.children(recursive=True):
            try:
                memory["driver JVM" if child.name() == "java" else "workers"] += child.memory_info().rss
                opened += child.num_fds()
            except psutil.NoSuchProcess:  # a worker that has just ended
                continue
        return {
            **memory,
            "open files": opened,
            "checkpoint files": _files(self.directory / "checkpoint"),
            "worker files": _files(self.directory / "local"),
            "batch ms": statistics.median(durations) if durations else float("nan"),
            "batches": len(durations),
        }

    def stop(self) -> None:
        """End the run after the batch in progress."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(120)


def _files(directory: Path) -> int:
    return sum(len(names) for _, _, names in os.walk(directory))


def soak(minutes: float, seed: int, directory: Path) -> list[str]:
    """Run the job for ``minutes`` and say what is wrong with it."""
    feed = Feed(directory, seed)
    feed.add()
    run = Run(directory)
    samples: list[dict[str, float]] = []
    try:
        if not _reaches(feed, run, _FIRST_BATCH_SECONDS):
            return [f"no first batch: {(directory / 'stderr').read_text()[-2000:]}"]
        run.sample()
        started = time.monotonic()
        while (passed := time.monotonic() - started) < minutes * 60 and not run.ended:
            feed.add()
            # What keeps the pace of the input, and of the samples; the job is not waited for.
            time.sleep(_PAUSE_SECONDS)
            if passed >= len(samples) * 60 + 60 or passed + _PAUSE_SECONDS >= minutes * 60:
                samples.append(run.sample())
                print(_line(passed, samples[-1], feed), flush=True)
        right = _reaches(feed, run, _LAST_BATCHES_SECONDS)
        wrong = [] if right else [f"the totals are {totals(directory)}, and should be {feed.expected}"]
        if run.ended:
            wrong.append(f"the run has ended: {(directory / 'stderr').read_text()[-2000:]}")
    finally:
        if not run.ended:
            run.stop()
    for name, bound in BOUNDS.items():
        found = grows([sample[name] for sample in samples if sample[name] == sample[name]], bound)
        wrong += [f"{name} {found}"] if found else []
    return wrong


def _reaches(feed: Feed, run: Run, seconds: float) -> bool:
    """Whether the sink comes to hold all that was written, within ``seconds``."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not run.ended:
        if totals(run.directory) == feed.expected:
            return True
        time.sleep(0.5)
    return False


def _line(passed: float, sample: Mapping[str, float], feed: Feed) -> str:
    memory = " · ".join(f"{n} {sample[n] / MIB:,.0f} MiB" for n in ("driver JVM", "driver Python", "workers"))
    files = " · ".join(f"{n} {sample[n]:,.0f}" for n in ("open files", "checkpoint files", "worker files"))
    return (
        f"{passed / 60:5.1f} min  {memory} · {files} · {sample['batches']:.0f} batches of {sample['batch ms']:,.0f} ms"
        f" · {feed.files} files in"
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with TemporaryDirectory(prefix="hintplan-soak-") as folder:
        wrong = soak(given.minutes, given.seed, Path(folder))
    for text in wrong:
        print(f"wrong: {text}")
    print("nothing grew, and the totals are right" if not wrong else f"{len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
