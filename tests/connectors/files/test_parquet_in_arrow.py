"""Files of Parquet that workers read for operators with state: the same results as when Spark reads them."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from hintplan import compile_sql
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors import table as connectors
from hintplan.runtime.run.execute import execute
from hintplan.runtime.run.execution import Execution
from tests.spark.programs import changes

pytestmark = pytest.mark.spark

QUERY = """
CREATE TABLE orders ({columns}) WITH ('connector' = 'filesystem', 'format' = 'parquet', 'path' = '{directory}/orders',
  'source.max-files-per-trigger' = '2');
CREATE TABLE customers (id BIGINT, name STRING) WITH (
  'connector' = 'filesystem', 'format' = 'parquet', 'path' = '{directory}/customers');
CREATE TABLE result (name STRING, n BIGINT, total BIGINT) WITH (
  'connector' = 'filesystem', 'format' = 'json', 'path' = '{directory}/result', 'sink.changelog' = 'true');
INSERT INTO result
SELECT name, COUNT(*), SUM(amount) FROM (
  SELECT c.name, o.amount FROM orders AS o JOIN (SELECT id, name FROM customers WHERE id <> 3) AS c ON o.customer = c.id
) GROUP BY name;
"""
PLAIN = "customer BIGINT, amount INT"
NAMES = ("a b.parquet", "100%25.parquet", "grüße #1?.parquet", "d.parquet", "e.parquet")


def add(directory: Path, name: str, table: pa.Table, time: int) -> None:
    """A file that arrives at ``time``."""
    directory.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, directory / f".{name}")
    os.utime(directory / f".{name}", (time, time))
    os.rename(directory / f".{name}", directory / name)


def orders(first: int, last: int) -> pa.Table:
    numbers = range(first, last)
    return pa.table(
        {"customer": [n % 5 for n in numbers], "amount": pa.array([n or None for n in numbers], pa.int32())}
    )


def run(spark: SparkSession, directory: Path, columns: str = PLAIN) -> Execution:
    plan = compile_sql(QUERY.format(directory=directory, columns=columns), {"parallelism.default": "2"})
    execution = execute(plan, spark, checkpoint=str(directory / "checkpoint"), once=True)
    assert isinstance(execution, Execution)
    assert execution.await_termination(180)
    return execution


def expected(last: int) -> dict[tuple[object, ...], int]:
    """What is left when orders up to ``last`` have come: by hand, of customers 0 to 4 without 3 and 4."""
    kept = {f"c{customer}": [n for n in range(last) if n % 5 == customer] for customer in (0, 1, 2)}
    return {(name, len(numbers), sum(numbers)): 1 for name, numbers in kept.items()}


@pytest.mark.integration
def test_a_query_gives_the_same_whoever_reads_its_files(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = pa.table({"id": [0, 1, 2, 3], "name": ["c0", "c1", "c2", "c3"]})
    add(tmp_path / "customers", "all.parquet", names, 1_700_000_000)
    for number, name in enumerate(NAMES[:3]):
        add(tmp_path / "orders", name, orders(100 * number, 100 * (number + 1)), 1_700_000_000 + number)
    first = run(spark, tmp_path)
    assert folded(tmp_path) == expected(300)
    assert sum(batch.rows_in for batch in first.new_batches()) == 304
    # A checkpoint that was begun with one reader continues with the other.
    add(tmp_path / "orders", NAMES[3], orders(300, 400), 1_700_000_010)
    with monkeypatch.context() as patch:
        patch.setattr(connectors, "why_not_in_arrow", lambda *_: "a test")
        second = run(spark, tmp_path)
    assert folded(tmp_path) == expected(400)
    assert sum(batch.rows_in for batch in second.new_batches()) == 100
    add(tmp_path / "orders", NAMES[4], orders(400, 500), 1_700_000_020)
    run(spark, tmp_path)
    assert folded(tmp_path) == expected(500)


def test_a_file_that_does_not_fit_is_named_and_read_when_it_is_mended(spark: SparkSession, tmp_path: Path) -> None:
    add(tmp_path / "customers", "all.parquet", pa.table({"id": [0], "name": ["c0"]}), 1_700_000_000)
    add(tmp_path / "orders", "a.parquet", pa.table({"customer": ["0"], "amount": [1]}), 1_700_000_000)
    with pytest.raises(RunError, match=r"column customer of /.*/a\.parquet is of type string, which cannot be read as"):
        run(spark, tmp_path)
    mended = pa.table({"customer": [0], "amount": pa.array([1], pa.int32())})
    add(tmp_path / "orders", "a.parquet", mended, 1_700_000_000)
    run(spark, tmp_path)
    assert folded(tmp_path) == {("c0", 1, 1): 1}


def test_columns_that_are_in_the_path_are_read_by_spark(spark: SparkSession, tmp_path: Path) -> None:
    add(tmp_path / "customers", "all.parquet", pa.table({"id": [0, 1], "name": ["c0", "c1"]}), 1_700_000_000)
    for customer in (0, 1):
        amounts = pa.table({"amount": pa.array([customer + 5], pa.int32())})
        add(tmp_path / "orders" / f"customer={customer}", "a.parquet", amounts, 1_700_000_000)
    run(spark, tmp_path)
    assert folded(tmp_path) == {("c0", 1, 5): 1, ("c1", 1, 6): 1}


def test_a_sink_that_drops_rows_still_counts_them(spark: SparkSession, tmp_path: Path) -> None:
    add(tmp_path / "customers", "all.parquet", pa.table({"id": [0, 1], "name": ["c0", "c1"]}), 1_700_000_000)
    add(tmp_path / "orders", "a.parquet", orders(0, 10), 1_700_000_000)
    add(tmp_path / "orders", "b.parquet", pa.table({"customer": [1]}), 1_700_000_001)
    add(tmp_path / "orders", "c.parquet", orders(10, 15), 1_700_000_002)
    script = QUERY.format(directory=tmp_path, columns=PLAIN).replace(
        "'connector' = 'filesystem', 'format' = 'json'", "'connector' = 'blackhole'"
    )
    script = re.sub(r"'blackhole'.*?\);", "'blackhole');", script)
    execution = execute(compile_sql(script, {"parallelism.default": "2"}), spark, once=True)
    assert execution.await_termination(180)
    # Two new groups in the first batch, and both of them changed in the second.
    assert [batch.rows_out for batch in execution.new_batches()] == [2, 4]


def folded(directory: Path) -> dict[tuple[object, ...], int]:
    counts: dict[tuple[object, ...], int] = {}
    for change in changes(directory):
        row = (change["name"], change["n"], change["total"])
        counts[row] = counts.get(row, 0) + (1 if change["op"] in ("+I", "+U") else -1)
    return {row: count for row, count in counts.items() if count}


CHANGES = """
CREATE TABLE orders (id BIGINT, amount BIGINT, day STRING) PARTITIONED BY (day)
WITH ('connector' = 'filesystem', 'format' = 'parquet', 'path' = '{directory}/orders', 'source.changelog' = 'true');
CREATE TABLE result (name STRING, n BIGINT, total BIGINT)
WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '{directory}/result', 'sink.changelog' = 'true');
INSERT INTO result SELECT day, COUNT(*), SUM(amount) FROM orders GROUP BY day;
"""


@pytest.mark.parametrize("by_workers", [True, pytest.param(False, marks=pytest.mark.integration)])
def test_changes_in_partitions_take_effect_as_they_arrived(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_workers: bool
) -> None:
    if not by_workers:
        monkeypatch.setattr(connectors, "why_not_in_arrow", lambda *_: "a test")
    # The larger file, which Spark reads first, takes back rows of the smaller one.
    first = pa.table({"op": ["+I"] * 5, "id": range(5), "amount": [10] * 5})
    second = pa.table({"op": ["-D"] * 4 + ["+I"] * 996, "id": range(1000), "amount": [10] * 4 + [1] * 996})
    for day in ("a", "b c"):
        add(tmp_path / "orders" / f"day={day}", "x.parquet", first, 1_700_000_000)
        add(tmp_path / "orders" / f"day={day}", "a.parquet", second, 1_700_000_001)
    add(tmp_path / "orders", "stray.parquet", first, 1_700_000_000)
    plan = compile_sql(CHANGES.format(directory=tmp_path), {"parallelism.default": "2"})
    execution = execute(plan, spark, checkpoint=str(tmp_path / "checkpoint"), once=True)
    assert isinstance(execution, Execution)
    assert execution.await_termination(180)
    assert folded(tmp_path) == {("a", 997, 1006): 1, ("b c", 997, 1006): 1}
    assert sum(batch.rows_in for batch in execution.new_batches()) == 2010
    notes = [note for note in execution.notes if "read by Spark" in note]
    assert notes == ([] if by_workers else ["scan_orders is read by Spark: a test"])
