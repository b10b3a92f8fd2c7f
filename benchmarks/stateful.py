"""Rows per second of stateful operators, side by side in one Spark session on one machine.

    python benchmarks/stateful.py              # full size, some minutes
    python benchmarks/stateful.py --scale 0.1  # a tenth of keys and rows

For a group aggregate (COUNT, SUM per key) and an inner join it compares this engine with Spark's native operator, on
the RocksDB and on the heap state store, and with PySpark's ``transformWithState`` called per key. Each run reads the
same Parquet files, four files a micro-batch, into a sink that discards; the rate is rows over the time of all batches.
Some batches of each engine go first and are not counted. Figures of different machines or moments do not compare;
ratios do.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle
from rich.console import Console
from rich.table import Table

from plans.model import AggregateCall
from runtime.operators.aggregate import AggregateOperator
from runtime.operators.join import JoinOperator
from runtime.shell.stateful import apply_operator

PARTITIONS = 2
FILES = 4
WARMUP = 4
STORES = "org.apache.spark.sql.execution.streaming.state."
ROCKSDB, HEAP = STORES + "RocksDBStateStoreProvider", STORES + "HDFSBackedStateStoreProvider"
EVENTS = pa.schema([("k", pa.int64()), ("v", pa.float64())])
FACTS = pa.schema([("k", pa.int64()), ("id", pa.int64()), ("v", pa.float64())])
DIMENSION = pa.schema([("k", pa.int64()), ("name", pa.string())])


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One workload: ``sources`` are directories of Parquet files, ``rows`` what is counted."""

    name: str
    rows: int
    sources: tuple[Path, ...]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies keys and rows")
    parser.add_argument("--only", help="run only the cases whose name contains this")
    arguments = parser.parse_args()
    console = Console()
    with tempfile.TemporaryDirectory(prefix="hintplan-benchmark-") as scratch:
        spark = session(scratch)
        table = Table(title=f"rows/s on {os.cpu_count()} cores, {PARTITIONS} partitions")
        for column in ("workload", "engine", "rows", "rows/s", "this engine is"):
            table.add_column(column, justify="left" if column in ("workload", "engine") else "right")
        for case, engines in workloads(Path(scratch), arguments.scale):
            if arguments.only and arguments.only not in case.name:
                continue
            rates = {}
            for name, (build, share, provider) in engines.items():
                rates[name] = measure(spark, case, build, share, provider)
                console.log(f"{case.name}: {name}: {rates[name]:,.0f} rows/s")
            for name, rate in rates.items():
                share = engines[name][1]
                ratio = "" if name == "this engine" else f"{rates['this engine'] / rate:.1f} x"
                table.add_row(case.name, name, f"{int(case.rows * share):,}", f"{rate:,.0f}", ratio)
            table.add_section()
        spark.stop()
        console.print(table)


Engines = dict[str, tuple[Callable[[tuple[DataFrame, ...]], DataFrame], float, str]]


def workloads(scratch: Path, scale: float) -> Iterator[tuple[Case, Engines]]:
    """Each case with its engines: how to build the query, the share of rows it gets, and the state store."""
    for keys, rows in ((200_000, 8_000_000), (4_000_000, 8_000_000)):
        keys, rows = int(keys * scale), int(rows * scale)
        sources = (write_events(scratch / f"events-{keys}", keys, rows),)
        yield (
            Case(name=f"aggregate, {keys:,} keys", rows=rows, sources=sources),
            {
                "this engine": (our_aggregate, 1.0, ROCKSDB),
                "Spark native, RocksDB": (native_aggregate, 1.0, ROCKSDB),
                "Spark native, heap": (native_aggregate, 1.0, HEAP),
                "transformWithState per key": (per_key_aggregate, 0.125, ROCKSDB),
            },
        )
    facts, dimension = int(4_000_000 * scale), int(400_000 * scale)
    sources = write_join(scratch / "join", facts, dimension)
    yield (
        Case(name=f"inner join, {facts:,} x {dimension:,} rows", rows=facts + dimension, sources=sources),
        {
            "this engine": (our_join, 1.0, ROCKSDB),
            "Spark native, RocksDB": (native_join, 1.0, ROCKSDB),
            "Spark native, heap": (native_join, 1.0, HEAP),
        },
    )


def session(scratch: str) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    return (
        SparkSession.builder.master(f"local[{PARTITIONS}]")
        .config("spark.driver.memory", "8g")
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.local.dir", scratch)
        .config("spark.sql.shuffle.partitions", str(PARTITIONS))
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "65536")
        .config("spark.sql.streaming.noDataMicroBatches.enabled", "false")
        .config("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", "true")
        .getOrCreate()
    )


