"""Time and state of the kernel of interval joins by itself: rows a second, and the rows in state as the time passes.

    python benchmarks/interval_join_kernel.py                            # a minute
    python benchmarks/interval_join_kernel.py --rows 10_000_000          # 10 M orders and 10 M payments
    python benchmarks/interval_join_kernel.py --only 'left' --profile

One partition, without Spark: orders and their payments, which come at most a minute later, with state in files, as
batches open and publish it. 10,000 orders come in a second of event time, out of order by at most two seconds. A batch
has ten seconds of both tables. Times are CPU time, which tolerates a busy machine. State is flat if it is as large in
the last quarter of the batches as in the second.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import resource
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from hintplan.plans.declarations.computations import JoinType
from hintplan.runtime.operator import FOREVER, NEVER, Watermarks
from hintplan.runtime.operators.interval_join import IntervalJoinOperator
from hintplan.runtime.storage.local_files import LocalFiles
from hintplan.runtime.storage.partition import Remembered, open_partition
from hintplan.runtime.storage.place import Place

RATE = 10_000
"""Orders in a second of event time."""
MINUTE = 60_000
DISORDER = 2_000
BATCH = 10_000
"""The event time of a batch in ms."""
START = 1_700_000_000_000
SIDE = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("text", pa.string()), ("at", pa.timestamp("us"))])
TEXTS = pa.array([f"the text of row {number:06}" for number in range(1000)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Orders and payments with ``keys`` numbers, or, with 0, one number for each order."""

    name: str
    kind: JoinType = "inner"
    keys: int = 0
    bounds: tuple[int, int] = (-MINUTE, 0)
    is_keyed: bool = True


CASES = (
    Case(name="inner, one payment each"),
    Case(name="left, one payment each", kind="left"),
    Case(name="full, one payment each", kind="full"),
    Case(name="inner, 100,000 keys", keys=100_000),
    Case(name="inner, at the same time", bounds=(0, 0)),
    Case(name="inner, without a key", bounds=(-1, 0), is_keyed=False),
)


@dataclass(slots=True)
class Partition:
    """One partition's state on disk, and for each batch the CPU seconds, the rows in state and the bytes in state."""

    operator: IntervalJoinOperator
    directory: Path
    batch: int = 0
    after: int = NEVER
    pairs: int = 0
    seconds: list[float] = field(default_factory=list)
    state_rows: list[int] = field(default_factory=list)
    state_bytes: list[int] = field(default_factory=list)
    remembered: Remembered = field(default_factory=Remembered)

    def run(self, deltas: tuple[pa.Table | None, pa.Table | None], after: int) -> None:
        place = Place(root=str(self.directory), operator="measured")
        begin = time.process_time()
        store = open_partition(LocalFiles(place.root), place, 0, self.batch, self.remembered)
        result = self.operator.process(deltas, store.tables, store, self.batch, Watermarks(self.after, after))
        store.publish(result.manifest, result.state_rows, result.state_bytes)
        self.seconds.append(time.process_time() - begin)
        self.state_rows.append(result.state_rows)
        self.state_bytes.append(result.state_bytes)
        self.pairs += result.output.num_rows
        self.after, self.batch = after, self.batch + 1


def operator(case: Case) -> IntervalJoinOperator:
    keys = ("k",) if case.is_keyed else ()
    return IntervalJoinOperator(
        operator="join",
        kind=case.kind,
        left=SIDE,
        right=SIDE,
        left_keys=keys,
        right_keys=keys,
        times=("at", "at"),
        bounds=case.bounds,
        condition=None,
        columns=(("k", "left", "k"), ("v", "left", "v"), ("text", "left", "text"), ("w", "right", "v")),
    )


