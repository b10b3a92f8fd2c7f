"""Sinks in database servers: every type there and back, replayed batches, crashes on either side, and refusals."""

from __future__ import annotations

import datetime as dt
import math
import threading
from collections.abc import Iterator
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hintplan.plans.connectors.policy import Policy
from hintplan.plans.declarations.tables import Table, TableColumn
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.jdbc import server_sink, staging
from hintplan.runtime.connectors.jdbc.mysql import Mysql
from hintplan.runtime.connectors.jdbc.postgres import Postgres
from hintplan.runtime.connectors.table import batch_writer, micro_batch_writer
from hintplan.runtime.run.execute import execute
from hintplan.runtime.types import to_spark
from tests.connectors.lookup_sources.servers import Mariadb
from tests.connectors.servers.databases import Database, MariadbDatabase
from tests.faults.job import Feed, compiled, expected

pytestmark = [pytest.mark.spark, pytest.mark.part(of=4, fixture="spark")]

DEADLINE_SECONDS = 180
POLICY = Policy(environment=("HINTPLAN_TEST_PASSWORD",))

TYPES: tuple[tuple[str, str, Any, Any], ...] = (
    ("b", "BOOLEAN", True, False),
    ("i1", "TINYINT", -128, 127),
    ("i2", "SMALLINT", -32768, 32767),
    ("i4", "INT", -(2**31), 2**31 - 1),
    ("i8", "BIGINT", -(2**63), 2**63 - 1),
    ("f4", "FLOAT", 1.5, -3.25),
    ("f8", "DOUBLE", 0.1, -1e300),
    ("n", "DECIMAL(38, 10)", Decimal("1234567890123456789012345678.0123456789"), Decimal("-0.0000000001")),
    ("s", "STRING", "ü'\"\\%s\n\t%", ""),
    ("v", "VARCHAR(5)", "abcde", "é"),
    ("d", "DATE", dt.date(2024, 2, 29), dt.date(1583, 1, 1)),
    ("t3", "TIMESTAMP(3)", dt.datetime(2024, 2, 29, 23, 59, 59, 123000), dt.datetime(1900, 1, 1)),
    ("t6", "TIMESTAMP(6)", dt.datetime(2024, 2, 29, 23, 59, 59, 123456), dt.datetime(9999, 12, 31, 23, 59, 59)),
    ("z", "TIMESTAMP_LTZ(6)", dt.datetime(2024, 2, 29, 12, 0, 0, 1, dt.UTC), dt.datetime(1971, 1, 1, tzinfo=dt.UTC)),
    ("y", "BYTES", b"\x00\xff'\\%", b""),
)
"""A column, its type, and two values, which a database tells as they are here."""


def table(database: Database, name: str, *columns: tuple[str, str], key: tuple[str, ...] = (), **more: str) -> Table:
    return Table(
        columns=tuple(TableColumn(name=column, type=type_) for column, type_ in columns),
        options={**database.options, "table-name": name, **{k.replace("_", "-"): v for k, v in more.items()}},
        primary_key=key,
    )


def frame(spark: SparkSession, target: Table, rows: list[tuple[Any, ...]]) -> Any:
    from pyspark.sql.types import StructField, StructType

    schema = StructType([StructField(column.name, to_spark(column.type)) for column in target.columns])
    return spark.createDataFrame(rows, schema).repartition(2)


def written(spark: SparkSession, target: Table, rows: list[tuple[Any, ...]]) -> None:
    batch_writer(frame(spark, target, rows), "r", target)()


@pytest.mark.parametrize("key", [(), ("id",)])
def test_values_of_every_type_are_in_the_database_as_they_are(
    spark: SparkSession, database: Database, key: tuple[str, ...]
) -> None:
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    columns = tuple((name, type_) for name, type_, *_ in TYPES)
    target = table(database, "kinds", ("id", "INT NOT NULL"), *columns, key=key)
    some, others = ([row[at] for row in TYPES] for at in (2, 3))
    rows = [(1, *some), (2, *others), (3, *[None] * len(TYPES))]
    written(spark, target, rows)
    names = ", ".join(("id", *(name for name, _ in columns)))
    assert [tuple(map(_told, row)) for row in database.rows(f"SELECT {names} FROM kinds ORDER BY id")] == [
        tuple(map(_told, row)) for row in rows
    ]
    written(spark, target, [(2, *[None] * len(TYPES))])
    found = [row[0] for row in database.rows("SELECT id FROM kinds WHERE s IS NULL ORDER BY id")]
    assert found == [2, 3]
    assert database.rows("SELECT COUNT(*) FROM kinds") == [(3 if key else 4,)]
    assert not [name for name in database.tables() if name.startswith("hintplan_stage")]


