"""Rows per second of lookup joins, by the way of looking up, on one core of a Spark session.

    python benchmarks/lookup.py              # some minutes
    python benchmarks/lookup.py --scale 0.1  # a tenth of the rows

Two sources: PostgreSQL, on a server of the benchmark's own on loopback, and one that takes 5 ms for each call. Without
a cache they are asked key by key, synchronously or with 1, 10 or 100 calls in flight, or with up to 1,000 keys a call
(bulk); then through a partial cache, in which 90 % or all rows find their key, and through a full cache, beside Spark's
own broadcast join with the same table. Where the delay is known, the limit is capacity / delay; what asyncio makes of
it alone, without Spark and an engine, is in a line of its own.

One task reads a Parquet file of requests and joins it, into a sink that discards; the rate is rows over the time of
that job. In requests without a cache each key comes once, as equal keys of a batch are asked for once. A small job goes
first and is not counted. Figures of different machines or moments do not compare; ratios do.
"""

from __future__ import annotations

import argparse
import asyncio
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
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # for the workers too, see one_core()

from benchmarks.one_core import one_core, seconds
from benchmarks.sources import DELAY_SECONDS, SlowAsync
from hintplan import compile_sql
from hintplan.plans.declarations.tables import Column
from hintplan.plans.operators import LookupJoin
from hintplan.runtime.builders.backend import SparkBackend
from hintplan.runtime.builders.edges import Edges
from hintplan.runtime.builders.lookup_join import look_up
from hintplan.runtime.requests.request import RequestRun
from tests.connectors.lookup_sources.servers import PASSWORD, Postgres, postgres_server

DIMENSION_ROWS = 200_000
HOT_KEYS = 10_000
BULK_SIZE = 1_000
FULL_ROWS = 6_000_000

