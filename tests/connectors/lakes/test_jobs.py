"""Jobs into tables of data lakes, from SQL on: several sinks of one query, a restart, other versions, refusals."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hintplan
from hintplan.plans.analysis.validate import plan_problems
from hintplan.plans.connectors.policy import Policy
from hintplan.plans.errors import RunError, SqlError
from hintplan.runtime.run.execute import execute
from tests.connectors.lakes.lakes import LAKES, Lake, in_with

pytestmark = [pytest.mark.spark, pytest.mark.part(of=3, fixture="spark")]

SCRIPT = """
CREATE TABLE orders (id BIGINT, customer STRING, total BIGINT)
WITH ('connector' = 'filesystem', 'path' = '{at}/orders', 'format' = 'json', 'source.max-files-per-trigger' = '1');
CREATE TABLE totals (customer STRING, n BIGINT, total BIGINT, PRIMARY KEY (customer) NOT ENFORCED)
WITH ({totals});
CREATE TABLE dear (customer STRING, n BIGINT, PRIMARY KEY (customer) NOT ENFORCED)
WITH ({dear});
CREATE TABLE copies (id BIGINT, total BIGINT)
WITH ({copies});
CREATE VIEW v AS SELECT customer, COUNT(*) AS n, SUM(total) AS total FROM orders GROUP BY customer;
INSERT INTO totals SELECT customer, n, total FROM v;
INSERT INTO dear SELECT customer, n FROM v WHERE total > 10 AND total < 40;
INSERT INTO copies SELECT id, total FROM orders;
"""
ORDERS = [
    [(1, "a", 5), (2, "b", 20)],
    [(3, "a", 7), (4, "c", 1)],
    [(5, "b", 30), (6, "c", 1), (7, "a", 1)],
    [(8, "d", 11)],
]


def add(directory: Path, number: int) -> None:
    rows = [{"id": i, "customer": c, "total": t} for i, c, t in ORDERS[number]]
    (directory / "orders").mkdir(exist_ok=True)
    file = directory / "orders" / f"{number}.json"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    # Files are read in the order of their times, which the clock of a file system may not tell apart.
    os.utime(file, (1_700_000_000 + number,) * 2)


def expected(files: int) -> dict[str, list]:
    """What the tables must have when so many files are read, reckoned in Python."""
    orders = [order for file in ORDERS[:files] for order in file]
    totals = {c: (c, len(t), sum(t)) for c in {o[1] for o in orders} if (t := [o[2] for o in orders if o[1] == c])}
    return {
        "totals": sorted(totals.values()),
        "dear": sorted((c, n) for c, n, total in totals.values() if 10 < total < 40),
        "copies": sorted((i, t) for i, _, t in orders),
    }


@pytest.fixture(params=LAKES)
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    return LAKES[request.param](tmp_path / "lake")


def script_of(lake: Lake, at: Path) -> str:
    return SCRIPT.format(at=at, **{name: in_with(lake.options(name)) for name in ("totals", "dear", "copies")})


def test_each_version_is_the_result_of_a_batch_and_a_restart_goes_on(
    spark: SparkSession, lake: Lake, tmp_path: Path
) -> None:
    plan = hintplan.compile_sql(script_of(lake, tmp_path), {"parallelism.default": "2"}, name="lake")
    for files in (range(2), range(2, 4)):
        for number in files:
            add(tmp_path, number)
        execution = execute(plan, spark, checkpoint=str(tmp_path / "checkpoint"), once=True)
        assert execution.await_termination(180)
    for name, rows in expected(4).items():
        assert lake.rows(name) == rows
    for files in range(1, 5):
        assert lake.rows("copies", files) == expected(files)["copies"]
        assert lake.rows("totals", files) == expected(files)["totals"]
    assert lake.commits("copies") == 4


def test_a_batch_job_makes_one_version(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    script = "SET 'execution.runtime-mode' = 'batch';" + script_of(lake, tmp_path)
    for number in range(4):
        add(tmp_path, number)
    plan = hintplan.compile_sql(script, name="lake")
    assert execute(plan, spark).await_termination(180)
    for name, rows in expected(4).items():
        assert lake.rows(name) == rows
        assert lake.commits(name) == 1


READS = """
SET 'execution.runtime-mode' = 'batch';
CREATE TABLE source (id BIGINT, total BIGINT) WITH ({source}{more});
CREATE TABLE target (total BIGINT, n BIGINT) WITH ({target});
INSERT INTO target SELECT total, COUNT(*) FROM source GROUP BY total;
"""


def reads(lake: Lake, target: str, more: str = "", source: str = "copies") -> str:
    return READS.format(source=in_with(lake.options(source)), target=in_with(lake.options(target)), more=more)


def test_a_batch_job_reads_the_newest_version_or_another(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    for number in range(2):
        add(tmp_path, number)
        write = "SET 'execution.runtime-mode' = 'batch';" + script_of(lake, tmp_path)
        assert execute(hintplan.compile_sql(write, name="lake"), spark).await_termination(180)
    # Each job writes all orders of the files that are there then.
    first = lake.travel("copies", 1)
    trials = [("new", ""), *((f"old{number}", f", '{name}' = '{value}'") for number, (name, value) in enumerate(first))]
    for target, more in trials:
        plan = hintplan.compile_sql(reads(lake, target, more), name="read")
        assert execute(plan, spark).await_termination(180)
        newest = [(1, 1), (20, 2), (5, 2), (7, 1)]
        assert lake.rows(target) == (newest if not more else [(20, 1), (5, 1)])
    wrong = [(name, "7") for name, _ in first]
    for source, more, said in (
        ("nowhere", "", "there is no (Delta|Iceberg) table"),
        *(("copies", f", '{name}' = '{value}'", value) for name, value in wrong),
    ):
        plan = hintplan.compile_sql(reads(lake, "x", more, source), name="read")
        with pytest.raises(RunError, match=said):
            execute(plan, spark).await_termination(180)


def test_a_stream_does_not_read_such_a_table(lake: Lake) -> None:
    script = reads(lake, "t").replace("'batch'", "'streaming'")
    with pytest.raises(SqlError, match="table 'source' is read by batch jobs only") as caught:
        hintplan.compile_sql(script, name="read")
    assert "SET 'execution.runtime-mode' = 'batch'" in str(caught.value)
    batch = hintplan.compile_sql(reads(lake, "t"), name="read")
    assert "batch jobs only" in str(list(plan_problems(replace(batch, mode="streaming"))))


@pytest.mark.parametrize(
    ("columns", "options", "said"),
    [
        ("id INT", "'table-path' = 'hdfs://n/t'", "the path is of 'hdfs', and only local directories and s3:// are"),
        ("id INT", "'table-path' = 's3://me@b/t'", "a path must not contain a user"),
        ("id INT", "'table-path' = 't%20'", "a path with %, # or ? means another one to some who read the table"),
        ("id INT", "'table-path' = 't', 's3.region' = 'x'", "'s3.region' has no effect on local files"),
        ("id INT", "'table-path' = 's3://b/t', 's3.access-key-id' = 'x'", "'s3.access-key-id' needs 's3.secret-acc"),
        ("id INT", "'table-path' = 's3://b/t', 's3.secret-access-key' = 'x'", "is a secret and must not be in the"),
        ("id INT", "'table-path' = 's3://b/t', 's3.endpoint' = 'minio'", "expected http:// or https:// with a host"),
        ("id INT", "'table-path' = 't', 'partitioned-by' = 'id'", "write PARTITIONED BY (...) after the columns"),
        ("`a b` INT", "'table-path' = 't'", "column 'a b' has a name with one of"),
        ("id ARRAY<INT>, PRIMARY KEY (id) NOT ENFORCED", "'table-path' = 't'", "is of type ARRAY"),
        ("id INT", "'path' = 't'", "table-path"),
    ],
)
def test_what_such_a_table_cannot_be_is_refused_with_its_place(columns: str, options: str, said: str) -> None:
    script = f"""CREATE TABLE o (id INT) WITH ('connector' = 'datagen');