def _told(value: Any) -> Any:
    """A value as PyMySQL has it too, which knows no zones; TRUE is 1 to Python as well."""
    return value.replace(tzinfo=None) if isinstance(value, dt.datetime) else value


def test_what_is_in_arrays_maps_and_rows_is_json(spark: SparkSession, database: Database) -> None:
    target = table(database, "nested", ("id", "INT"), ("a", "ARRAY<INT>"), ("r", "ROW<x STRING, y INT>"))
    written(spark, target, [(1, [1, None], ("ü", None)), (2, None, None)])
    found = database.rows("SELECT id, a, r FROM nested ORDER BY id")
    assert [tuple(map(_parsed, row)) for row in found] == [(1, [1, None], {"x": "ü", "y": None}), (2, None, None)]


def _parsed(value: Any) -> Any:
    import json

    return json.loads(value) if isinstance(value, str) else value


def test_names_are_quoted_whatever_is_in_them(spark: SparkSession, database: Database) -> None:
    names = ("select", "a b%s", "c.d", "e\"f`g'h")
    target = table(database, '"o""%.x"' if database.title == "PostgreSQL" else "o%x", *((n, "INT") for n in names),
                   key=names[:3])  # fmt: skip
    written(spark, target, [(1, 2, 3, 4), (5, 6, 7, 8)])
    written(spark, target, [(1, 2, 3, 9)])
    name = '"o""%.x"' if database.title == "PostgreSQL" else "`o%x`"
    assert sorted(database.rows(f"SELECT * FROM {name}")) == [(1, 2, 3, 9), (5, 6, 7, 8)]


def test_the_table_may_have_wider_types_and_more_columns(spark: SparkSession, database: Database) -> None:
    database.execute(
        "CREATE TABLE wide (more INT DEFAULT 7, v BIGINT, n NUMERIC(20, 5), k VARCHAR(20) NOT NULL PRIMARY KEY)"
        if database.title == "PostgreSQL"
        else "CREATE TABLE wide (more INT DEFAULT 7, v BIGINT, n DECIMAL(20, 5), "
        "k VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY)"
    )
    target = table(database, "wide", ("k", "VARCHAR(10)"), ("v", "INT"), ("n", "DECIMAL(10, 2)"), key=("k",))
    written(spark, target, [("a", 1, Decimal("1.25")), ("b", 2, None)])
    assert database.rows("SELECT * FROM wide ORDER BY k") == [(7, 1, Decimal("1.25000"), "a"), (7, 2, None, "b")]


@pytest.mark.parametrize(
    ("made", "columns", "key", "said"),
    [
        ("v INT", ("v BIGINT",), (), "column 'v' is BIGINT here, but"),
        ("v INT", ("w INT",), (), "has no column 'w'"),
        ("v INT NOT NULL, w INT", ("v INT", "w INT"), ("v",), "does not have the primary key (v)"),
        ("v INT NOT NULL, w INT NOT NULL, PRIMARY KEY (v, w)", ("v INT", "w INT"), ("v",), "the primary key (v)"),
        ("v INT UNIQUE, w INT", ("v INT", "w INT"), ("v",), "does not have the primary key (v)"),
        ("v DECIMAL(10, 2)", ("v DECIMAL(10, 3)",), (), "column 'v' is DECIMAL(10, 3) here, but"),
        ("v DECIMAL(10, 2)", ("v DECIMAL(11, 2)",), (), "column 'v' is DECIMAL(11, 2) here, but"),
        ("v DATE", ("v TIMESTAMP(3)",), (), "column 'v' is TIMESTAMP(3) here, but date in"),
    ],
)
def test_a_table_that_does_not_fit_is_refused_before_anything_starts(
    spark: SparkSession, database: Database, made: str, columns: tuple[str, ...], key: tuple[str, ...], said: str
) -> None:
    database.execute(f"CREATE TABLE t ({made})")
    target = table(database, "t", *((c.split(" ", 1)[0], c.split(" ", 1)[1]) for c in columns), key=key)
    with pytest.raises(RunError) as caught:
        micro_batch_writer("r", target, changelog=bool(key), checkpoint="c", part="")
    assert said in str(caught.value)


def test_a_row_that_the_server_refuses_fails_the_batch_and_leaves_nothing(
    spark: SparkSession, database: Database
) -> None:
    database.execute("CREATE TABLE t (id INT, v VARCHAR(3))")
    target = table(database, "t", ("id", "INT"), ("v", "STRING"))
    with pytest.raises(Exception, match=f"{database.title} refused to write to table 't'"):
        written(spark, target, [(1, "abc"), (2, "abcd")])
    assert database.rows("SELECT COUNT(*) FROM t") == [(0,)]
    assert database.tables() == ["hintplan_commits", "t"]