def hashed(keys: np.ndarray) -> np.ndarray:
    """64 evenly distributed bits of each key."""
    result = (keys.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    result = (result ^ (result >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return (result ^ (result >> np.uint64(32))).view(np.int64)


def rows_of(case: Case, numbers: np.ndarray, times: np.ndarray) -> pa.Table:
    keys = numbers % case.keys if case.keys else numbers
    columns = [pa.array(keys), pa.array(numbers), TEXTS.take(pa.array(numbers % len(TEXTS)))]
    at = pa.array(times * 1000).cast(pa.timestamp("us"))
    hashes = hashed(keys) if case.is_keyed else np.full(len(keys), 42)
    schema = pa.schema([*SIDE, ("__hash0", pa.int64()), ("__hash1", pa.int64())])
    return pa.table([*columns, at, pa.array(hashes), pa.array(hashed(numbers))], schema=schema)


def batches(case: Case, rows: int) -> Iterator[tuple[pa.Table, pa.Table, int]]:
    """Yield the orders and the payments of each batch, and the watermark after it."""
    random = np.random.default_rng(1)
    numbers = np.arange(rows)
    arrival = START + numbers * 1000 // RATE
    times = arrival - random.integers(0, DISORDER, rows)
    if case.bounds == (0, 0):
        paid = times
    else:
        paid = times + random.integers(0, -case.bounds[0] + 1, rows)
    paid_arrival = np.maximum(paid, arrival) + random.integers(0, DISORDER, rows)
    order = np.argsort(paid_arrival, kind="stable")
    for begin in range(START, int(paid_arrival.max()) + 1, BATCH):
        own = slice(*np.searchsorted(arrival, (begin, begin + BATCH)))
        theirs = order[slice(*np.searchsorted(paid_arrival, (begin, begin + BATCH), sorter=order))]
        left, right = rows_of(case, numbers[own], times[own]), rows_of(case, theirs, paid[theirs])
        yield left, right, begin + BATCH - 2 * DISORDER


def measure(case: Case, rows: int, profile: cProfile.Profile | None) -> Partition:
    """Run ``rows`` rows of each side."""
    with tempfile.TemporaryDirectory(prefix="hintplan-benchmark-") as scratch:
        partition = Partition(operator(case), Path(scratch))
        for left, right, after in batches(case, rows):
            if profile:
                profile.enable()
            partition.run((left, right), after)
            if profile:
                profile.disable()
        partition.run((None, None), FOREVER)
        return partition


def lines(only: str, rows: int, profile: cProfile.Profile | None) -> Iterator[tuple[str, ...]]:
    for case in CASES:
        if only not in case.name:
            continue
        partition = measure(case, rows, profile)
        quarter = max(1, len(partition.state_rows) // 4)
        second, last = (max(partition.state_rows[begin : begin + quarter]) for begin in (quarter, 3 * quarter - 1))
        yield (
            case.name,
            f"{2 * rows:,}",
            f"{partition.pairs:,}",
            f"{2 * rows / sum(partition.seconds):,.0f}",
            f"{np.median(partition.seconds) * 1000:.0f}",
            f"{max(partition.seconds) * 1000:.0f}",
            f"{second:,}",
            f"{last:,}",
            f"{max(partition.state_bytes) / 1e6:.0f}",
            f"{partition.state_rows[-1]:,}",
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="run only what has this in its first column")
    parser.add_argument("--rows", type=int, default=2_000_000, help="the rows of each of the two tables")
    parser.add_argument("--profile", action="store_true", help="also print where the time of the batches goes")
    arguments = parser.parse_args()
    profile = cProfile.Profile() if arguments.profile else None
    table = Table(title="CPU time and state of one partition without Spark")
    names = ("join", "rows", "rows out", "rows/s", "median ms", "slowest ms")
    for column in (*names, "in state, 2nd quarter", "last quarter", "most MB", "at the end"):
        table.add_column(column, justify="left" if column == "join" else "right")
    for line in lines(arguments.only, arguments.rows, profile):
        table.add_row(*line)
    Console(width=160).print(table)
    print(f"largest memory of the process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MiB")
    if profile:
        pstats.Stats(profile).sort_stats("tottime").print_stats(25)


if __name__ == "__main__":
    main()
