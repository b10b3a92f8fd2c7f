"""What batch plans give: the rows that the stream's changelog folds to, and those of Spark's own SQL."""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from runtime.run.execute import execute
from tests.runtime.batch.programs import batch_plan, write_rows
from tests.runtime.pipeline import Pipeline
from tests.runtime.test_whole_queries import PLANS, PROGRAMS, WIDTHS, by_sqlite

pytestmark = pytest.mark.spark

DEADLINE_SECONDS = 180
NAMES = {"o": ("id", "k", "v", "s"), "c": ("k", "name", "w")}
SPARK_TYPES = {"o": "id bigint, k bigint, v bigint, s string", "c": "k bigint, name string, w bigint"}


def sample(seed: int) -> dict[str, list[tuple[Any, ...]]]:
    """Rows with NULLs in every column but the id, and each third of them twice."""
    dice = random.Random(seed)
    small = [None, 0, 1, 2, 3]
    orders = [(i, dice.choice(small), dice.choice(small), dice.choice([None, "x", "y"])) for i in range(24)]
    customers = [(dice.choice(small), dice.choice([None, "p", "q"]), dice.choice(small)) for _ in range(9)]
    return {"o": orders + orders[::3], "c": customers + customers[::3]}


def script(directory: Path, queries: dict[str, tuple[str, str]]) -> str:
    """Each query into an SQLite table of its own: ``r0``, ``r1``, ..."""
    files = "'connector' = 'filesystem', 'format' = 'json'"
    parts = [
        f"CREATE TABLE o (id BIGINT, k BIGINT, v BIGINT, s STRING) WITH ({files}, 'path' = '{directory / 'o'}');",
        f"CREATE TABLE c (k BIGINT, name STRING, w BIGINT) WITH ({files}, 'path' = '{directory / 'c'}');",
    ]
    sink = f"'connector' = 'jdbc', 'url' = 'jdbc:sqlite:{directory}/results.db'"
    for number, (columns, query) in enumerate(queries.values()):
        parts.append(f"CREATE TABLE r{number} ({columns}) WITH ({sink}, 'table-name' = 'r{number}');")
        parts.append(f"INSERT INTO r{number} {query};")
    return "\n".join(parts)


def stored(directory: Path, number: int) -> Counter[tuple[Any, ...]]:
    connection = sqlite3.connect(directory / "results.db")
    try:
        return Counter(connection.execute(f"SELECT * FROM r{number}").fetchall())
    finally:
        connection.close()


ROLLED_UP = (
    "SELECT k, v + 1, s, GROUPING(s), GROUPING_ID(k, s), COUNT(*), COUNT(DISTINCT k), SUM(id) FILTER (WHERE v > 1) "
    "FROM o GROUP BY k, GROUPING SETS (ROLLUP (v + 1, s), s)",
    "SELECT k, v + 1, s, GROUPING(s), GROUPING_ID(k, v + 1, s) % 2, COUNT(*), COUNT(DISTINCT k), "
    "SUM(id) FILTER (WHERE v > 1) FROM o GROUP BY k, GROUPING SETS ((v + 1, s), (v + 1), (), (s))",
)


def test_grouping_sets_give_what_sparks_own_give(spark: SparkSession, tmp_path: Path) -> None:
    rows = sample(seed=3)["o"]
    write_rows(tmp_path / "o", (dict(zip(NAMES["o"], row, strict=True)) for row in rows))
    columns = "k BIGINT, v BIGINT, s STRING, g BIGINT, i BIGINT, n BIGINT, d BIGINT, t BIGINT"
    plan = batch_plan(script(tmp_path, {"rolled up": (columns, ROLLED_UP[0])}))
    assert execute(plan, spark, once=True).await_termination(DEADLINE_SECONDS)
    spark.createDataFrame(rows, SPARK_TYPES["o"]).createOrReplaceTempView("o")
    assert stored(tmp_path, 0) == Counter(tuple(row) for row in spark.sql(ROLLED_UP[1]).collect())