class Writing:
    """Which micro-batches are being written: a dead driver writes none, but a failed run of this process may."""

    def __init__(self) -> None:
        self._written, self._changed, self._count = server_sink._written, threading.Condition(), 0

    def __call__(self, *arguments: Any) -> int:
        self._add(1)
        try:
            return self._written(*arguments)
        finally:
            self._add(-1)

    def _add(self, count: int) -> None:
        with self._changed:
            self._count += count
            self._changed.notify_all()

    def ends(self) -> bool:
        """Wait until none is."""
        with self._changed:
            return self._changed.wait_for(lambda: self._count == 0, DEADLINE_SECONDS)


class Crash(Exception):
    """Stands for the end of the driver at this moment."""


def options_text(database: Database) -> str:
    return ", ".join(f"'{name}' = '{value}'" for name, value in database.options.items())


class Job:
    """The job of tests/faults/job.py on the database, on files of which two come with each batch."""

    def __init__(self, spark: SparkSession, directory: Path, database: Database) -> None:
        self._spark, self._directory, self._database = spark, directory, database
        self._feed = Feed(directory, seed=5)
        self._plan = compiled(directory, database=options_text(database))

    def run(self, files: int = 0) -> None:
        for _ in range(files):
            self._feed.add()
        execution = execute(
            self._plan, self._spark, checkpoint=str(self._directory / "checkpoint"), once=True, policy=POLICY
        )
        assert execution.await_termination(DEADLINE_SECONDS)

    def is_right(self) -> bool:
        found = {name: sorted(self._database.rows(f"SELECT * FROM {name}"), key=str) for name in ("totals", "copies")}
        return found == {name: sorted(rows, key=str) for name, rows in expected(self._directory).items()}


