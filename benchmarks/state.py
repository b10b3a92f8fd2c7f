"""What a batch costs a stateful operator by itself, and how much memory its worker has, by the size of its state.

    python benchmarks/state.py                                # all of it, some three minutes
    python benchmarks/state.py --only 'small batches'
    python benchmarks/state.py --only 'large batches' --profile

One partition, without Spark: the operator over its state in files, as batches open and publish it. Every line is a
process of its own; times are its CPU time, which tolerates a busy machine.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from hintplan.plans.operators import AggregateCall
from hintplan.runtime.operator import StatefulOperator
from hintplan.runtime.operators.aggregate import AggregateOperator
from hintplan.runtime.operators.join import JoinOperator
from hintplan.runtime.storage.local_files import LocalFiles
from hintplan.runtime.storage.partition import Remembered, find_manifest, open_partition
from hintplan.runtime.storage.place import Place, folder_of

FILL = 500_000
EVENTS = pa.schema([("k", pa.int64()), ("v", pa.float64())])
FACTS = pa.schema([("k", pa.int64()), ("id", pa.int64()), ("v", pa.float64())])
DIMENSION = pa.schema([("k", pa.int64()), ("name", pa.string())])
HOUR = 3_600_000


def aggregate(ttl: int = 0) -> AggregateOperator:
    """COUNT and SUM per key."""
    return AggregateOperator(
        columns=EVENTS,
        changelog=False,
        keys=("k",),
        calls=(
            AggregateCall(name="n", function="COUNT", type="BIGINT"),
            AggregateCall(name="s", function="SUM", argument="v", type="DOUBLE"),
        ),
        types=(pa.int64(), pa.float64()),
        ttl=ttl,
        kinds=("+I", "+U"),
        phases="ONE_PHASE",
    )


def inner_join(ttl: int = 0) -> JoinOperator:
    """Facts and a dimension with one row a key."""
    return JoinOperator(
        kind="inner",
        left=FACTS,
        right=DIMENSION,
        left_keys=("k",),
        right_keys=("k",),
        changelog=(False, False),
        condition=None,
        ttls=(ttl, ttl),
        columns=(("k", "left", "k"), ("id", "left", "id"), ("v", "left", "v"), ("name", "right", "name")),
        emits_changelog=False,
    )


def hashed(*columns: np.ndarray) -> np.ndarray:
    """64 evenly distributed bits of the rows of ``columns``."""
    result = np.full(len(columns[0]), 42, np.uint64)
    for column in columns:
        result = (result ^ column.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        result = (result ^ (result >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
        result ^= result >> np.uint64(32)
    return result.view(np.int64)


def events(keys: np.ndarray, random: np.random.Generator) -> tuple[pa.Table | None, ...]:
    values = random.random(len(keys))
    return (pa.table([keys, values, hashed(keys)], schema=EVENTS.append(pa.field("__hash0", pa.int64()))),)


def dimension(keys: np.ndarray, _: np.random.Generator) -> tuple[pa.Table | None, ...]:
    names = pa.array([f"name {key}" for key in keys])
    extra = [pa.field("__hash0", pa.int64()), pa.field("__hash1", pa.int64())]
    return None, pa.table([keys, names, hashed(keys), hashed(keys, keys)], schema=pa.schema([*DIMENSION, *extra]))


def both(keys: np.ndarray, random: np.random.Generator) -> tuple[pa.Table | None, ...]:
    """Half of the rows facts, half of them new rows of the dimension."""
    half = len(keys) // 2
    facts, ids = keys[:half], random.integers(0, 1 << 62, half)
    extra = [pa.field("__hash0", pa.int64()), pa.field("__hash1", pa.int64())]
    columns = [facts, ids, random.random(half), hashed(facts), hashed(facts, ids)]
    return pa.table(columns, schema=pa.schema([*FACTS, *extra])), dimension(keys[half:], random)[1]


Delta = Callable[[np.ndarray, np.random.Generator], tuple[pa.Table | None, ...]]
OPERATORS: dict[str, tuple[Callable[[int], StatefulOperator], Delta, Delta]] = {
    "aggregate": (aggregate, events, events),
    "inner join": (inner_join, dimension, both),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """``batches`` of ``rows`` random keys of ``keys``, ``step`` ms apart, on state that was filled with each key once.

    With a ``ttl`` (ms), filling takes all of it, so that ``batches`` meet purges.
    """

    name: str
    operator: str
    keys: int
    rows: int
    batches: int
    ttl: int = 0
    step: int = 1


CASES = (
    *(
        Case(name="small batches", operator=operator, keys=keys, rows=500, batches=41)
        for operator in OPERATORS
        for keys in (50_000, 5_000_000, 10_000_000)
    ),
    *(
        Case(name="large batches", operator=operator, keys=keys, rows=rows, batches=24 if keys > rows * 2 else 8)
        for operator in OPERATORS
        for keys, rows in ((100_000, 500_000), (2_000_000, 500_000), (2_000_000, 2_000_000), (10_000_000, 1_000_000))
    ),
    *(
        Case(name="expiring", operator=operator, keys=keys, rows=500, batches=80, ttl=HOUR, step=HOUR // 40)
        for operator in OPERATORS
        for keys in (5_000_000, 10_000_000)
    ),
)


@dataclass(slots=True)
class Partition:
    """One partition's state on disk; ``seconds`` of each batch, and the bytes ``written`` in all."""

    operator: StatefulOperator
    directory: Path
    batch: int = 0
    written: int = 0
    seconds: list[float] = field(default_factory=list)
    remembered: Remembered = field(default_factory=Remembered)

    @property
    def place(self) -> Place:
        return Place(root=str(self.directory), operator="measured")

    @property
    def segments(self) -> int:
        """How many there are now."""
        manifest = find_manifest(LocalFiles(self.place.root), self.place, 0, self.batch)
        return 0 if manifest is None else len(manifest.segments)

    def run(self, deltas: tuple[pa.Table | None, ...], now: int) -> None:
        begin = time.process_time()
        store = open_partition(LocalFiles(self.place.root), self.place, 0, self.batch, self.remembered)
        result = self.operator.process(deltas, store.tables, store, now)
        store.publish(result.manifest, result.state_rows, result.state_bytes)
        self.seconds.append(time.process_time() - begin)
        folder = self.directory / folder_of(0, 0)
        self.written += sum(path.stat().st_size for path in folder.glob(f"{self.batch}.*"))
        self.batch += 1