QUERY = """
CREATE TABLE requests (id BIGINT, k BIGINT, proc_time AS PROCTIME())
WITH ('connector' = 'filesystem', 'path' = 'requests', 'format' = 'parquet');
CREATE TABLE dimension (k BIGINT, v DOUBLE, name STRING) WITH ({options});
CREATE TABLE enriched (id BIGINT, v DOUBLE, name STRING) WITH ('connector' = 'blackhole');
INSERT INTO enriched
SELECT /*+ LOOKUP('table' = 'd', 'async' = '{is_async}', 'capacity' = '{capacity}') */ r.id, d.v, d.name
FROM requests AS r LEFT JOIN dimension FOR SYSTEM_TIME AS OF r.proc_time AS d ON r.k = d.k;
"""
NO_CACHE = {"lookup.cache": "NONE"}
PARTIAL = {"lookup.cache": "PARTIAL", "lookup.partial-cache.max-rows": "10000000"}
FULL = {"lookup.cache": "FULL", "lookup.full-cache.periodic-reload.interval": "1 d"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One row of the table: a way of looking up, its requests, and the rows/s that the delay allows at most."""

    name: str
    options: dict[str, str]
    rows: int
    capacity: int = 0
    keys: Callable[[int], np.ndarray]
    warm_up: Callable[[int], np.ndarray] | None = None
    limit: float | None = None


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies the rows")
    arguments = parser.parse_args()
    console = Console(width=max(Console().width, 100))
    os.environ["BENCHMARK_PASSWORD"] = PASSWORD
    with tempfile.TemporaryDirectory(prefix="hintplan-benchmark-") as scratch, postgres_server() as server:
        if server is None:
            sys.exit("this needs PostgreSQL; on Debian: apt-get install -y postgresql")
        fill(server)
        spark = one_core(scratch)
        table = Table(title=f"lookup joins on one of {os.cpu_count()} cores")
        for column in ("source", "lookups", "rows", "rows/s", "limit", "of the limit"):
            table.add_column(column, justify="left" if column in ("source", "lookups") else "right", no_wrap=True)
        rates: dict[tuple[str, str], float] = {}
        for source, cases in (("PostgreSQL", postgres_cases(server)), ("5 ms", slow_cases())):
            for case in cases:
                rate = measure(spark, Path(scratch), case, arguments.scale)
                rates[source, case.name] = rate
                console.log(f"{source}: {case.name}: {rate:,.0f} rows/s")
                limit = ("", "") if case.limit is None else (f"{case.limit:,.0f}", f"{rate / case.limit:.0%}")
                table.add_row(source, case.name, f"{int(case.rows * arguments.scale):,}", f"{rate:,.0f}", *limit)
            table.add_section()
        alone = asyncio.run(without_engine(int(80_000 * arguments.scale), 100))
        limit = 100 / DELAY_SECONDS
        row = ("asyncio", "5 ms, 100 at once", f"{int(80_000 * arguments.scale):,}", f"{alone:,.0f}")
        table.add_row(*row, f"{limit:,.0f}", f"{alone / limit:.0%}")
        rate = rates["Spark", "broadcast join"] = measure_broadcast(spark, Path(scratch), arguments.scale)
        table.add_row("Spark", "broadcast join", f"{int(FULL_ROWS * arguments.scale):,}", f"{rate:,.0f}", "", "")
        spark.stop()
    console.print(table)
    bulk, by_key = rates["PostgreSQL", "async, bulk"], rates["PostgreSQL", "async, capacity 100"]
    console.print(f"bulk on PostgreSQL is {bulk / by_key:.1f} x one key a query with 100 in flight")
    full = rates["PostgreSQL", "full cache"]
    console.print(f"the full cache is {full / rate:.2f} x Spark's broadcast join")


def each_once(rows: int) -> np.ndarray:
    """Keys of the dimension in random order, each once before any comes again."""
    order = np.random.default_rng(7)
    rounds = [order.permutation(DIMENSION_ROWS) for _ in range(-(-rows // DIMENSION_ROWS))]
    return np.concatenate(rounds)[:rows]


def hot(rows: int) -> np.ndarray:
    """Keys that a warm cache has."""
    return np.random.default_rng(8).integers(0, HOT_KEYS, rows)


def nine_of_ten_hot(rows: int) -> np.ndarray:
    """Every tenth key is one that no cache has yet, and that the table has."""
    keys = hot(rows)
    cold = np.arange(9, rows, 10)
    keys[cold] = HOT_KEYS + np.arange(len(cold))
    return keys


def hot_keys(_: int) -> np.ndarray:
    """Each key once that :func:`hot` asks for."""
    return np.arange(HOT_KEYS)


def random_keys(rows: int) -> np.ndarray:
    return np.random.default_rng(9).integers(0, DIMENSION_ROWS, rows)


async def without_engine(rows: int, capacity: int) -> float:
    """Calls per second of the source with the delay when nothing else is done: timers fire up to 1 ms late."""
    source, keys = SlowAsync(), iter(range(rows))

    async def work() -> None:
        for key in keys:
            await source.lookup((key,))

    started = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(capacity)))
    return rows / (time.perf_counter() - started)


def postgres_cases(server: Postgres) -> Iterator[Case]:
    place = {
        "url": server.url, "table-name": "dimension", "username": "hintplan", "password": "${env:BENCHMARK_PASSWORD}",
        "connection.pool-size": "10",
    }  # fmt: skip
    jdbc = {"connector": "jdbc", **place}
    by_key = {"connector": "python", **{f"properties.{name}": value for name, value in place.items()}}
    sync = by_key | {"class": "benchmarks.sources.KeyByKey"}
    in_flight = by_key | {"async-class": "benchmarks.sources.KeyByKeyAsync"}
    yield Case(name="sync", options=sync | NO_CACHE, rows=20_000, keys=each_once)
    for capacity, rows in ((1, 15_000), (10, 20_000), (100, 20_000)):
        name = f"async, capacity {capacity}"
        yield Case(name=name, options=in_flight | NO_CACHE, rows=rows, capacity=capacity, keys=each_once)
    yield Case(name="sync, bulk", options=jdbc | NO_CACHE, rows=600_000, keys=each_once)
    yield Case(name="async, bulk", options=jdbc | NO_CACHE, rows=600_000, capacity=100, keys=each_once)
    yield from cached(jdbc, partial_rows=1_500_000)
    yield Case(name="full cache", options=jdbc | FULL, rows=FULL_ROWS, keys=random_keys, warm_up=hot_keys)


def slow_cases() -> Iterator[Case]:
    def slow(option: str, name: str) -> dict[str, str]:
        return {"connector": "python", option: f"benchmarks.sources.{name}"}

    once = 1 / DELAY_SECONDS
    yield Case(name="sync", options=slow("class", "Slow") | NO_CACHE, rows=1_000, keys=each_once, limit=once)
    for capacity, rows in ((1, 1_000), (10, 8_000), (100, 80_000)):
        options = slow("async-class", "SlowAsync") | NO_CACHE
        name, limit = f"async, capacity {capacity}", capacity * once
        yield Case(name=name, options=options, rows=rows, capacity=capacity, keys=each_once, limit=limit)
    options = slow("class", "SlowBulk") | NO_CACHE
    yield Case(name="sync, bulk", options=options, rows=600_000, keys=each_once, limit=BULK_SIZE * once)
    options = slow("async-class", "SlowBulkAsync") | NO_CACHE
    yield Case(name="async, bulk", options=options, rows=600_000, capacity=100, keys=each_once)
    yield from cached(slow("async-class", "SlowBulkAsync"), partial_rows=1_500_000)


def cached(options: dict[str, str], *, partial_rows: int) -> Iterator[Case]:
    capacity, options = 100, options | PARTIAL
    for name, keys, rows in (
        ("partial cache, 90 % hits", nine_of_ten_hot, partial_rows),
        ("partial cache, all hits", hot, 4 * partial_rows),
    ):
        yield Case(name=name, options=options, rows=rows, capacity=capacity, keys=keys, warm_up=hot_keys)


def fill(server: Postgres) -> None:
    server.execute(
        "CREATE TABLE dimension (k bigint PRIMARY KEY, v double precision NOT NULL, name text NOT NULL)",
        f"INSERT INTO dimension SELECT i, i * 0.5, 'name ' || i FROM generate_series(0, {DIMENSION_ROWS - 1}) AS i",
        "ANALYZE dimension",
    )


def measure(spark: SparkSession, scratch: Path, case: Case, scale: float) -> float:
    """Rows per second of one case, after a small job or the one that warms the cache."""
    is_async = "async" in case.name or ("partial" in case.name)
    options = ", ".join(f"'{name}' = '{value}'" for name, value in case.options.items())
    text = QUERY.format(options=options, is_async=str(is_async).lower(), capacity=max(case.capacity, 1))
    plan = compile_sql(text)
    (lookup,) = (operator for operator in plan.operators if isinstance(operator, LookupJoin))
    edges = Edges(
        backend=SparkBackend(session=spark),
        plan=plan,
        columns={lookup.inputs[0]: (Column(name="id", type="BIGINT"), Column(name="k", type="BIGINT"))},
        changelog={lookup.id: False},
        lookups=RequestRun(token=case.name, allowed_modules=("benchmarks",)),
    )

    def joined(keys: np.ndarray) -> DataFrame:
        return look_up(lookup, [written(spark, scratch, keys)], edges)

    rows = int(case.rows * scale)
    seconds(joined(case.warm_up(rows) if case.warm_up else case.keys(min(rows, 100))))
    return rows / seconds(joined(case.keys(rows)))


def measure_broadcast(spark: SparkSession, scratch: Path, scale: float) -> float:
    keys = np.arange(DIMENSION_ROWS)
    dimension = pa.table({"k": keys, "v": keys * 0.5, "name": [f"name {key}" for key in keys]})
    path = scratch / "dimension.parquet"
    pq.write_table(dimension, path)
    right = F.broadcast(spark.read.parquet(str(path)))

    def joined(requests: np.ndarray) -> DataFrame:
        return written(spark, scratch, requests).join(right, "k", "left").select("id", "v", "name")

    rows = int(FULL_ROWS * scale)
    seconds(joined(hot_keys(0)))
    return rows / seconds(joined(random_keys(rows)))


def written(spark: SparkSession, scratch: Path, keys: np.ndarray) -> DataFrame:
    """The requests for ``keys`` as one file that one task reads."""
    path = Path(tempfile.mkdtemp(dir=scratch)) / "requests.parquet"
    pq.write_table(pa.table({"id": np.arange(len(keys)), "k": keys.astype(np.int64)}), path, row_group_size=1 << 20)
    return spark.read.parquet(str(path)).coalesce(1)


if __name__ == "__main__":
    main()