@pytest.mark.parametrize(("order", "best"), [("at", "MIN"), ("at DESC", "MAX")])
def test_the_first_or_last_row_of_each_key_is_that_of_sqlite(
    spark: SparkSession, tmp_path: Path, order: str, best: str
) -> None:
    dice = random.Random(5)
    times = dice.sample(range(10, 60), 40)
    rows = [(dice.choice([None, 1, 2, 3]), f"2024-01-01 00:00:{time}", time) for time in times]
    write_rows(tmp_path / "e", (dict(zip(("k", "at", "v"), row, strict=True)) for row in rows))
    query = (
        f"SELECT k, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY {order}) AS n FROM e) "
        "WHERE n = 1 AND v > 20"
    )
    table = (
        "CREATE TABLE e (k BIGINT, at TIMESTAMP(3), v BIGINT, WATERMARK FOR at AS at) WITH "
        f"('connector' = 'filesystem', 'format' = 'json', 'path' = '{tmp_path / 'e'}');"
    )
    plan = batch_plan(table + script(tmp_path, {"kept": ("k BIGINT, v BIGINT", query)}))
    assert execute(plan, spark, once=True).await_termination(DEADLINE_SECONDS)
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE e (k, at, v)")
    database.executemany("INSERT INTO e VALUES (?, ?, ?)", rows)
    oracle = f"SELECT k, v FROM (SELECT k, {best}(v) AS v FROM e GROUP BY k) WHERE v > 20"
    assert stored(tmp_path, 0) == Counter(database.execute(oracle).fetchall())


@pytest.mark.integration
def test_every_query_gives_the_folded_stream_and_what_spark_and_sqlite_give(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = sample(seed=7)
    for table, found in rows.items():
        write_rows(tmp_path / table, [dict(zip(NAMES[table], row, strict=True)) for row in found])
        spark.createDataFrame(found, SPARK_TYPES[table]).createOrReplaceTempView(table)
    queries = {name: (columns, query) for name, (columns, query, _) in PROGRAMS.items()}
    execution = execute(batch_plan(script(tmp_path, queries)), spark)
    assert execution.await_termination(DEADLINE_SECONDS)
    assert len(queries) >= 15
    every = [(table, row) for table, found in rows.items() for row in found]
    for number, (name, (_, query, in_sqlite)) in enumerate(PROGRAMS.items()):
        stream = Pipeline(PLANS[name])
        stream.batch(rows)
        found = stored(tmp_path, number)
        assert found == stream.result, name
        assert found == by_sqlite(in_sqlite, every), name
        assert found == Counter(tuple(row) for row in spark.sql(query).collect()), name
    assert {table: len(names) for table, names in NAMES.items()} == WIDTHS


GUARDED = tuple(
    f"SELECT o.id, c.w FROM o LEFT JOIN c ON o.k = c.k AND {condition}"
    for condition in (
        "CASE WHEN o.s = '7' THEN CAST(o.s AS BIGINT) ELSE c.w END > 2",
        "CASE WHEN o.s = '7' THEN CAST(o.s AS DOUBLE) ELSE c.w END > 2",
        "CASE WHEN c.w = 1 THEN CAST(o.s AS BIGINT) ELSE c.w END > 2",
        "c.w <> 0 AND o.v / c.w > 0",
    )
)


def test_what_case_guards_below_and_above_a_join_is_not_computed(spark: SparkSession, tmp_path: Path) -> None:
    rows = {
        "o": [(1, 1, 6, "7"), (2, 1, 0, "12"), (3, 2, 5, "x"), (4, 2, None, None), (5, 3, 1, "y")],
        "c": [(1, "p", 1), (1, "q", 3), (2, "r", 0), (2, "s", 4), (3, "t", None)],
    }
    for table, found in rows.items():
        write_rows(tmp_path / table, [dict(zip(NAMES[table], row, strict=True)) for row in found])
    queries = {query: ("id BIGINT, w BIGINT", query) for query in GUARDED}
    assert execute(batch_plan(script(tmp_path, queries)), spark, once=True).await_termination(DEADLINE_SECONDS)
    for table, found in rows.items():
        spark.createDataFrame(found, SPARK_TYPES[table]).createOrReplaceTempView(table)
    for number, query in enumerate(GUARDED):
        sparks = query.replace("o.v / c.w", "o.v div c.w")
        assert stored(tmp_path, number) == Counter(tuple(row) for row in spark.sql(sparks).collect()), query
