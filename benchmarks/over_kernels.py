"""Time of the kernels of OVER by themselves: rows a second of large batches, by frame and number of keys.

    python benchmarks/over_kernels.py                        # about five minutes: 10 M rows a line
    python benchmarks/over_kernels.py --rows 1000000
    python benchmarks/over_kernels.py --only 'RANGE 1 h' --profile

One partition, without Spark: SUM, COUNT and MAX by key, with state in files, as batches open and publish it. Times are
CPU time, which tolerates a busy machine. The rows of a line are spread over a day, in 100 batches. Each is up to ten
seconds behind the watermark, so rows wait for one or two batches.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from hintplan.plans.declarations.computations import AggregateCall
from hintplan.runtime.operator import FOREVER, NEVER, Watermarks
from hintplan.runtime.operators.over.by_time import OverByRowtime
from hintplan.runtime.operators.over.functions import OverFunctions, RowCall
from hintplan.runtime.storage.local_files import LocalFiles
from hintplan.runtime.storage.partition import Remembered, open_partition
from hintplan.runtime.storage.place import Place

BATCHES = 100
DAY, HOUR, DISORDER = 86_400_000, 3_600_000, 10_000
EVENTS = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("d", pa.float64()), ("at", pa.timestamp("us"))])
SUMS = (
    AggregateCall(name="s", function="SUM", argument="v", type="BIGINT"),
    AggregateCall(name="n", function="COUNT", type="BIGINT"),
    AggregateCall(name="m", function="MAX", argument="v", type="BIGINT"),
)
DOUBLES = (AggregateCall(name="s", function="SUM", argument="d", type="DOUBLE"),)
LAG = (RowCall(name="l", function="LAG", argument="v", count=1),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A frame of an over aggregate over ``keys``; ``preceding`` are rows or ms before the row."""

    name: str
    keys: int
    calls: tuple[AggregateCall | RowCall, ...] = SUMS
    unit: str = "range"
    preceding: int | None = None

    @property
    def text(self) -> str:
        return f"{self.name}, {self.keys:,} keys"


CASES = tuple(
    case
    for keys in (10_000, 1_000_000)
    for case in (
        Case(name="RANGE 1 h: SUM, COUNT, MAX", keys=keys, preceding=HOUR),
        Case(name="RANGE 1 h: SUM of DOUBLE", keys=keys, preceding=HOUR, calls=DOUBLES),
        Case(name="RANGE UNBOUNDED: SUM, COUNT, MAX", keys=keys),
        Case(name="ROWS UNBOUNDED: SUM of DOUBLE", keys=keys, unit="rows", calls=DOUBLES),
        Case(name="ROWS 10: SUM, COUNT, MAX", keys=keys, unit="rows", preceding=10),
        Case(name="LAG", keys=keys, calls=LAG),
    )
)


def operator(case: Case) -> OverByRowtime:
    functions = OverFunctions(
        columns=EVENTS,
        key=("k",),
        calls=case.calls,
        types=tuple(pa.float64() if call in DOUBLES else pa.int64() for call in case.calls),
        unit="range" if case.unit == "range" else "rows",
        preceding=case.preceding,
        has_peers=case.unit == "range",
    )
    return OverByRowtime(operator="over", functions=functions, ttl=0, time="at")


def hashed(keys: np.ndarray) -> np.ndarray:
    """64 evenly distributed bits of each key."""
    result = (keys.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    result = (result ^ (result >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return (result ^ (result >> np.uint64(32))).view(np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The CPU seconds of each batch, and the most rows in state."""

    seconds: list[float]
    state_rows: int


def measure(case: Case, rows: int, profile: cProfile.Profile | None) -> Measured:
    """Run the batches of ``case`` with as many ``rows`` in all."""
    random, over = np.random.default_rng(1), operator(case)
    schema = EVENTS.append(pa.field("__hash0", pa.int64()))
    number, span, before = rows // BATCHES, DAY // BATCHES, NEVER
    seconds, most, remembered = [], 0, Remembered()
    with tempfile.TemporaryDirectory(prefix="hintplan-benchmark-") as scratch:
        place = Place(root=str(Path(scratch)), operator="measured")
        for batch in range(BATCHES + 1):
            delta, after = None, FOREVER
            if batch < BATCHES:
                times = 1_700_000_000_000 + batch * span + np.sort(random.integers(0, span, number))
                keys, values = random.integers(0, case.keys, number), random.integers(0, 1000, number)
                after = int(times[-1]) - DISORDER
                times = times - random.integers(0, DISORDER, number)
                at = pa.array(times * 1000).cast(pa.timestamp("us"))
                columns = [pa.array(keys), pa.array(values), pa.array(values / 8), at, pa.array(hashed(keys))]
                delta = pa.table(columns, schema=schema)
            if profile:
                profile.enable()
            begin = time.process_time()
            store = open_partition(LocalFiles(place.root), place, 0, batch, remembered)
            result = over.process((delta,), store.tables, store, batch, Watermarks(before, after))
            store.publish(result.manifest, result.state_rows, result.state_bytes)
            seconds.append(time.process_time() - begin)
            if profile:
                profile.disable()
            before, most = after, max(most, result.state_rows)
    return Measured(seconds=seconds, state_rows=most)


def lines(only: str, rows: int, profile: cProfile.Profile | None) -> Iterator[tuple[str, ...]]:
    for case in CASES:
        if only in case.text:
            measured = measure(case, rows, profile)
            slowest = f"{max(measured.seconds) * 1000:,.0f}"
            yield case.text, f"{measured.state_rows:,}", slowest, f"{rows / sum(measured.seconds):,.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="run only what has this in its first column")
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of a line")
    parser.add_argument("--profile", action="store_true", help="also print where the time of the batches goes")
    arguments = parser.parse_args()
    profile = cProfile.Profile() if arguments.profile else None
    table = Table(title="CPU time of one partition without Spark")
    for column in ("functions", "most rows in state", "slowest batch in ms", "rows/s"):
        table.add_column(column, justify="left" if column == "functions" else "right")
    for line in lines(arguments.only, arguments.rows, profile):
        table.add_row(*line)
    Console(width=120).print(table)
    if profile:
        pstats.Stats(profile).sort_stats("cumulative").print_stats(30)


if __name__ == "__main__":
    main()
