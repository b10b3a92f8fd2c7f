"""TIME in jobs, read from files, kept in state, compared over precisions and written: values are counted by hand."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hintplan import compile_sql
from hintplan.plans.declarations.tables import Table, TableColumn
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors import columns
from hintplan.runtime.run.execute import execute

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEADLINE_SECONDS = 180
TABLES = """
CREATE TABLE t (id INT, a TIME, b TIME(3)) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '{place}/t');
CREATE TABLE d (b TIME(3), n STRING) WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = '{place}/d');
CREATE TABLE j (id INT, a TIME, b TIME(3) NOT NULL)
WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '{place}/j');
CREATE TABLE c (b TIME(3), id INT) WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = '{place}/c');
CREATE TABLE g (a STRING, n BIGINT, least STRING, most STRING, PRIMARY KEY (a) NOT ENFORCED)
WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:{place}/r.db', 'table-name' = 'g');
CREATE TABLE p (id INT, n STRING, later STRING, PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:{place}/r.db', 'table-name' = 'p');
"""
JOB = """
INSERT INTO j SELECT id, a, b FROM t WHERE a >= TIME '06:00:00' OR a < CAST('0:0:1' AS TIME);
INSERT INTO c SELECT b, id FROM t WHERE b IS NOT NULL;
INSERT INTO g SELECT CAST(a AS STRING), COUNT(*), CAST(MIN(b) AS STRING), CAST(MAX(b) AS STRING) FROM t GROUP BY a;
INSERT INTO p SELECT id, n, CAST(a + INTERVAL '90' MINUTE AS STRING) FROM t JOIN d ON t.a = d.b;
"""
FIRST = [
    {"id": 1, "a": "10:11:12", "b": "10:11:12.340"},
    {"id": 2, "a": "23:00:00", "b": "10:11:12"},
    {"id": 3, "a": "05:59:59.999", "b": None},
]
SECOND = [
    {"id": 4, "a": "10:11:12.9", "b": "10:11:12.3456"},
    {"id": 5, "a": "00:00:00", "b": "00:00:00.001"},
    {"id": 6, "a": "10:11:12", "b": "10:11:12.05"},
]
WRITTEN = [
    {"id": 1, "a": "10:11:12", "b": "10:11:12.34"},
    {"id": 2, "a": "23:00:00", "b": "10:11:12"},
    {"id": 4, "a": "10:11:12", "b": "10:11:12.345"},
    {"id": 5, "a": "00:00:00", "b": "00:00:00.001"},
    {"id": 6, "a": "10:11:12", "b": "10:11:12.05"},
]
LINES = ["00:00:00.001,5", "10:11:12,2", "10:11:12.05,6", "10:11:12.34,1", "10:11:12.345,4"]
GROUPS = [
    ("00:00:00", 1, "00:00:00.001", "00:00:00.001"),
    ("05:59:59", 1, None, None),
    ("10:11:12", 3, "10:11:12.05", "10:11:12.345"),
    ("23:00:00", 1, "10:11:12.0", "10:11:12.0"),
]
PAIRS = [(1, "noon", "11:41:12"), (2, "late", "00:30:00"), (4, "noon", "11:41:12"), (6, "noon", "11:41:12")]


def run(spark: SparkSession, script: str, **how: Any) -> None:
    execution = execute(compile_sql(script), spark, **how)
    try:
        assert execution.await_termination(DEADLINE_SECONDS), "it does not end"
    finally:
        execution.stop()


def put(place: Path, name: str, rows: list[dict[str, Any]]) -> None:
    (place / "t").mkdir(exist_ok=True)
    (place / "t" / name).write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    (place / "d").mkdir(exist_ok=True)
    (place / "d" / "d.csv").write_text(
        "10:11:12.000,noon\n23:00:00,late\n10:11:12.001,never\n,none\n", encoding="utf-8"
    )


def lines(directory: Path) -> list[str]:
    return sorted(line for file in directory.glob("part-*") for line in file.read_text(encoding="utf-8").splitlines())


def check(place: Path) -> None:
    found = [json.loads(line) for line in lines(place / "j")]
    assert sorted(found, key=lambda row: row["id"]) == WRITTEN
    assert lines(place / "c") == LINES
    with sqlite3.connect(place / "r.db") as database:
        assert sorted(database.execute("SELECT a, n, least, most FROM g")) == GROUPS
        assert sorted(database.execute("SELECT id, n, later FROM p")) == PAIRS


@pytest.mark.spark
def test_a_stream_keeps_times_over_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    script = TABLES.format(place=tmp_path) + JOB
    put(tmp_path, "1.json", FIRST)
    run(spark, script, checkpoint=str(tmp_path / "checkpoint"), once=True)
    put(tmp_path, "2.json", SECOND)
    run(spark, script, checkpoint=str(tmp_path / "checkpoint"), once=True)
    check(tmp_path)


@pytest.mark.spark
def test_a_batch_job_has_the_same_and_sorts_them(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path, "1.json", FIRST + SECOND)
    batch = "SET 'execution.runtime-mode' = 'batch';" + TABLES.format(place=tmp_path)
    batch = batch.replace(", PRIMARY KEY (a) NOT ENFORCED", "")  # a batch job must know the key of the query
    run(spark, batch + JOB)
    check(tmp_path)
    first = batch.replace(f"{tmp_path}/c'", f"{tmp_path}/first'")
    run(spark, first + "INSERT INTO c SELECT b, id FROM t ORDER BY b DESC LIMIT 2;")
    assert lines(tmp_path / "first") == LINES[-2:]


@pytest.mark.spark
@pytest.mark.parametrize("chosen", ["json", "csv"])
def test_a_text_that_is_no_time_fails_or_is_null(spark: SparkSession, tmp_path: Path, chosen: str) -> None:
    wrong = ["24:00:00", "1:2:3", "10:11", " 10:11:12", "10:11:12Z", "x", "10:11:12.", "2024-01-01 10:11:12"]
    (tmp_path / "t").mkdir()

    def write(texts: list[str]) -> None:
        rows = [json.dumps({"id": i, "b": text}) if chosen == "json" else f"{i},{text}" for i, text in enumerate(texts)]
        (tmp_path / "t" / "a").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")

    script = f"""SET 'execution.runtime-mode' = 'batch';
    CREATE TABLE t (id INT, b TIME(3))
    WITH ('connector' = 'filesystem', 'format' = '{chosen}', 'path' = '{tmp_path}/t');
    CREATE TABLE r (id INT, b STRING)
    WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:{tmp_path}/r.db', 'table-name' = 'r');
    INSERT INTO r SELECT id, CAST(b AS STRING) FROM t;"""
    write(wrong[:1])
    with pytest.raises(RunError, match=r"table t: column b is TIME\(3\), found 24:00:00"):
        run(spark, script)
    write([*wrong, "10:11:12.123456789"])
    run(spark, script.replace("'path'", f"'{chosen}.ignore-parse-errors' = 'true', 'path'", 1))
    with sqlite3.connect(tmp_path / "r.db") as database:
        found = [row[0] for row in database.execute("SELECT b FROM r ORDER BY id")]
    assert found == [None] * len(wrong) + ["10:11:12.123"]


def test_tables_of_connectors_have_texts_for_times_at_all_levels() -> None:
    kinds = ("TIME(3) NOT NULL", "ARRAY<TIME(0)>", "ROW<a TIME(1), b INT>", "TIMESTAMP(3)")
    table = Table(columns=tuple(TableColumn(name=f"c{n}", type=k) for n, k in enumerate(kinds)), options={})
    assert [c.type for c in columns.as_texts(table).columns] == [
        *("STRING NOT NULL", "ARRAY<STRING>", "ROW<a STRING, b INT>", "TIMESTAMP(3)")
    ]
    assert [*columns.times_of(table)] == ["c0"]
