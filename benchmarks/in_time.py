"""Joins by time and OVER on this engine and on real Flink, side by side: rows per second, memory, and state by batch.

    python benchmarks/in_time.py                          # 10 M rows in each table, some minutes
    python benchmarks/in_time.py --rows 500000 --only over

- ``interval join``: an order meets its payment, which comes up to a minute later. Both tables have as many rows.
- ``over``: the count and the sum of the last hour of a key, for each row. The rows are of ten hours and 100,000 keys.

Rows are in the order of their times, and no row is late. This engine reads a part of each table in a micro-batch; Flink
(2.3, from PyPI, heap state) reads two files at once, each of which covers the whole time. Both engines first run on a
tenth of the rows. Before that, their results on 10,000 rows have to be equal. Flink's rate is over the net run time of
its job. ``state`` are the rows in state after the batches: it has to stop growing. Figures of different machines or
moments do not compare; ratios do.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from flink import HEAP, ONE_BY_ONE, THROUGHPUT, Flink, FlinkError, flink_python
from memory import watched
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from hintplan import compile_sql, execute
from hintplan.runtime.run.execution import Execution
from hintplan.runtime.spark.quiet import SparkLog
from hintplan.runtime.spark.session import start_session

ROOT = Path(__file__).resolve().parents[1]
PARTITIONS = 2
VERIFIED = 10_000
BEGIN = np.datetime64("2024-01-01T00:00:00", "us")
MODES = {"on": THROUGHPUT, "off": ONE_BY_ONE}
COLUMNS = "id BIGINT, k BIGINT, v DOUBLE, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND"
INTERVAL_JOIN = """SELECT o.id, o.v, p.v FROM orders AS o JOIN payments AS p
ON o.id = p.id AND p.ts BETWEEN o.ts AND o.ts + INTERVAL '1' MINUTE"""
OVER = """SELECT id, COUNT(*) OVER w, SUM(v) OVER w FROM orders
WINDOW w AS (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A query, and its tables by name: a function of their columns, given the number of rows."""

    query: str
    output: str
    tables: dict[str, Callable[[int], list[np.ndarray]]]


def orders(rows: int) -> list[np.ndarray]:
    """10,000 orders a second."""
    return _columns(np.arange(rows), np.arange(rows) // 10, rows)


def payments(rows: int) -> list[np.ndarray]:
    """The payment of each order, up to a minute later."""
    times = np.arange(rows) // 10 + np.random.default_rng(2).integers(0, 60_000, rows)
    order = np.argsort(times, kind="stable")
    return _columns(order, times[order], rows)


def readings(rows: int) -> list[np.ndarray]:
    """Rows of ten hours."""
    return _columns(np.arange(rows), (np.arange(rows) * (36_000_000 / rows)).astype(np.int64), rows)


def _columns(ids: np.ndarray, times: np.ndarray, rows: int) -> list[np.ndarray]:
    dice = np.random.default_rng(1)
    keys, values = dice.integers(0, 100_000, rows), dice.integers(0, 1_000, rows).astype(np.float64)
    return [ids, keys, values, BEGIN + times.astype("timedelta64[ms]")]


WORKLOADS = {
    "interval join": Workload(
        query=INTERVAL_JOIN,
        output="id BIGINT, a DOUBLE, b DOUBLE",
        tables={"orders": orders, "payments": payments},
    ),
    "over": Workload(query=OVER, output="id BIGINT, n BIGINT, s DOUBLE", tables={"orders": readings}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The seconds of a run, the peaks of memory in bytes, and the rows in state after each batch."""

    rows: int
    seconds: float
    jvm: int
    worker: int = 0
    state: list[int] = field(default_factory=list)

    @property
    def rate(self) -> float:
        return self.rows / self.seconds


def write(workload: Workload, directory: Path, rows: int, batches: int) -> None:
    """Write each table for this engine, in files by time, and for Flink, in files that cover the whole time."""
    for name, columns in workload.tables.items():
        table = pa.table(columns(rows), names=["id", "k", "v", "ts"])
        for kind in ("ours", "theirs"):
            (directory / kind / name).mkdir(parents=True)
        for batch in range(batches):
            part = table.slice(rows * batch // batches, rows * (batch + 1) // batches - rows * batch // batches)
            for number in range(PARTITIONS):
                path = directory / "ours" / name / f"{batch:04}-{number}.parquet"
                pq.write_table(part.take(np.arange(number, part.num_rows, PARTITIONS)), path)
                os.utime(path, (1_000_000_000 + batch,) * 2)
        for number in range(PARTITIONS):
            pq.write_table(
                table.take(np.arange(number, rows, PARTITIONS)), directory / "theirs" / name / f"{number}.parquet"
            )


def script(workload: Workload, directory: Path, options: str, sink: str) -> str:
    tables = "".join(
        f"CREATE TABLE {name} ({COLUMNS}) WITH ('connector' = 'filesystem', 'path' = '{directory / name}', "
        f"'format' = 'parquet'{options});\n"
        for name in workload.tables
    )
    return f"{tables}CREATE TABLE nothing ({workload.output}) WITH ({sink});\nINSERT INTO nothing {workload.query};\n"


def ours(spark: SparkSession, workload: Workload, directory: Path, rows: int, sink: str) -> Measured:
    text = script(workload, directory / "ours", f", 'source.max-files-per-trigger' = '{PARTITIONS}'", sink)
    execution = execute(compile_sql(text, {"parallelism.default": str(PARTITIONS)}), spark, once=True)
    assert isinstance(execution, Execution)
    millis, state, ended = 0, [], False
    with watched(os.getpid()) as peaks:
        while not ended:
            ended = execution.await_termination(0.5)
            for batch in execution.new_batches():
                millis += batch.duration_ms
                state.append(sum(operator.state_rows or 0 for operator in batch.operators.values()))
    return Measured(rows=rows, seconds=millis / 1000, jvm=peaks.jvm, worker=peaks.worker, state=state)


def theirs(flink: Flink, workload: Workload, directory: Path, rows: int, mode: str) -> Measured:
    text = script(workload, directory / "theirs", ", 'parquet.utc-timezone' = 'true'", "'connector' = 'blackhole'")
    with watched(flink.process.pid) as peaks:
        seconds = flink.run(text, MODES[mode] | HEAP)
    return Measured(rows=rows, seconds=seconds, jvm=peaks.jvm)


def verify(spark: SparkSession, flink: Flink, name: str, workload: Workload, directory: Path) -> None:
    """Exit with 1 unless both engines have the same result."""
    write(workload, directory, VERIFIED, 3)
    output = directory / "output"
    sink = f"'connector' = 'filesystem', 'format' = 'parquet', 'path' = '{output}'"
    ours(spark, workload, directory, VERIFIED, sink)
    found = Counter(tuple(row.values()) for row in spark.read.parquet(str(output)).toArrow().to_pylist())
    text = script(workload, directory / "theirs", ", 'parquet.utc-timezone' = 'true'", "'connector' = 'blackhole'")
    wanted = flink.fold(text.replace("INSERT INTO nothing ", ""), ONE_BY_ONE | HEAP)
    if found != wanted or not found:
        sys.exit(f"{name}: {len(found):,} rows here, {len(wanted):,} rows of Flink; {[*(found - wanted)][:2]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of each table")
    parser.add_argument("--batches", type=int, default=10, help="micro-batches in which they come")
    parser.add_argument("--only", choices=[*WORKLOADS], help="one workload")
    parser.add_argument("--flink", help="Flink's interpreter; otherwise FLINK_PYTHON, or .flink/bin/python")
    arguments = parser.parse_args()
    console = Console(stderr=True)
    python = flink_python(arguments.flink)
    table = Table(title=f"{arguments.rows:,} rows in each table, Flink 2.3 with heap state")
    for column in ("workload", "this engine, rows/s", "Flink, rows/s", "mini-batch", "ratio", "memory", "state"):
        table.add_column(column, justify="left" if column == "workload" else "right")
    with tempfile.TemporaryDirectory(prefix="hintplan-in-time-") as scratch, _spark(Path(scratch)) as spark:
        for name in [arguments.only] if arguments.only else WORKLOADS:
            workload, place = WORKLOADS[name], Path(scratch) / name.replace(" ", "-")
            with Flink.start(python) as flink:
                verify(spark, flink, name, workload, place / "verified")
            small, rows = max(arguments.rows // 10, 1_000), arguments.rows
            write(workload, place / "small", small, 2)
            write(workload, place / "full", rows, arguments.batches)
            count = rows * len(workload.tables)
            nothing = "'connector' = 'blackhole'"
            ours(spark, workload, place / "small", small, nothing)
            here = ours(spark, workload, place / "full", count, nothing)
            console.log(f"{name}: {here.rate:,.0f} rows/s, rows in state: {here.state}")
            with Flink.start(python, jvm=("-Xmx10g",)) as flink:
                mode = max(MODES, key=lambda each: theirs(flink, workload, place / "small", small, each).rate)
                there = theirs(flink, workload, place / "full", count, mode)
            console.log(f"{name}: Flink, mini-batch {mode}: {there.rate:,.0f} rows/s")
            memory = " + ".join(f"{size / 2**30:.1f} GiB" for size in (here.jvm, here.worker))
            table.add_row(
                name,
                f"{here.rate:,.0f}",
                f"{there.rate:,.0f}",
                mode,
                f"{here.rate / there.rate:.1f} x",
                f"{memory}, Flink {there.jvm / 2**30:.1f} GiB",
                f"{max(here.state[: len(here.state) // 2]):,} to {max(here.state):,}",
            )
    Console().print(table)


def _spark(scratch: Path) -> SparkSession:
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    log = SparkLog()
    with log.captured():
        return start_session(
            f"local[{PARTITIONS}]", {"spark.driver.memory": "6g", "spark.local.dir": str(scratch / "spark")}
        )


if __name__ == "__main__":
    try:
        main()
    except FlinkError as error:
        sys.exit(f"benchmarks/in_time.py: {error}")
