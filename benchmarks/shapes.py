"""What a plan costs by its shape: four operators with state beside one, two sinks below a join beside one.

    python benchmarks/shapes.py                    # some ten minutes
    python benchmarks/shapes.py --only small --passes 5

Each case runs from an empty checkpoint to the end of its input, in turn with the others, in one Spark; the first pass
warms the JVM up and is not counted. Of small batches, of 1,000 rows against 100,000 keys, a figure is the median of the
batches, from trigger to commit; of large ones, of 4 M facts and their part of 400,000 rows of a dimension, the sum.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from statistics import median

from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table
from workloads import FILES, Workload, inner_join, script, small_aggregate

from hintplan import compile_sql
from hintplan.runtime.run.execute import execute
from hintplan.runtime.run.execution import Execution
from hintplan.runtime.spark.session import start_session

PARTITIONS = 2
_SINK = (
    "CREATE TABLE {} (k BIGINT, n BIGINT, s DOUBLE, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'blackhole');\n"
)
_JOINED = "CREATE TABLE {} (k BIGINT, id BIGINT, v DOUBLE, name STRING) WITH ('connector' = 'blackhole');\n"
_JOIN = "CREATE VIEW j AS SELECT f.k, f.id, f.v, d.name FROM facts AS f JOIN dimension AS d ON f.k = d.k;\n"
_PER_KEY = "SELECT {0} AS k, {1} AS n, {2} AS s FROM {3} GROUP BY {0}"
_MODULI = (10_000, 100, 10)


def _above_each_other() -> str:
    """An aggregate, and one of its result, and so on: updates flow through all four."""
    views = [f"CREATE VIEW a0 AS {_PER_KEY.format('k', 'COUNT(*)', 'SUM(v)', 'events')};\n"]
    for number, modulus in enumerate(_MODULI):
        text = _PER_KEY.format(f"MOD(k, {modulus})", "SUM(n)", "SUM(s)", f"a{number}")
        views.append(f"CREATE VIEW a{number + 1} AS {text};\n")
    return "".join(views) + _SINK.format("r") + f"INSERT INTO r SELECT k, n, s FROM a{len(_MODULI)};\n"


def _beside_each_other() -> str:
    """Four aggregates of the same rows, each with a sink."""
    keys = ("k", *(f"MOD(k, {modulus})" for modulus in _MODULI))
    parts = [
        _SINK.format(f"r{number}") + f"INSERT INTO r{number} {_PER_KEY.format(key, 'COUNT(*)', 'SUM(v)', 'events')};\n"
        for number, key in enumerate(keys)
    ]
    return "".join(parts)


def _into(*sinks: str) -> str:
    inserts = (_JOINED.format(sink) + f"INSERT INTO {sink} SELECT k, id, v, name FROM j;\n" for sink in sinks)
    return _JOIN + "".join(inserts)


SMALL = {
    "one aggregate": _SINK.format("r") + f"INSERT INTO r {_PER_KEY.format('k', 'COUNT(*)', 'SUM(v)', 'events')};\n",
    "four above each other": _above_each_other(),
    "four beside each other": _beside_each_other(),
}
LARGE = {"a join, one sink": _into("r"), "a join, two sinks": _into("r", "q")}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", choices=("small", "large"), help="batches of this size")
    parser.add_argument("--passes", type=int, default=3, help="of each case, besides the first one")
    parser.add_argument("--scale", type=float, default=1, help="multiplies the rows of large batches")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hintplan-benchmark-") as scratch:
        conf = {"spark.driver.memory": "6g", "spark.local.dir": scratch, "spark.sql.warehouse.dir": scratch}
        spark = start_session(f"local[{PARTITIONS}]", conf)
        if arguments.only != "large":
            tables = small_aggregate(Path(scratch), keys=100_000, fill=1, batches=30)
            measure(spark, "ms per batch of 1,000 rows", tables, SMALL, arguments.passes, small=True)
        if arguments.only != "small":
            facts, rows = (int(number * arguments.scale) for number in (12_000_000, 400_000))
            tables = inner_join(Path(scratch), facts=facts, dimension=rows)
            measure(spark, f"ms for {tables.rows:,} rows", tables, LARGE, arguments.passes, small=False)
        spark.stop()


def measure(
    spark: SparkSession, title: str, tables: Workload, queries: Mapping[str, str], passes: int, *, small: bool
) -> None:
    """A table of what each of ``queries`` takes, and as how many of the first one."""
    found: dict[str, list[float]] = {name: [] for name in queries}
    states: dict[str, int] = {}
    for number in range(passes + 1):
        for name, query in queries.items():
            milliseconds, states[name] = run(spark, tables, query)
            if number:
                found[name].append(median(milliseconds[1:]) if small else sum(milliseconds))
    shown = Table(title=f"{title}, median of {passes}, {os.cpu_count()} cores")
    for column in ("plan", "ms", "range", "ratio", "MB of state"):
        shown.add_column(column, justify="left" if column == "plan" else "right")
    first = median(next(iter(found.values())))
    for name, each in found.items():
        between = f"{min(each):,.0f} to {max(each):,.0f}"
        ratio = f"{median(each) / first:.2f} x"
        shown.add_row(name, f"{median(each):,.0f}", between, ratio, f"{states[name] / 1e6:,.1f}")
    Console().print(shown)


def run(spark: SparkSession, tables: Workload, query: str) -> tuple[list[int], int]:
    """The milliseconds of each micro-batch of ``query`` over ``tables``, and the bytes of state in the end."""
    declared = script(tables, options=f", 'source.max-files-per-trigger' = '{FILES}'", primary_keys=False)
    text = declared.removesuffix(tables.query) + query
    execution = execute(compile_sql(text, {"parallelism.default": str(PARTITIONS)}), spark, once=True)
    assert isinstance(execution, Execution)
    ended = False
    batches: dict[int, int] = {}
    state: dict[str, int] = {}
    while not ended:
        ended = execution.await_termination(1.0)
        for batch in execution.new_batches():
            batches[batch.batch] = max(batch.duration_ms, batches.get(batch.batch, 0))
            state |= {name: kept.state_bytes for name, kept in batch.operators.items()}
    return list(batches.values()), sum(state.values())


if __name__ == "__main__":
    main()
