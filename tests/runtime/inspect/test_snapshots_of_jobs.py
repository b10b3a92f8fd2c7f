"""Spark continues from a snapshot and after a compaction: what comes out is what SQLite makes of all rows."""

from __future__ import annotations

import shutil
import sqlite3
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hintplan
from hintplan.plans.errors import RunError
from hintplan.plans.model.plan import Plan
from hintplan.runtime.inspect.checked import check
from hintplan.runtime.inspect.compact import compact_state
from hintplan.runtime.inspect.snapshot import take_snapshot
from hintplan.runtime.run.execute import execute
from hintplan.runtime.run.execution import Execution
from tests.spark.programs import add_rows, changes

pytestmark = pytest.mark.spark

DEADLINE_SECONDS = 300
QUERY = "SELECT k, COUNT(*) AS n, COUNT(DISTINCT a) AS d FROM l GROUP BY k"
ROWS = ([(1, "a"), (2, "b"), (1, "a")], [(1, "c"), (3, "d")], [(2, "b"), (2, "e")], [(3, "f")])


def plan_of(directory: Path, sink: str) -> Plan:
    files = "'connector' = 'filesystem', 'format' = 'json', 'path'"
    key, options = {
        "filesystem": ("", f"{files} = '{directory / 'r' / 'result'}', 'sink.changelog' = 'true'"),
        "jdbc": (
            ", PRIMARY KEY (k) NOT ENFORCED",
            f"'connector' = 'jdbc', 'url' = 'jdbc:sqlite:{directory / 'r.db'}', 'table-name' = 'r'",
        ),
    }[sink]
    (directory / "l").mkdir()
    return hintplan.compile_sql(
        "SET 'parallelism.default' = '2';"
        f"CREATE TABLE l (k BIGINT, a STRING) WITH ({files} = '{directory / 'l'}');"
        f"CREATE TABLE r (k BIGINT, n BIGINT, d BIGINT{key}) WITH ({options});"
        f"INSERT INTO r {QUERY};",
        name="counted",
    )


def add(directory: Path, number: int) -> None:
    add_rows(directory, "l", [{"k": k, "a": a} for k, a in ROWS[number]])


def run(plan: Plan, spark: SparkSession, checkpoint: Path) -> None:
    assert execute(plan, spark, checkpoint=str(checkpoint), once=True).await_termination(DEADLINE_SECONDS)


def expected(batches: int) -> Counter[tuple[int, ...]]:
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE l (k, a)")
    database.executemany("INSERT INTO l VALUES (?, ?)", [row for rows in ROWS[:batches] for row in rows])
    return Counter(database.execute(QUERY).fetchall())


def in_files(directory: Path) -> Counter[tuple[int, ...]]:
    found: Counter[tuple[int, ...]] = Counter()
    for row in changes(directory / "r"):
        found[(row["k"], row["n"], row["d"])] += 1 if row["op"] in ("+I", "+U") else -1
    return +found


def in_database(directory: Path) -> Counter[tuple[int, ...]]:
    with sqlite3.connect(directory / "r.db") as connection:
        return Counter(connection.execute("SELECT k, n, d FROM r").fetchall())


def test_a_job_goes_on_from_the_snapshot_of_its_end_and_not_from_an_older_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    plan = plan_of(tmp_path, "filesystem")
    add(tmp_path, 0)
    run(plan, spark, tmp_path / "checkpoint")
    take_snapshot(str(tmp_path / "checkpoint"), str(tmp_path / "older"))
    shutil.copytree(tmp_path / "r", tmp_path / "r_then")
    add(tmp_path, 1)
    run(plan, spark, tmp_path / "checkpoint")
    compact_state(str(tmp_path / "checkpoint"))
    take_snapshot(str(tmp_path / "checkpoint"), str(tmp_path / "newer"))
    assert check(plan, str(tmp_path / "newer")).verdict == "continues"
    add(tmp_path, 2)
    with pytest.raises(
        RunError, match=r"written batches up to 1 to .*, and this checkpoint ends with batch 0"
    ) as error:
        run(plan, spark, tmp_path / "older")
    assert "of the same time as this checkpoint" in str(error.value)
    run(plan, spark, tmp_path / "newer")
    assert in_files(tmp_path) == expected(3)
    # The older one continues if the directory is what it was.
    shutil.rmtree(tmp_path / "r")
    shutil.move(tmp_path / "r_then", tmp_path / "r")
    run(plan, spark, tmp_path / "older")
    assert in_files(tmp_path) == expected(3)


def test_a_snapshot_of_a_job_that_goes_on_brings_a_table_with_a_key_to_the_same_end(
    spark: SparkSession, tmp_path: Path
) -> None:
    plan = plan_of(tmp_path, "jdbc")
    add(tmp_path, 0)
    execution = execute(plan, spark, checkpoint=str(tmp_path / "checkpoint"), trigger="1 ms")
    assert isinstance(execution, Execution)
    (query,) = execution.queries.values()
    try:
        query.processAllAvailable()
        add(tmp_path, 1)
        take_snapshot(str(tmp_path / "checkpoint"), str(tmp_path / "copy"))
        add(tmp_path, 2)
        query.processAllAvailable()
    finally:
        execution.stop()
    assert in_database(tmp_path) == expected(3)
    add(tmp_path, 3)
    run(plan, spark, tmp_path / "copy")
    assert in_database(tmp_path) == expected(4)
