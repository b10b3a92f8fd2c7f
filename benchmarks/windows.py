"""Time of a micro-batch with windows of event time: by open windows, and compared with plans without event time.

    python benchmarks/windows.py                  # full size, about ten minutes
    python benchmarks/windows.py --scale 0.01     # 100,000 open windows instead of ten million

Three comparisons, each of medians of one run:

- batches of 1,000 rows with few open windows and with ten million
- batches of 1,000 rows: a TUMBLE of one minute, and the same groups without event time
- batches of 200,000 rows: the same

Both plans count and sum by key and minute. With event time, the minute is a window and the rows carry watermarks.
Without, it is ``FLOOR(ts TO MINUTE)`` of the row. No window closes while a batch is measured, so the numbers of rows in
state are equal. The plans take turns, twice each.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from hintplan import compile_sql
from hintplan.runtime.run.execute import execute
from hintplan.runtime.run.execution import Execution
from hintplan.runtime.spark.quiet import SparkLog
from hintplan.runtime.spark.session import start_session

ROOT = Path(__file__).resolve().parents[1]
PARTITIONS = 2
START = 1_700_000_040_000
"""The time of the first row in ms, at the start of a minute."""
MINUTE = 60_000
MINUTES = 20
"""The number of windows over which the rows of the filling batches are spread."""
FILL, SKIPPED, BATCHES, TURNS = 10, 5, 40, 2
FEW, MANY = 100_000, 10_000_000
SMALL, LARGE = 1_000, 200_000
SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("ts", pa.timestamp("us"))])

TABLE = """CREATE TABLE events (k BIGINT, v BIGINT, ts TIMESTAMP(3){watermark})
WITH ('connector' = 'filesystem', 'format' = 'parquet', 'path' = '{path}', 'source.max-files-per-trigger' = '1');
CREATE TABLE sink (k BIGINT, n BIGINT, s BIGINT) WITH ('connector' = 'blackhole');
"""
QUERIES = {
    "event time": """INSERT INTO sink SELECT k, COUNT(*), SUM(v)
FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY k, window_start, window_end;
""",
    "no event time": "INSERT INTO sink SELECT k, COUNT(*), SUM(v) FROM events GROUP BY k, FLOOR(ts TO MINUTE);\n",
}
WATERMARKS = {"event time": ", WATERMARK FOR ts AS ts - INTERVAL '1' DAY", "no event time": ""}


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The median time of a batch in ms, the slowest, and the rows in state after the last."""

    median: float
    slowest: float
    state_rows: int


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies the open windows")
    scale = parser.parse_args().scale
    console = Console(stderr=True)
    lines: list[tuple[str, ...]] = []
    with tempfile.TemporaryDirectory(prefix="hintplan-windows-") as scratch, _spark(Path(scratch)) as spark:
        few, many = (
            _measured(spark, Path(scratch), groups=int(count * scale), rows=SMALL, plans=["event time"])["event time"]
            for count in (FEW, MANY)
        )
        lines += [_line(f"{SMALL:,} rows", "few open windows", few), _line("", "many open windows", many, few)]
        console.log(f"growth: {many.median / few.median:.2f} x")
        for rows in (SMALL, LARGE):
            found = _measured(spark, Path(scratch), groups=int(FEW * scale), rows=rows, plans=list(QUERIES))
            timed, plain = (found[plan] for plan in QUERIES)
            lines += [_line(f"{rows:,} rows", "no event time", plain), _line("", "event time", timed, plain)]
            console.log(f"{rows:,} rows: {timed.median / plain.median:.2f} x")
    table = Table(title=f"{os.cpu_count()} cores, parallelism {PARTITIONS}, scale {scale:g}")
    for number, column in enumerate(("batch", "plan", "rows in state", "median, ms", "slowest, ms", "ratio")):
        table.add_column(column, justify="left" if number < 2 else "right")
    for line in lines:
        table.add_row(*line)
    Console().print(table)


def _line(batch: str, plan: str, one: Measured, base: Measured | None = None) -> tuple[str, ...]:
    ratio = "" if base is None else f"{one.median / base.median:.2f} x"
    return batch, plan, f"{one.state_rows:,}", f"{one.median:,.0f}", f"{one.slowest:,.0f}", ratio


def _measured(
    spark: SparkSession, scratch: Path, *, groups: int, rows: int, plans: Sequence[str]
) -> dict[str, Measured]:
    """Measure batches of ``rows`` rows after ``groups`` groups are in state, with ``plans`` in turns."""
    with tempfile.TemporaryDirectory(dir=scratch) as directory:
        _write(Path(directory), groups, rows)
        times: dict[str, list[float]] = {plan: [] for plan in plans}
        state_rows: dict[str, int] = {}
        for _ in range(TURNS):
            for plan in plans:
                milliseconds, state_rows[plan] = _run(spark, plan, Path(directory))
                times[plan] += milliseconds[FILL + SKIPPED : FILL + SKIPPED + BATCHES]
    return {
        plan: Measured(median=statistics.median(times[plan]), slowest=max(times[plan]), state_rows=state_rows[plan])
        for plan in plans
    }


def _run(spark: SparkSession, plan: str, directory: Path) -> tuple[list[float], int]:
    """Run a plan over the files of ``directory``; return the ms of each batch, and the most rows in state."""
    script = TABLE.format(watermark=WATERMARKS[plan], path=directory) + QUERIES[plan]
    execution = execute(compile_sql(script, {"parallelism.default": str(PARTITIONS)}), spark, once=True)
    assert isinstance(execution, Execution)
    milliseconds, state_rows, ended = [], 0, False
    while not ended:
        ended = execution.await_termination(1.0)
        for batch in execution.new_batches():
            milliseconds.append(float(batch.duration_ms))
            state_rows = max([state_rows, *(state.state_rows for state in batch.operators.values())])
    return milliseconds, state_rows


def _write(directory: Path, groups: int, rows: int) -> None:
    """Write a file a batch: first each group once, then batches of random groups of the last minute."""
    dice = np.random.default_rng(7)
    keys = dice.permutation(groups)
    for number, part in enumerate(np.array_split(keys, FILL)):
        _write_batch(directory, number, part, START + part % MINUTES * MINUTE)
    last = keys[keys % MINUTES == MINUTES - 1]
    for number in range(FILL, FILL + SKIPPED + BATCHES):
        chosen = dice.choice(last, rows)
        _write_batch(
            directory, number, chosen, START + (MINUTES - 1) * MINUTE + number * 1000 + dice.integers(0, 1000, rows)
        )


def _write_batch(directory: Path, number: int, keys: np.ndarray, times: np.ndarray) -> None:
    path = directory / f"{number:04d}.parquet"
    micros = pa.array(np.asarray(times, np.int64) * 1000).cast(pa.timestamp("us"))
    pq.write_table(pa.table([pa.array(keys), pa.array(keys % 1000), micros], schema=SCHEMA), path)
    stamp = time.time() - 3600 + number
    os.utime(path, (stamp, stamp))


@contextmanager
def _spark(scratch: Path) -> Iterator[SparkSession]:
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    log = SparkLog()
    conf = {"spark.driver.memory": "6g", "spark.local.dir": str(scratch / "spark")}
    with log.captured():
        spark = start_session(f"local[{PARTITIONS}]", conf)
    yield spark
    spark.stop()
    log.discard()


if __name__ == "__main__":
    main()
