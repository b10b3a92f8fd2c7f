"""Time of the kernel of window aggregates by itself: rows a second, and small batches by the number of open windows.

    python benchmarks/window_kernels.py                      # about three minutes
    python benchmarks/window_kernels.py --only 'open windows'
    python benchmarks/window_kernels.py --only 'HOP' --profile

One partition, without Spark: COUNT and SUM by key, with state in files, as batches open and publish it. Times are CPU
time, which tolerates a busy machine. ``large batches`` have a million rows, and windows close in each. ``open windows``
are batches of 1,000 rows while no window closes. Their times are in the last two slices, and in ``all open windows`` in
each of them.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from hintplan.plans.declarations.computations import AggregateCall
from hintplan.plans.declarations.windows import Window
from hintplan.runtime.operator import NEVER, Watermarks
from hintplan.runtime.operators.window_aggregate import WindowAggregateOperator
from hintplan.runtime.storage.local_files import LocalFiles
from hintplan.runtime.storage.partition import Remembered, open_partition
from hintplan.runtime.storage.place import Place

ROWS = 1_000_000
FILL = 500_000
SECOND = 1000
EVENTS = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("at", pa.timestamp("us"))])
CALLS = (
    AggregateCall(name="n", function="COUNT", type="BIGINT"),
    AggregateCall(name="s", function="SUM", argument="v", type="BIGINT"),
)
TUMBLE = Window(type="tumble", size="10 s")
ZONED = Window(type="tumble", size="10 s", zone="Europe/Berlin")
HOP = Window(type="hop", size="10 s", slide="2 s")
MANY_SLICES = Window(type="hop", size="1 h", slide="1 s")
CUMULATE = Window(type="cumulate", size="10 s", step="2 s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Batches of ``rows`` over ``keys``, with ``slices`` open at a time."""

    name: str
    window: Window
    rows: int
    keys: int
    slices: int = 1
    batches: int = 8
    summed: bool = False

    @property
    def text(self) -> str:
        return f"{self.name}, {self.window.over('at')}, {self.keys} keys, {self.slices} slices"


CASES = (
    *(
        Case(name="large batches", window=window, rows=ROWS, keys=keys)
        for window in (TUMBLE, ZONED, HOP, CUMULATE)
        for keys in (10_000, 500_000)
    ),
    Case(name="summed by tasks", window=HOP, rows=ROWS, keys=10_000, summed=True),
    Case(name="large batches", window=TUMBLE, rows=ROWS, keys=10_000, slices=1000),
    *(
        Case(name=name, window=window, rows=1000, keys=keys, slices=slices, batches=40)
        for name, window, sizes in (
            ("open windows", TUMBLE, ((1000, 10), (1_000_000, 10), (100_000, 100))),
            ("open windows", HOP, ((1000, 10), (1_000_000, 10))),
            ("open windows", MANY_SLICES, ((100, 3600),)),
            ("all open windows", TUMBLE, ((1000, 10), (1_000_000, 10), (100_000, 100))),
        )
        for keys, slices in sizes
    ),
)


@dataclass(slots=True)
class Partition:
    """One partition's state on disk, and the CPU seconds of each batch."""

    operator: WindowAggregateOperator
    directory: Path
    batch: int = 0
    after: int = NEVER
    state_rows: int = 0
    seconds: list[float] = field(default_factory=list)
    remembered: Remembered = field(default_factory=Remembered)

    def run(self, rows: pa.Table | None, after: int) -> None:
        place = Place(root=str(self.directory), operator="measured")
        begin = time.process_time()
        store = open_partition(LocalFiles(place.root), place, 0, self.batch, self.remembered)
        result = self.operator.process((rows,), store.tables, store, self.batch, Watermarks(self.after, after))
        store.publish(result.manifest, result.state_rows, result.state_bytes)
        self.seconds.append(time.process_time() - begin)
        self.state_rows, self.after, self.batch = result.state_rows, after, self.batch + 1


def operator(window: Window, *, summed: bool = False) -> WindowAggregateOperator:
    time_type = pa.timestamp("us", None if window.zone is None else "UTC")
    return WindowAggregateOperator(
        operator="windows",
        columns=EVENTS.set(2, pa.field("at", time_type)),
        changelog=False,
        keys=("k",),
        calls=CALLS,
        types=(pa.int64(), pa.int64()),
        window=window,
        names=("window_start", "window_end", None),
        time="at",
        phases="TWO_PHASE" if summed else "ONE_PHASE",
    )


def hashed(keys: np.ndarray) -> np.ndarray:
    """64 evenly distributed bits of each key."""
    result = (keys.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    result = (result ^ (result >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return (result ^ (result >> np.uint64(32))).view(np.int64)


def events(of: WindowAggregateOperator, keys: np.ndarray, times: np.ndarray) -> pa.Table:
    schema = of.columns.append(pa.field("__hash0", pa.int64()))
    at = pa.array(times * 1000).cast(of.columns.field("at").type)
    return pa.table([pa.array(keys), pa.array(keys % 7), at, pa.array(hashed(keys))], schema=schema)


def measure(case: Case, profile: cProfile.Profile | None) -> Partition:
    """Run the batches of ``case``; the result has their seconds."""
    random = np.random.default_rng(1)
    made = operator(case.window, summed=case.summed)
    span = case.window.step_ms * case.slices
    with tempfile.TemporaryDirectory(prefix="hintplan-benchmark-") as scratch:
        partition = Partition(made, Path(scratch))
        start = 1_700_000_000_000 // case.window.size_ms * case.window.size_ms
        if case.name.endswith("open windows"):
            for first in range(0, case.keys * case.slices, FILL):
                group = np.arange(first, min(first + FILL, case.keys * case.slices))
                times = start + group // case.keys * case.window.step_ms
                partition.run(events(made, group % case.keys, times), start - 1)
            partition.seconds.clear()
        for _ in range(case.batches):
            first = span - 2 * case.window.step_ms if case.name == "open windows" else 0
            times = start + random.integers(first, span, case.rows)
            rows = events(made, random.integers(0, case.keys, case.rows), times)
            if not case.name.endswith("open windows"):
                start += span
            if case.summed:
                presum = made.inputs[0].presum
                begin = time.process_time()
                assert presum is not None
                rows = presum.sum_up(rows)
                summing = time.process_time() - begin
            if profile:
                profile.enable()
            partition.run(rows, start - 1)
            if profile:
                profile.disable()
            if case.summed:
                partition.seconds[-1] += summing
        return partition


def lines(only: str, profile: cProfile.Profile | None) -> Iterator[tuple[str, ...]]:
    for case in CASES:
        if only not in case.text:
            continue
        partition = measure(case, profile)
        seconds = np.array(partition.seconds[1:])
        yield (
            case.text,
            f"{case.rows:,}",
            f"{partition.state_rows:,}",
            f"{np.median(seconds) * 1000:.1f}",
            f"{seconds.max() * 1000:.1f}",
            f"{case.rows / np.median(seconds):,.0f}",
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="run only what has this in its first column")
    parser.add_argument("--profile", action="store_true", help="also print where the time of the batches goes")
    arguments = parser.parse_args()
    profile = cProfile.Profile() if arguments.profile else None
    table = Table(title="CPU time of one partition without Spark")
    for column in ("batches", "rows", "in state", "median ms", "slowest ms", "rows/s"):
        table.add_column(column, justify="left" if column == "batches" else "right")
    for line in lines(arguments.only, profile):
        table.add_row(*line)
    Console(width=140).print(table)
    if profile:
        pstats.Stats(profile).sort_stats("tottime").print_stats(25)


if __name__ == "__main__":
    main()
