"""CPU time and shuffled bytes of an aggregate in one phase and in two, by the number of keys, without Spark.

    python benchmarks/phases.py               # batches of 1,000,000 rows, under a minute
    python benchmarks/phases.py --rows 100000

COUNT and SUM per key, two tasks and two partitions. ``pack`` is what happens before the shuffle, ``state`` what happens
after it, ``slowest`` the share of the partition that takes longest: with few keys, one phase sends all rows to one. CPU
time of this process, the best of some batches, so it tolerates a busy machine. What Spark adds is the same for both,
but for moving the bytes.
"""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console
from rich.table import Table

from hintplan.plans.operators import AggregateCall
from hintplan.runtime.engine.blobs import from_blob
from hintplan.runtime.engine.buckets import bucket_ids
from hintplan.runtime.engine.pack import Packing
from hintplan.runtime.engine.process import joined
from hintplan.runtime.operators.aggregate import AggregateOperator
from hintplan.runtime.state.memory import MemoryStore

KEYS = (1, 1_000, 20_000, 100_000, 200_000, 4_000_000)
STRATEGIES = ("ONE_PHASE", "TWO_PHASE", "AUTO")
BATCHES, TASKS, PARTITIONS = 5, 2, 2
EVENTS = pa.schema([("k", pa.int64()), ("v", pa.float64())])
OPERATOR = AggregateOperator(
    columns=EVENTS,
    changelog=False,
    keys=("k",),
    calls=(
        AggregateCall(name="n", function="COUNT", type="BIGINT"),
        AggregateCall(name="s", function="SUM", argument="v", type="DOUBLE"),
    ),
    types=(pa.int64(), pa.float64()),
    ttl=0,
    kinds=("+I", "+U"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of a batch")
    rows = parser.parse_args().rows
    table = Table(title=f"ms of CPU for {rows:,} rows on {os.cpu_count()} cores")
    for column in ("keys", "strategy", "pack", "state", "slowest", "pack + state", "MB shuffled"):
        table.add_column(column, justify="left" if column == "strategy" else "right")
    for keys in KEYS:
        jobs = {strategy: Job(strategy) for strategy in STRATEGIES}
        random = np.random.default_rng(keys)
        for number in range(BATCHES):
            batch = events(random, keys, rows)
            for job in jobs.values():  # interleaved, so that all meet the same moments of the machine
                job.run(batch, number)
        for strategy, job in jobs.items():
            packing, state, slowest, size = np.min(np.array(job.costs[1:]), axis=0)
            cells = (packing * 1e3, state * 1e3, slowest * 1e3, (packing + state) * 1e3)
            table.add_row(f"{keys:,}", strategy, *(f"{cell:,.0f}" for cell in cells), f"{size / 1e6:,.1f}")
        table.add_section()
    Console().print(table)


def events(random: np.random.Generator, keys: int, rows: int) -> pa.Table:
    return pa.table([random.integers(0, keys, rows), random.random(rows)], schema=EVENTS)


class Job:
    """An aggregate with its state; ``costs`` are seconds of packing, of state, of the slowest partition, and bytes."""

    def __init__(self, strategy: str) -> None:
        self.operator = replace(OPERATOR, phases=strategy)  # type: ignore[arg-type]
        self.stores = [MemoryStore() for _ in range(PARTITIONS)]
        self.manifests: list[bytes | None] = [None] * PARTITIONS
        self.costs: list[tuple[float, float, float, int]] = []

    def run(self, batch: pa.Table, now: int) -> None:
        buckets, (spec,) = bucket_ids(PARTITIONS), self.operator.inputs
        pack = Packing(side=0, schema=EVENTS, route=spec.hashes[0], buckets=buckets, presum=spec.presum)
        share = batch.num_rows // TASKS
        begin = time.process_time()
        packed = [
            record
            for task in range(TASKS)
            for record in pack(batch.slice(task * share, share).to_batches(max_chunksize=65536))
        ]
        packing = time.process_time() - begin
        blobs = pa.Table.from_batches(packed)
        size = sum(len(blob.as_py()) for blob in blobs["blob"] if blob.is_valid)
        state = []
        for partition, bucket in enumerate(buckets):
            mine = blobs.filter(pc.and_(pc.equal(blobs["bucket"], bucket), blobs["blob"].is_valid()))
            begin = time.process_time()
            tables = [from_blob(blob.as_buffer()) for blob in mine["blob"]]
            rows = joined(tables, spec.presum) if tables else None
            result = self.operator.process((rows,), self.manifests[partition], self.stores[partition], now)
            self.manifests[partition] = result.manifest
            state.append(time.process_time() - begin)
        self.costs.append((packing, sum(state), max(state), size))


if __name__ == "__main__":
    main()
