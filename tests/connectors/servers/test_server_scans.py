"""Tables of database servers and of SQLite as sources: every type, in parts, and once whatever happens."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from hintplan import compile_sql
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.table import batch_writer, read_batch
from hintplan.runtime.run.execute import execute
from tests.connectors.servers.databases import Database
from tests.connectors.servers.test_server_sinks import POLICY, TYPES, frame, table

pytestmark = [pytest.mark.spark, pytest.mark.part(of=3, fixture="spark")]


def rows(found: Any) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in found.collect()), key=str)


def test_every_type_is_read_as_it_was_written(spark: SparkSession, database: Database) -> None:
    target = table(database, "t", *((name, kind) for name, kind, *_ in TYPES))
    written = [tuple(value for *_, value, _ in TYPES), tuple(value for *_, value in TYPES), (None,) * len(TYPES)]
    given = frame(spark, target, written)
    batch_writer(given, "t", target)()
    names = tuple(name for name, *_ in TYPES)
    found = read_batch(spark, "t", target, names)
    assert found.dtypes == given.dtypes
    assert rows(found) == rows(given)
    assert read_batch(spark, "t", target, ()).count() == 3


def test_a_scan_is_divided_by_ranges_of_a_column(spark: SparkSession, database: Database) -> None:
    database.execute("CREATE TABLE t (id INTEGER, v VARCHAR(20))")
    database.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (5, 'c'), (9, 'd'), (10, 'e'), (11, 'f'), (NULL, 'g')")
    options = {"scan.partition.column": "id", "scan.partition.num": "3"}
    options |= {"scan.partition.lower-bound": "1", "scan.partition.upper-bound": "10", "scan.fetch-size": "1"}
    source = table(database, "t", ("id", "INT"), ("v", "STRING"))
    source = type(source)(columns=source.columns, options={**source.options, **options})
    found = read_batch(spark, "t", source, ("v",))
    # As Flink: what is beyond the bounds, or NULL, is not read.
    assert rows(found) == [("a",), ("b",), ("c",), ("d",), ("e",)]
    assert rows(found.groupBy(F.spark_partition_id()).agg(F.sort_array(F.collect_list("v")))) == [
        (0, ["a", "b"]), (1, ["c"]), (2, ["d", "e"]),
    ]  # fmt: skip


def test_what_cannot_be_read_is_told(spark: SparkSession, database: Database) -> None:
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException, match=f"{database.title} refused"):
        read_batch(spark, "t", table(database, "nowhere", ("id", "INT")), ("id",)).collect()


SQL = """
CREATE TABLE rates (k BIGINT, v BIGINT) WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:{at}/in.db',
  'table-name' = 'rates' {more});
CREATE TABLE orders (k BIGINT, n BIGINT) WITH ('connector' = 'filesystem', 'path' = '{at}/orders', 'format' = 'json');
CREATE TABLE sums (k BIGINT, total BIGINT, PRIMARY KEY (k) NOT ENFORCED)
  WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:{at}/out.db', 'table-name' = 'sums');
INSERT INTO sums SELECT r.k, SUM(o.n * r.v) FROM orders AS o JOIN rates AS r ON o.k = r.k GROUP BY r.k;
"""
PARTS = ", 'scan.partition.column' = 'k', 'scan.partition.num' = '2', 'scan.partition.lower-bound' = '1', "
PARTS += "'scan.partition.upper-bound' = '2'"


def ask(database: Path, *statements: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(database)
    try:
        found: list[tuple[Any, ...]] = []
        for statement in statements:
            found = connection.execute(statement).fetchall()
        connection.commit()
        return found
    finally:
        connection.close()


def run(spark: SparkSession, at: Path, more: str = "") -> None:
    plan = compile_sql(SQL.format(at=at, more=more), name="job")
    execute(plan, spark, checkpoint=str(at / "checkpoint"), once=True, policy=POLICY).await_termination()


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    ask(tmp_path / "in.db", "CREATE TABLE rates (k INTEGER, v INTEGER)", "INSERT INTO rates VALUES (1, 10), (2, 20)")
    (tmp_path / "orders").mkdir()
    (tmp_path / "orders" / "1.json").write_text('{"k": 1, "n": 1}\n{"k": 2, "n": 1}\n')
    return tmp_path


def test_a_stream_reads_a_table_once(spark: SparkSession, tables: Path) -> None:
    run(spark, tables)
    assert ask(tables / "out.db", "SELECT k, total FROM sums ORDER BY k") == [(1, 10), (2, 20)]
    ask(tables / "in.db", "UPDATE rates SET v = 500", "INSERT INTO rates VALUES (1, 7)")
    (tables / "orders" / "2.json").write_text('{"k": 1, "n": 4}\n')
    run(spark, tables, PARTS)
    # Also if it is divided otherwise from now on: what was read stays.
    assert ask(tables / "out.db", "SELECT k, total FROM sums ORDER BY k") == [(1, 50), (2, 20)]


def test_a_batch_that_runs_again_has_the_rows_that_it_had(spark: SparkSession, tables: Path) -> None:
    # A sink that takes nothing: the batch fails after the table has been read.
    ask(tables / "out.db", "CREATE TABLE sums (k BIGINT NOT NULL, total BIGINT CHECK (total > 1000), PRIMARY KEY (k))")
    with pytest.raises(RunError):
        run(spark, tables, PARTS)
    ask(tables / "in.db", "UPDATE rates SET v = 500", "INSERT INTO rates VALUES (1, 7)")
    with pytest.raises(RunError, match="had other splits or another filter when batch 0 began"):
        run(spark, tables)
    ask(tables / "out.db", "DROP TABLE sums", "CREATE TABLE sums (k BIGINT NOT NULL, total BIGINT, PRIMARY KEY (k))")
    run(spark, tables, PARTS)
    assert ask(tables / "out.db", "SELECT k, total FROM sums ORDER BY k") == [(1, 10), (2, 20)]