CREATE TABLE r ({columns}) WITH ('connector' = 'delta', {options});
INSERT INTO r SELECT {", ".join("id" if "id" in part else "1" for part in columns.split(",")[:1])} FROM o;"""
    with pytest.raises(SqlError) as caught:
        hintplan.compile_sql(script, name="wrong")
    assert said in str(caught.value)
    problem, *_ = caught.value.diagnostics  # what is read may be of another type, too
    stands_at = script.splitlines()[(problem.line or 0) - 1][(problem.column or 0) - 1 :]
    assert stands_at.startswith(("r (", *re.findall(r"'[\w.-]+'(?= = )", options)))
    assert "hint: " in str(caught.value)


@pytest.mark.parametrize("kind", LAKES)
@pytest.mark.parametrize(
    ("columns", "by", "said"),
    [
        ("id INT", "day", "'day'"),
        ("id INT, x DOUBLE", "x", "partition column 'x' is of type DOUBLE, which cannot partition such a table here"),
        ("id INT", "id", "all columns are of the partitions"),
    ],
)
def test_what_a_table_is_not_divided_by(tmp_path: Path, kind: str, columns: str, by: str, said: str) -> None:
    script = f"""CREATE TABLE r ({columns})
PARTITIONED BY ({by})
WITH ({in_with(LAKES[kind](tmp_path).options("t"))});
CREATE TABLE o (id INT) WITH ('connector' = 'datagen');
INSERT INTO r (id) SELECT id FROM o;"""
    with pytest.raises(SqlError) as caught:
        hintplan.compile_sql(script, name="wrong")
    assert said in str(caught.value)
    assert "line 2:" in str(caught.value)


def test_updates_need_a_key(lake: Lake) -> None:
    script = f"""CREATE TABLE o (id INT) WITH ('connector' = 'datagen');
CREATE TABLE r (id INT, n BIGINT) WITH ({in_with(lake.options("t"))});
INSERT INTO r SELECT id, COUNT(*) FROM o GROUP BY id;"""
    with pytest.raises(SqlError, match="PRIMARY KEY"):
        hintplan.compile_sql(script, name="wrong")


def test_the_place_and_the_store_of_a_table_are_what_a_run_may_reach(spark: SparkSession, tmp_path: Path) -> None:
    options = "'table-path' = 's3a://lake/t', 's3.endpoint' = 'https://minio.example.com:9000'"
    script = f"""CREATE TABLE o (id BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '1');
CREATE TABLE r (id BIGINT) WITH ('connector' = 'delta', {options});
INSERT INTO r SELECT id FROM o;"""
    plan = hintplan.compile_sql(script, name="far")
    with pytest.raises(RunError, match="s3a://lake"):
        execute(plan, spark, once=True)
    with pytest.raises(RunError, match=r"minio\.example\.com:9000"):
        execute(plan, spark, once=True, policy=Policy(schemes=("s3a://lake",)))
