"""Rows per second of asynchronous table functions, beside capacity / delay, on one core of a Spark session.

    python benchmarks/async_function.py              # under a minute
    python benchmarks/async_function.py --seconds 10  # longer, for steadier figures

The function waits 10 ms and returns a row. With ``capacity`` calls in flight all the time there are capacity / delay
rows a second: that is the limit. It is reached over the edges of Arrow batches only if the next batch is read while
calls of the last one are in flight, so each capacity is measured with large and with small batches. The same function
without asynchronous calls is one line, and what asyncio makes of the delay alone, without Spark and an engine, is
another.

One task calls the function for the numbers from 0 on, into a sink that discards; the rate is rows over the time of that
job. A small job goes first and is not counted.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path

from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # for the workers too, see one_core()

from benchmarks.one_core import one_core, seconds
from benchmarks.waiting import DELAY_SECONDS, WaitAsync
from hintplan.plans.declarations.tables import Column, Function
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Argument, Correlate, JoinColumn
from hintplan.plans.settings.calls import CALL_GROUPS
from hintplan.runtime.builders.backend import SparkBackend
from hintplan.runtime.builders.correlate import call_function
from hintplan.runtime.builders.edges import Edges
from hintplan.runtime.requests.request import RequestRun

CAPACITIES = (1, 10, 100)
ARROW_ROWS = (10_000, 100)
NUMBERS = (Column(name="id", type="BIGINT"),)
RETURNED = (Column(name="n", type="BIGINT"), Column(name="name", type="STRING"))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3.0, help="about how long each line takes")
    arguments = parser.parse_args()
    console = Console(width=max(Console().width, 100))
    table = Table(title=f"a function that takes 10 ms, on one of {os.cpu_count()} cores")
    for column in ("calls", "rows of an Arrow batch", "rows", "rows/s", "limit", "of the limit"):
        table.add_column(column, justify="left" if column == "calls" else "right", no_wrap=True)

    def line(name: str, batch: str, rows: int, rate: float, limit: float) -> None:
        console.log(f"{name}: {rate:,.0f} rows/s")
        table.add_row(name, batch, f"{rows:,}", f"{rate:,.0f}", f"{limit:,.0f}", f"{rate / limit:.0%}")

    with tempfile.TemporaryDirectory(prefix="hintplan-benchmark-") as scratch:
        spark = one_core(scratch)
        once = 1 / DELAY_SECONDS
        rows = int(once * arguments.seconds)
        line("synchronous", f"{ARROW_ROWS[0]:,}", rows, measure(spark, "Wait", 1, ARROW_ROWS[0], rows), once)
        for capacity in CAPACITIES:
            rows = int(capacity * once * arguments.seconds)
            for size in ARROW_ROWS:
                rate = measure(spark, "WaitAsync", capacity, size, rows)
                line(f"capacity {capacity}", f"{size:,}", rows, rate, capacity * once)
        spark.stop()
    rows = int(CAPACITIES[-1] * once * arguments.seconds)
    alone = asyncio.run(without_engine(rows, CAPACITIES[-1]))
    line(f"asyncio alone, {CAPACITIES[-1]} at once", "", rows, alone, CAPACITIES[-1] * once)
    console.print(table)
    console.print(f"load average of the last minute: {os.getloadavg()[0]:.1f}")


def measure(spark: SparkSession, name: str, capacity: int, arrow_rows: int, rows: int) -> float:
    """Rows per second, after a small job."""
    waits = name == "WaitAsync"
    function = Function(
        class_name=f"benchmarks.waiting.{name}",
        kind="async-table" if waits else "table",
        arguments=("BIGINT",),
        output=RETURNED,
    )
    groups = {group.name: group for group in CALL_GROUPS}
    settings = {"async": groups["async"].resolved({"edit": {"buffer-capacity": capacity}})}
    call = Correlate(
        id="correlate_wait",
        inputs=("scan_numbers",),
        function="wait",
        join_type="inner",
        arguments=(Argument(column="id"),),
        output=tuple(JoinColumn(name=c.name, type=c.type, side="right", column=c.name) for c in RETURNED),
        settings=settings if waits else {},
    )
    own = spark.newSession()
    own.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(arrow_rows))
    edges = Edges(
        backend=SparkBackend(session=own),
        plan=Plan(name="benchmark", functions={"wait": function}, operators=(call,)),
        columns={"scan_numbers": NUMBERS},
        changelog={call.id: False},
        lookups=RequestRun(token="benchmark", allowed_modules=("benchmarks",)),
    )

    def calls(number: int) -> float:
        numbers = own.range(0, number, 1, 1).toDF("id")
        return seconds(call_function(call, [numbers], edges))

    calls(min(rows, 10 * capacity))
    return rows / calls(rows)


async def without_engine(rows: int, capacity: int) -> float:
    """Calls per second of the function when nothing else is done: timers fire up to 1 ms late."""
    function, numbers = WaitAsync(), iter(range(rows))

    async def work() -> None:
        for number in numbers:
            await function.eval(number)

    started = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(capacity)))
    return rows / (time.perf_counter() - started)


if __name__ == "__main__":
    main()