def test_a_job_that_is_interrupted_around_its_commit_has_each_batch_once(
    spark: SparkSession, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Job(spark, tmp_path, database)
    job.run(files=4)
    assert job.is_right()
    move, writing = staging.move_staged, Writing()
    monkeypatch.setattr(server_sink, "_written", writing)
    for crash in ("before", "after", "staged twice"):
        numbers = count(1)

        def crashing(*arguments: Any, how: str = crash, calls: Iterator[int] = numbers) -> None:
            call = next(calls)  # two queries write at once
            if how == "staged twice":  # an attempt at a task that nobody waits for has staged rows too
                server, target, _, stage, *_ = arguments
                names = [server.quote(column.name) for column in target.columns]
                with server.transaction(target) as cursor:
                    cursor.execute(
                        f"INSERT INTO {stage.sql} SELECT {', '.join(names)}, hintplan_op, 'zombie' FROM {stage.sql}",
                        (),
                    )
                move(*arguments)
                return
            if call == 2 and how == "before":
                raise Crash
            move(*arguments)
            if call == 2:
                raise Crash

        with monkeypatch.context() as patched:
            patched.setattr(server_sink.staging, "move_staged", crashing)
            if crash == "staged twice":
                job.run(files=2)
            else:
                with pytest.raises(RunError):
                    job.run(files=4)
                assert writing.ends()
        job.run()
        assert job.is_right(), crash
    assert database.tables() == ["copies", "hintplan_commits", "totals"]


def test_a_server_that_crashes_between_staging_and_commit_gets_the_batch_whole(
    spark: SparkSession, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Job(spark, tmp_path, database)
    job.run(files=2)
    move, crashed = staging.move_staged, []

    def restarting(*arguments: Any) -> None:
        if not crashed:
            crashed.append(True)
            database.restart()
        move(*arguments)

    monkeypatch.setattr(server_sink.staging, "move_staged", restarting)
    if database.title == "PostgreSQL":
        with pytest.raises(RunError, match="has lost rows that were staged"):
            job.run(files=4)
    job.run(files=4)
    assert crashed
    assert job.is_right()


def test_another_checkpoint_does_not_append_under_the_numbers_of_one_that_is_lost(
    spark: SparkSession, database: Database, tmp_path: Path
) -> None:
    import shutil

    job = Job(spark, tmp_path, database)
    job.run(files=2)
    shutil.copytree(tmp_path / "checkpoint", tmp_path / "older")
    job.run(files=4)
    shutil.rmtree(tmp_path / "checkpoint")
    (tmp_path / "older").rename(tmp_path / "checkpoint")
    with pytest.raises(RunError, match="table copies: a streaming job has written batches up to"):
        job.run()


def test_a_server_that_is_not_there_is_named_after_the_retries(spark: SparkSession, database: Database) -> None:
    port = database.options["url"].rpartition(":")[2].partition("/")[0]
    options = {**database.options, "table-name": "t", "sink.max-retries": "0"}
    options["url"] = options["url"].replace(port, "1")
    target = Table(columns=(TableColumn(name="id", type="INT"),), options=options)
    with pytest.raises(RunError, match=f"{database.title} did not write to table 't': ") as caught:
        micro_batch_writer("r", target, changelog=False, checkpoint="c", part="")
    assert "is the server up?" in str(caught.value)


def test_floats_that_are_no_numbers(spark: SparkSession, database: Database) -> None:
    target = table(database, "f", ("k", "DOUBLE"), ("v", "FLOAT"), key=("k",))
    if database.title == "PostgreSQL":
        written(spark, target, [(math.nan, math.inf), (math.inf, math.nan), (math.nan, math.inf)])
        found = database.rows("SELECT CAST(k AS TEXT), CAST(v AS TEXT) FROM f ORDER BY k")
        assert found == [("Infinity", "NaN"), ("NaN", "Infinity")]
    else:
        target = table(database, "f", ("k", "INT"), ("v", "FLOAT"), key=("k",))
        written(spark, target, [(1, math.nan), (2, 1.5)])
        assert database.rows("SELECT k, v FROM f ORDER BY k") == [(1, None), (2, 1.5)]
        with pytest.raises(Exception, match="which MySQL cannot hold"):
            written(spark, target, [(3, math.inf)])


def test_parts_that_are_not_all_there_are_not_moved(database: Database) -> None:
    target = server_sink._target("r", table(database, "t", ("id", "INT")))
    server = Postgres() if database.title == "PostgreSQL" else Mysql()
    found = staging.prepare_target(server, target, remembers=True)
    stage = staging.new_stage(server, target, found, "q")
    part = staging.stage_rows(server, target, stage, 0, ["id"], [(1,), (2,)])
    with pytest.raises(RunError, match="2 of 3 are left"):
        staging.move_staged(server, target, found, stage, [part], 3, ("q", 0))
    staging.move_staged(server, target, found, stage, [part], 2, ("q", 0))
    staging.move_staged(server, target, found, stage, [part], 2, ("q", 0))
    assert database.rows("SELECT id FROM t ORDER BY id") == [(1,), (2,)]
    assert staging.last_remembered(server, target, found, "q") == 0
    with pytest.raises(RunError, match="has batch 0 of this query, which is at batch -1"):
        staging.move_staged(server, target, found, stage, [part], 2, ("q", -1))
    staging.new_stage(server, target, found, "q")
    with pytest.raises(RunError, match="refused to write to table 't'"):
        staging.stage_rows(server, target, stage, 0, ["id"], [(3,)])  # by a task of a run that is over


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ("k VARCHAR(9) COLLATE utf8mb4_general_ci PRIMARY KEY, v INT", "the collation utf8mb4_general_ci in MySQL"),
        ("k VARCHAR(9) COLLATE utf8mb4_bin PRIMARY KEY, v INT UNIQUE", "has a unique index on (v), by which"),
        ("k VARCHAR(9) COLLATE utf8mb4_bin PRIMARY KEY, v INT) ENGINE=MyISAM -- ", "is no table of InnoDB"),
        (
            "k VARCHAR(9) COLLATE utf8mb4_bin PRIMARY KEY, v INT UNSIGNED",
            "column 'v' is INT here, but int(10) unsig",
        ),
    ],
)
def test_what_mysql_would_take_for_another_row_or_not_take_back_is_refused(
    mariadb: Mariadb, made: str, said: str
) -> None:
    database = MariadbDatabase(mariadb)
    database.clear()
    database.execute(f"CREATE TABLE t ({made})".replace("-- )", ""))
    with pytest.raises(RunError) as caught:
        micro_batch_writer(
            "r", table(database, "t", ("k", "VARCHAR(9)"), ("v", "INT"), key=("k",)), changelog=True, checkpoint="c",
            part="",
        )  # fmt: skip
    assert said in str(caught.value)


def test_a_key_that_mysql_cannot_have_is_refused_when_the_table_would_be_created(
    spark: SparkSession, mariadb: Mariadb
) -> None:
    database = MariadbDatabase(mariadb)
    database.clear()
    target = table(database, "t", ("k", "STRING"), ("v", "INT"), key=("k",))
    with pytest.raises(RunError, match="column 'k' of the key is STRING: MySQL has no key of that length"):
        written(spark, target, [("a", 1)])
    target = table(database, "t", ("k", "VARCHAR(9)"), ("v", "INT"), key=("k",))
    written(spark, target, [("a", 1), ("A", 2), ("ä", 3)])
    assert database.rows("SELECT k, v FROM t ORDER BY v") == [("a", 1), ("A", 2), ("ä", 3)]
