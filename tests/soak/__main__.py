"""A soak: a job that runs for a long time, watched for what grows.

    python -m tests.soak --minutes 30

Runs ``hintplan run`` on files that keep coming, with a lookup cache, a join, an aggregate, TTLs, windows of event time
and a database sink. Prints memory, open files, files on disk, the state of windows and batch times once a minute; fails
if one of them grows (:mod:`tests.soak.growth`), if the run ends by itself, or if the totals, the closed windows, the
late rows and the open windows in the end are not those of what was written.
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
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

import hintplan
from hintplan.runtime.inspect.read import read_state
from tests.soak import windows
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
    """The process of the job, the times of its batches, and what they report of windows."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.late: Counter[str] = Counter()
        self._durations: list[int] = []
        self._states: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self._plan = compiled(directory)
        hintplan.dump(self._plan, directory / "soak.json")
        (directory / "local").mkdir()
        conf = [word for setting in _CONF for word in ("--conf", setting)]
        words = ["run", str(directory / "soak.json"), "--checkpoint", str(directory / "checkpoint"), "--json"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "hintplan", *words, "--master", "local[2]", "--trigger", "8 s", *conf],
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
                for name in event["operators"].keys() & {*windows.OPERATORS}:
                    operator = event["operators"][name]
                    self._states[name].append((operator["state_rows"], operator["state_bytes"]))
                    self.late[name] += operator["event_time"]["late_rows"]

    @property
    def ended(self) -> bool:
        return self.process.poll() is not None

    def sample(self) -> dict[str, float]:
        """What the job uses now, in bytes and files, and the median of the batches since the last sample."""
        durations, self._durations = self._durations, []
        states, self._states = self._states, defaultdict(list)
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
            "window files": sum(_files(path) for path in self._folders()),
            "window bytes": sum(_bytes(path) for path in self._folders()),
            "open rows": sum(self.open_rows().values()),
            **{f"{name} rows": _mean([rows for rows, _ in states[name]]) for name in windows.OPERATORS},
            **{f"{name} bytes": _mean([size for _, size in states[name]]) for name in windows.OPERATORS},
            "batch ms": statistics.median(durations) if durations else float("nan"),
            "batches": len(durations),
        }

    def open_rows(self) -> dict[str, int]:
        """The rows in the state of each operator with windows, as `hintplan state` has them."""
        found = read_state(self._plan, self.directory / "checkpoint", entries=windows.OPERATORS)
        return {
            operator.id: sum(entry.amount.rows for entry in operator.entries)
            for query in found.queries
            for operator in query.operators
        }

    def _folders(self) -> list[Path]:
        """The folders of the state of windows: the queries that have some keep no other state."""
        return [self.directory / "checkpoint" / query / "state" for query in windows.QUERIES]

    def stop(self) -> None:
        """End the run after the batch in progress."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(120)


def _files(directory: Path) -> int:
    return sum(len(names) for _, _, names in os.walk(directory))


def _bytes(directory: Path) -> int:
    size = 0
    for path in directory.rglob("*"):
        try:
            size += path.stat().st_size
        except FileNotFoundError:  # the run has just removed it
            continue
    return size


def _mean(values: Sequence[float]) -> float:
    return statistics.mean(values) if values else float("nan")


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
        wrong += _wrong_tables(feed, directory)
        if run.ended:
            wrong.append(f"the run has ended: {(directory / 'stderr').read_text()[-2000:]}")
    finally:
        if not run.ended:
            run.stop()
    wrong += _differences("rows in state", run.open_rows(), feed.windows.open_rows())
    wrong += _differences("late rows", run.late, dict.fromkeys(windows.OPERATORS, feed.windows.late))
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


def _wrong_tables(feed: Feed, directory: Path) -> list[str]:
    """What is wrong with the tables of windows, once they have had time to become right."""
    wanted = feed.windows.expected()
    deadline = time.monotonic() + _LAST_BATCHES_SECONDS
    while (found := windows.stored(directory)) != wanted and time.monotonic() < deadline:
        time.sleep(5)
    return [
        f"{name} has lost {(rows - found[name]).total():,} of {rows.total():,} rows, "
        f"and has {(found[name] - rows).total():,} others"
        for name, rows in wanted.items()
        if found[name] != rows
    ]


def _differences(title: str, found: Mapping[str, int], wanted: Mapping[str, int]) -> list[str]:
    return [
        f"{title} of {name}: {found[name]:,}, and should be {n:,}" for name, n in wanted.items() if found[name] != n
    ]


def _line(passed: float, sample: Mapping[str, float], feed: Feed) -> str:
    memory = " · ".join(f"{n} {sample[n] / MIB:,.0f} MiB" for n in ("driver JVM", "driver Python", "workers"))
    files = " · ".join(f"{n} {sample[n]:,.0f}" for n in ("open files", "checkpoint files", "worker files"))
    states = " · ".join(
        f"{name} {sample[f'{name} rows']:,.0f} rows {sample[f'{name} bytes'] / 1024:,.1f} KiB"
        for name in windows.OPERATORS
    )
    return (
        f"{passed / 60:5.1f} min  {memory} · {files} · {sample['batches']:.0f} batches of {sample['batch ms']:,.0f} ms"
        f" · {feed.files} files in\n"
        f"           {states} · {sample['open rows']:,.0f} open rows · "
        f"{sample['window bytes'] / 1024:,.0f} KiB in {sample['window files']:,.0f} files of windows · "
        f"{feed.windows.late:,} late rows in"
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
    print("nothing grew, and the totals, windows and late rows are right" if not wrong else f"{len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
