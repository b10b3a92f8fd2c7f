"""Tables in databases that lack what their checkpoint has written, and tables that others have only worked on."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.connectors.lookup_sources.servers import PASSWORD
from tests.connectors.servers.databases import Database, MariadbDatabase, PostgresDatabase
from tests.faults.older_sinks import CopyJob
from tests.sample import each_once

pytestmark = [pytest.mark.spark, pytest.mark.part(of=2)]

EMPTY = "was recreated or emptied, and has no rows"
COMMITS = "hintplan_commits"


class SqliteDatabase:
    title = "SQLite"

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def options(self) -> dict[str, str]:
        return {"connector": "jdbc", "url": f"jdbc:sqlite:{self.path}"}

    def execute(self, *statements: str) -> None:
        with sqlite3.connect(self.path, isolation_level=None) as connection:
            for statement in statements:
                connection.execute(statement)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with sqlite3.connect(self.path) as connection:
            return connection.execute(query).fetchall()

    def clear(self) -> None:
        self.path.unlink()


KINDS = {
    "postgres": lambda request, at: PostgresDatabase(request.getfixturevalue("postgres")),
    "mariadb": lambda request, at: MariadbDatabase(request.getfixturevalue("mariadb")),
    "sqlite": lambda request, at: SqliteDatabase(at / "r.db"),
}


def job_on(kind: str, key: bool, spark: SparkSession, at: Path, request: Any) -> tuple[Any, CopyJob]:
    database = KINDS[kind](request, at)
    if kind != "sqlite":
        database.clear()
    return database, CopyJob(spark, at, {**database.options, "table-name": "r"}, key)


def keep(database: Database) -> None:
    for table in ("r", COMMITS):
        database.execute(f"CREATE TABLE kept_{table} AS SELECT * FROM {table}")


def put_back(database: Database, create: str) -> str:
    for table in ("r", COMMITS):
        database.execute(f"DELETE FROM {table}", f"INSERT INTO {table} SELECT * FROM kept_{table}")
    return "has them up to 0"


def made_anew(database: Database, create: str) -> str:
    database.execute("DROP TABLE r", create)
    return EMPTY


def emptied(database: Database, create: str) -> str:
    if database.title == "SQLite":
        database.execute("DELETE FROM r", "VACUUM")
    else:
        database.execute("TRUNCATE TABLE r")
    return EMPTY


def dropped(database: Database, create: str) -> str:
    database.execute("DROP TABLE r")
    return "no longer exists"


def lost(database: Database, create: str) -> str:
    database.clear()
    return "no longer exists"


DAMAGES = [put_back, made_anew, emptied, dropped, lost]


@pytest.mark.parametrize(("kind", "damage", "key"), each_once(KINDS, DAMAGES, [True, False]))
def test_a_table_that_is_older_than_its_checkpoint_is_refused(
    spark: SparkSession, tmp_path: Path, request: Any, kind: str, damage: Callable[..., str], key: bool
) -> None:
    database, job = job_on(kind, key, spark, tmp_path, request)
    job.batch(1)
    keep(database)
    job.batch(2)
    said = damage(database, f"CREATE TABLE r (id BIGINT NOT NULL{' PRIMARY KEY' if key else ''})")
    if kind == "mariadb" and damage is emptied:  # which it does not tell from deleting all rows
        job.batch(3)
        assert database.rows("SELECT id FROM r") == [(3,)]
        return
    # Without a key all batches are counted, which says it first.
    job.refuses(said if key or damage not in (dropped, lost) else f"({said}|has none of them)")
    left = [(1,)] if damage is put_back else []
    job.batch(3, agreed=True)
    assert database.rows("SELECT id FROM r ORDER BY id") == [*left, (3,)]
    job.batch(4)
    assert database.rows("SELECT id FROM r ORDER BY id") == [*left, (3,), (4,)]


@pytest.mark.parametrize(("kind", "key"), each_once(KINDS, [True, False]))
def test_a_table_that_others_have_worked_on_is_gone_on_with(
    spark: SparkSession, tmp_path: Path, request: Any, kind: str, key: bool
) -> None:
    """Batches without rows, rows that somebody has taken out, and a table that was moved with its rows."""
    database, job = job_on(kind, key, spark, tmp_path, request)
    job.batch(1)
    job.batch()
    database.execute("DELETE FROM r")
    job.batch(2)
    database.execute("INSERT INTO r VALUES (7)", "CREATE TABLE moved AS SELECT * FROM r", "DROP TABLE r")
    database.execute(f"CREATE TABLE r (id BIGINT NOT NULL{' PRIMARY KEY' if key else ''})")
    database.execute("INSERT INTO r SELECT * FROM moved")
    job.batch(3)
    assert database.rows("SELECT id FROM r ORDER BY id") == [(2,), (3,), (7,)]


@pytest.mark.parametrize("kind", KINDS)
def test_an_older_copy_of_a_checkpoint_still_goes_on_with_a_table_with_a_key(
    spark: SparkSession, tmp_path: Path, request: Any, kind: str
) -> None:
    """And so does the newer one, after it."""
    database, job = job_on(kind, True, spark, tmp_path, request)
    job.batch(1)
    older = tmp_path / "older"
    shutil.copytree(job.checkpoint, older)
    job.batch(2)
    job.batch(3, checkpoint=older)
    job.batch(4)
    assert database.rows("SELECT id FROM r ORDER BY id") == [(1,), (2,), (3,), (4,)]


def test_a_user_who_may_not_write_to_the_table_of_commits_goes_on(
    spark: SparkSession, tmp_path: Path, request: Any
) -> None:
    """It is another user's; that the table is gone is noticed still."""
    database, job = job_on("postgres", True, spark, tmp_path, request)
    database.execute(
        f"CREATE TABLE {COMMITS} (sink text, query_id text, batch_id bigint, PRIMARY KEY (sink, query_id))",
        "DROP ROLE IF EXISTS poor",
        f"CREATE ROLE poor LOGIN PASSWORD '{PASSWORD}'",
        "GRANT CREATE, USAGE ON SCHEMA public TO poor",
    )
    try:
        poor = replace(job, sink={**job.sink, "username": "poor"})
        poor.batch(1)
        poor.batch(2)
        assert database.rows("SELECT id FROM r ORDER BY id") == [(1,), (2,)]
        assert database.rows(f"SELECT * FROM {COMMITS}") == []
        database.execute("DROP TABLE r")
        poor.refuses("no longer exists")
    finally:
        database.clear()
        database.execute("DROP ROLE poor")