def measure(
    spark: SparkSession, case: Case, build: Callable[[tuple[DataFrame, ...]], DataFrame], share: float, provider: str
) -> float:
    """Rows per second over the batches of a query, after another query of up to ``WARMUP`` batches."""
    batches = max(1, int(len(list(case.sources[0].iterdir())) // FILES * share))
    run(spark, case.sources, build, provider, min(WARMUP, batches))
    rows, seconds = run(spark, case.sources, build, provider, batches)
    return rows / seconds


def run(
    spark: SparkSession,
    sources: tuple[Path, ...],
    build: Callable[[tuple[DataFrame, ...]], DataFrame],
    provider: str,
    batches: int,
) -> tuple[int, float]:
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", provider)
    frames = []
    for source in sources:
        schema = spark.read.parquet(str(source)).schema
        frames.append(spark.readStream.schema(schema).option("maxFilesPerTrigger", FILES).parquet(str(source)))
    with tempfile.TemporaryDirectory(prefix="hintplan-benchmark-") as checkpoint:
        query = (
            build(tuple(frames))
            .writeStream.format("noop")
            .outputMode("update" if build is native_aggregate else "append")
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        while query.isActive and len(done(query)) < batches:
            query.awaitTermination(1)
        progress = done(query)[:batches]
        query.stop()
        if query.exception() is not None:
            raise query.exception()
    rows = sum(p.numInputRows for p in progress)
    return rows, sum(p.durationMs["triggerExecution"] for p in progress) / 1000


def done(query) -> list:
    return [progress for progress in query.recentProgress if progress.numInputRows]


# --- data -------------------------------------------------------------------------------------------------------------


def write_batches(directory: Path, schema: pa.Schema, batches: list[list[np.ndarray | pa.Array]]) -> Path:
    """``FILES`` Parquet files a batch, in order of modification time."""
    for number, columns in enumerate(batches):
        table = pa.table([pa.array(column) for column in columns], schema=schema)
        for part in range(FILES):
            path = directory / f"{number:04d}-{part}.parquet"
            directory.mkdir(parents=True, exist_ok=True)
            begin, end = (table.num_rows * bound // FILES for bound in (part, part + 1))
            pq.write_table(table.slice(begin, end - begin), path)
            stamp = time.time() - 3600 + number
            os.utime(path, (stamp, stamp))
    return directory


def write_events(directory: Path, keys: int, rows: int, batches: int = 8) -> Path:
    random = np.random.default_rng(keys)
    size = rows // batches
    return write_batches(
        directory, EVENTS, [[random.integers(0, keys, size), random.random(size)] for _ in range(batches)]
    )


def write_join(directory: Path, facts: int, dimension: int, batches: int = 4) -> tuple[Path, Path]:
    random = np.random.default_rng(facts)
    size, part = facts // batches, dimension // batches
    keys = random.permutation(dimension)
    left = [
        [random.integers(0, dimension, size), np.arange(n * size, (n + 1) * size), random.random(size)]
        for n in range(batches)
    ]
    right = [
        [keys[n * part : (n + 1) * part], pa.array([f"name {key}" for key in keys[n * part : (n + 1) * part]])]
        for n in range(batches)
    ]
    return (
        write_batches(directory / "facts", FACTS, left),
        write_batches(directory / "dimension", DIMENSION, right),
    )


# --- engines ----------------------------------------------------------------------------------------------------------


def our_aggregate(frames: tuple[DataFrame, ...]) -> DataFrame:
    calls = (
        AggregateCall(name="n", function="COUNT", type="BIGINT"),
        AggregateCall(name="s", function="SUM", argument="v", type="DOUBLE"),
    )
    operator = AggregateOperator(
        columns=EVENTS,
        changelog=False,
        keys=("k",),
        calls=calls,
        types=(pa.int64(), pa.float64()),
        ttl=0,
        kinds=("+I", "+U"),
    )
    return apply_operator("aggregate", operator, frames, PARTITIONS)


def native_aggregate(frames: tuple[DataFrame, ...]) -> DataFrame:
    return frames[0].groupBy("k").agg(F.count("*").alias("n"), F.sum("v").alias("s"))


class PerKey(StatefulProcessor):
    """COUNT and SUM in a ValueState per key: the usual way to write a stateful operator in PySpark."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.state = handle.getValueState("sums", "n bigint, s double")

    def handleInputRows(self, key, rows, timerValues) -> Iterator[Row]:
        count, total = self.state.get() if self.state.exists() else (0, 0.0)
        for row in rows:
            count += 1
            total += row.v
        self.state.update((count, total))
        yield Row(k=key[0], n=count, s=total)

    def close(self) -> None:
        del self.state


def per_key_aggregate(frames: tuple[DataFrame, ...]) -> DataFrame:
    return frames[0].groupBy("k").transformWithState(PerKey(), "k bigint, n bigint, s double", "Append", "None")


def our_join(frames: tuple[DataFrame, ...]) -> DataFrame:
    operator = JoinOperator(
        kind="inner",
        left=FACTS,
        right=DIMENSION,
        left_keys=("k",),
        right_keys=("k",),
        changelog=(False, False),
        condition=None,
        ttls=(0, 0),
        columns=(("k", "left", "k"), ("id", "left", "id"), ("v", "left", "v"), ("name", "right", "name")),
        emits_changelog=False,
    )
    return apply_operator("join", operator, frames, PARTITIONS)


def native_join(frames: tuple[DataFrame, ...]) -> DataFrame:
    return frames[0].join(frames[1], "k")


if __name__ == "__main__":
    main()