def measure(case: Case, profile: cProfile.Profile | None) -> dict[str, object]:
    """What the batches of ``case`` took, in this process."""
    make, filling, delta = OPERATORS[case.operator]
    random = np.random.default_rng(case.keys)
    keys = random.permutation(case.keys)
    with tempfile.TemporaryDirectory(prefix="hintplan-benchmark-") as scratch:
        partition = Partition(make(case.ttl), Path(scratch))
        now = 1_700_000_000_000
        fills = range(0, case.keys, FILL)
        for begin in fills:
            partition.run(filling(keys[begin : begin + FILL], random), now)
            now += case.ttl // len(fills) or case.step
        filled, filling_seconds, peak_filling = partition.written, sum(partition.seconds), peak_memory()
        partition.seconds.clear()
        forget_peak()
        before = resident()
        for _ in range(case.batches):
            deltas = delta(random.integers(0, case.keys, case.rows), random)
            if profile:
                profile.enable()
            partition.run(deltas, now)
            if profile:
                profile.disable()
            now += case.step
        return {
            "filling": filling_seconds / case.keys,
            "first": partition.seconds[0],
            "batches": partition.seconds[1:],
            "written": partition.written - filled,
            "written_filling": filled,
            "peak_filling": peak_filling,
            "resident": before,
            "peak": peak_memory(),
            "segments": partition.segments,
        }


def peak_memory() -> int:
    """The most resident bytes since :func:`forget_peak`."""
    return _status("VmHWM")


def resident() -> int:
    return _status("VmRSS")


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) << 10
    raise SystemExit("benchmarks/state.py reads peaks of memory from Linux's /proc")


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="run only what has this in '<name>, <operator>, <keys> keys'")
    parser.add_argument("--profile", action="store_true", help="print where the time of the batches goes, and no table")
    parser.add_argument("--case", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.case is not None:
        profile = cProfile.Profile(time.process_time) if arguments.profile else None
        found = measure(CASES[arguments.case], profile)
        if profile:
            pstats.Stats(profile, stream=sys.stderr).sort_stats("tottime").print_stats(25)
        print(json.dumps(found))
        return
    columns = ("batches", "operator", "keys", "rows", "filling", "per row", "median", "slowest")
    table = Table(title="CPU of one partition without Spark: µs a row, ms a batch; MiB")
    for column in (*columns, "written a batch", "segments", "peak filling", "peak"):
        table.add_column(column, justify="left" if column in columns[:2] else "right")
    for number, case in enumerate(CASES):
        if arguments.only in f"{case.name}, {case.operator}, {case.keys:,} keys":
            table.add_row(*cells(case, answered(number, arguments.profile)))
    if not arguments.profile:
        Console(width=None if sys.stdout.isatty() else 160).print(table)


def answered(number: int, profile: bool) -> dict[str, object]:
    command = [sys.executable, __file__, "--case", str(number), *(["--profile"] if profile else [])]
    found: dict[str, object] = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    return found


def cells(case: Case, found: dict) -> Iterator[str]:
    times = np.array(found["batches"])
    yield from (case.name, case.operator, f"{case.keys:,}", f"{case.rows:,}", f"{found['filling'] * 1e6:.2f}")
    yield from (f"{times.mean() / case.rows * 1e6:.2f}", f"{np.median(times) * 1e3:.1f}", f"{times.max() * 1e3:.1f}")
    yield from (f"{found['written'] / case.batches / 2**20:.1f}", f"{found['segments']}")
    yield from (f"{found['peak_filling'] >> 20:,}", f"{found['peak'] >> 20:,}")


if __name__ == "__main__":
    main()
