"""The SQLite sink without Spark: batches as Arrow tables, results read back with sqlite3."""

from __future__ import annotations

import pickle
import sqlite3
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from hintplan.plans.declarations.tables import Column
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.jdbc.sqlite import (
    SqliteTable,
    append_rows,
    apply_net,
    check_target,
    last_sqlite_batch,
    storage_columns,
)
from hintplan.runtime.connectors.jdbc.sqlite_sink import SqliteBatch
from hintplan.runtime.connectors.netting import Net
from hintplan.runtime.operator import DELETE, INSERT, KIND, UPDATE_AFTER, UPDATE_BEFORE

REVENUE = SqliteTable(
    name="revenue",
    columns=(Column(name="country", type="STRING NOT NULL"), Column(name="rev", type="DOUBLE")),
    primary_key=("country",),
)
LOG = SqliteTable(name="log", columns=(Column(name="line", type="STRING"),), primary_key=())


@dataclass
class Batch:
    """As much of a micro-batch as a sink uses."""

    table: pa.Table

    def toArrow(self) -> pa.Table:
        return self.table


def rows(path, query: str) -> list[tuple]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def sink(path, target: SqliteTable = REVENUE, **changed) -> SqliteBatch:
    return SqliteBatch(
        **{"url": f"jdbc:sqlite:{path}", "target": target, "credentials": (), "checkpoint": None} | changed
    )


def revenue(*changes: tuple[int, str, float | None]) -> Batch:
    kinds, countries, revs = zip(*changes, strict=True)
    return Batch(
        pa.table({"country": countries, "rev": pa.array(revs, pa.float64()), KIND: pa.array(kinds, pa.int8())})
    )


def test_batches_of_changes_keep_the_table_up_to_date_by_key(tmp_path):
    path = tmp_path / "out.db"
    write = sink(path)
    write(revenue((INSERT, "DE", 5.0), (INSERT, "FR", 1.0), (INSERT, "IT", 2.0)), 0)
    write(revenue((UPDATE_BEFORE, "DE", 5.0), (UPDATE_AFTER, "DE", 7.5), (DELETE, "FR", 1.0)), 1)
    assert rows(path, "SELECT * FROM revenue ORDER BY country") == [("DE", 7.5), ("IT", 2.0)]


def test_a_replayed_batch_of_changes_changes_nothing(tmp_path):
    path = tmp_path / "out.db"
    batch = revenue((UPDATE_AFTER, "DE", 7.5), (DELETE, "FR", 1.0), (INSERT, "IT", None))
    write = sink(path)
    write(batch, 3)
    once = rows(path, "SELECT * FROM revenue ORDER BY country")
    write(batch, 3)
    assert rows(path, "SELECT * FROM revenue ORDER BY country") == once == [("DE", 7.5), ("IT", None)]


def test_a_batch_without_kinds_inserts_and_replaces(tmp_path):
    path = tmp_path / "out.db"
    sink(path)(Batch(pa.table({"country": ["DE", "DE"], "rev": [1.0, 2.0]})), 0)
    assert rows(path, "SELECT * FROM revenue") == [("DE", 2.0)]


def test_an_empty_batch_creates_the_table(tmp_path):
    path = tmp_path / "out.db"
    sink(path)(Batch(pa.table({"country": pa.array([], pa.string()), "rev": pa.array([], pa.float64())})), 0)
    assert rows(path, "SELECT count(*) FROM revenue") == [(0,)]


def test_a_sink_can_be_pickled_with_its_secrets_unresolved(tmp_path, monkeypatch):
    monkeypatch.setenv("DB_PASSWORD", "hunter2")
    write = sink(tmp_path / "out.db", credentials=("${env:DB_PASSWORD}",))
    data = pickle.dumps(write)
    assert b"hunter2" not in data
    pickle.loads(data)(revenue((INSERT, "DE", 5.0)), 0)
    assert rows(tmp_path / "out.db", "SELECT * FROM revenue") == [("DE", 5.0)]


def test_a_password_whose_variable_is_missing_stops_the_sink(tmp_path, monkeypatch):
    monkeypatch.delenv("DB_PASSWORD", raising=False)
    with pytest.raises(RunError, match="DB_PASSWORD is not set"):
        sink(tmp_path / "out.db", credentials=("${env:DB_PASSWORD}",))(revenue((INSERT, "DE", 5.0)), 0)


def test_a_replayed_batch_is_appended_once(tmp_path):
    path = str(tmp_path / "out.db")
    append_rows(path, LOG, iter([("a",), ("a",)]), query_id="q", batch_id=0)
    append_rows(path, LOG, iter([("b",)]), query_id="q", batch_id=1)
    append_rows(path, LOG, iter([("b",)]), query_id="q", batch_id=1)
    assert rows(path, "SELECT line FROM log") == [("a",), ("a",), ("b",)]
    with pytest.raises(RunError, match="has batch 1 of this query, which is at batch 0"):
        append_rows(path, LOG, iter([("a",), ("a",)]), query_id="q", batch_id=0)
    assert last_sqlite_batch(path, "log", "q") == 1
    assert last_sqlite_batch(path, "log", "another") == -1
    assert last_sqlite_batch(str(tmp_path / "none.db"), "log", "q") == -1


def test_a_query_with_a_new_checkpoint_appends_again(tmp_path):
    path = str(tmp_path / "out.db")
    append_rows(path, LOG, iter([("a",)]), query_id="first", batch_id=0)
    append_rows(path, LOG, iter([("a",)]), query_id="second", batch_id=0)
    assert rows(path, "SELECT line FROM log") == [("a",), ("a",)]


def test_a_batch_that_fails_half_way_leaves_nothing_behind(tmp_path):
    path = str(tmp_path / "out.db")
    strict = SqliteTable(name="log", columns=(Column(name="line", type="STRING NOT NULL"),), primary_key=())
    with pytest.raises(RunError, match=r"NOT NULL constraint failed: log\.line"):
        append_rows(path, strict, iter([("a",), (None,)]), query_id="q", batch_id=0)
    append_rows(path, strict, iter([("a",), ("b",)]), query_id="q", batch_id=0)
    assert rows(path, "SELECT line FROM log") == [("a",), ("b",)]


def test_a_null_in_the_primary_key_is_refused(tmp_path):
    with pytest.raises(RunError, match=r"NOT NULL constraint failed: revenue\.country"):
        apply_net(str(tmp_path / "out.db"), REVENUE, Net(upserts=((None, 1.0),), deletes=()))


def test_names_are_quoted_and_values_bound(tmp_path):
    path = str(tmp_path / "out.db")
    odd = SqliteTable(
        name='or"der; DROP',
        columns=(Column(name='se"lect', type="STRING"), Column(name="from", type="STRING")),
        primary_key=('se"lect',),
    )
    apply_net(path, odd, Net(upserts=(("'); DROP TABLE x; --", "b"),), deletes=()))
    apply_net(path, odd, Net(upserts=(("k", "v"),), deletes=(("'); DROP TABLE x; --",),)))
    assert rows(path, 'SELECT * FROM "or""der; DROP"') == [("k", "v")]


def test_a_key_may_span_all_columns(tmp_path):
    path = str(tmp_path / "out.db")
    pair = SqliteTable(
        name="pair", columns=(Column(name="a", type="INT"), Column(name="b", type="INT")), primary_key=("b", "a")
    )
    apply_net(path, pair, Net(upserts=((1, 2), (3, 4)), deletes=()))
    apply_net(path, pair, Net(upserts=((1, 2),), deletes=((4, 3),)))
    assert rows(path, "SELECT * FROM pair") == [(1, 2)]


@pytest.mark.parametrize(
    "existing",
    [
        "CREATE TABLE revenue (country TEXT NOT NULL PRIMARY KEY)",
        "CREATE TABLE revenue (country TEXT NOT NULL PRIMARY KEY, rev REAL, extra TEXT)",
        "CREATE TABLE revenue (country TEXT NOT NULL PRIMARY KEY, rev INTEGER)",
        "CREATE TABLE revenue (country TEXT NOT NULL, rev REAL)",
        "CREATE TABLE revenue (country TEXT, rev REAL, PRIMARY KEY (country, rev))",
    ],
)
def test_an_existing_table_that_differs_is_refused(tmp_path, existing):
    path = str(tmp_path / "out.db")
    connection = sqlite3.connect(path)
    connection.execute(existing)
    connection.close()
    for refuse in (lambda: check_target(path, REVENUE), lambda: apply_net(path, REVENUE, Net(upserts=(), deletes=()))):
        with pytest.raises(RunError, match=r"expected \(country TEXT, rev REAL\) with PRIMARY KEY \(country\); found"):
            refuse()


def test_an_existing_table_that_another_tool_made_alike_is_taken(tmp_path):
    path = str(tmp_path / "out.db")
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE revenue (rev DOUBLE PRECISION, country VARCHAR(2) PRIMARY KEY)")
    connection.close()
    check_target(path, REVENUE)
    apply_net(path, REVENUE, Net(upserts=(("DE", 1.5),), deletes=()))
    assert rows(path, "SELECT country, rev FROM revenue") == [("DE", 1.5)]


def test_checking_a_database_that_is_not_there_creates_nothing(tmp_path):
    check_target(str(tmp_path / "none" / "out.db"), REVENUE)
    check_target(str(tmp_path / "out.db"), REVENUE)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_database_is_refused(tmp_path):
    (tmp_path / "out.db").write_text("country,rev\n" * 100)
    with pytest.raises(RunError, match="file is not a database"):
        check_target(str(tmp_path / "out.db"), REVENUE)


def test_a_directory_that_does_not_exist_is_refused_when_writing(tmp_path):
    with pytest.raises(RunError, match=r"SQLite cannot open .*/none/out\.db: there is no directory .*/none"):
        apply_net(str(tmp_path / "none" / "out.db"), REVENUE, Net(upserts=(), deletes=()))


@pytest.mark.parametrize(
    ("flink_type", "value", "arrow_type", "stored"),
    [
        ("BOOLEAN", True, pa.bool_(), 1),
        ("BIGINT", -(2**63), pa.int64(), -(2**63)),
        ("FLOAT", 0.5, pa.float32(), 0.5),
        ("DOUBLE", float("nan"), pa.float64(), None),
        ("BYTES", b"\x00\xff", pa.binary(), b"\x00\xff"),
        ("DECIMAL(38, 8)", Decimal("0.00000001"), pa.decimal128(38, 8), "0.00000001"),
        ("DECIMAL(38, 2)", Decimal("123456789012345678901234567890.12"), pa.decimal128(38, 2),
         "123456789012345678901234567890.12"),
        ("DATE", date(2020, 2, 29), pa.date32(), "2020-02-29"),
        ("TIMESTAMP(3)", datetime(2020, 1, 1, 0, 0, 0, 1999), pa.timestamp("us"), "2020-01-01 00:00:00.001"),
        ("TIMESTAMP(0)", datetime(1969, 12, 31, 23, 59, 59, 900000), pa.timestamp("us"), "1969-12-31 23:59:59"),
        ("TIMESTAMP_LTZ(6)", datetime(2020, 1, 1, 12, tzinfo=UTC), pa.timestamp("us", "Europe/Berlin"),
         "2020-01-01 12:00:00.000000Z"),
    ],
)  # fmt: skip
def test_a_value_is_stored_exactly_or_as_text(tmp_path, flink_type, value, arrow_type, stored):
    path = str(tmp_path / "out.db")
    columns = (Column(name="id", type="INT"), Column(name="v", type=flink_type))
    batch = pa.table({"id": [1, 2], "v": pa.array([value, None], arrow_type)})
    changes = Net(upserts=tuple(zip(*storage_columns(batch, columns), strict=True)), deletes=())
    apply_net(path, SqliteTable(name="t", columns=columns, primary_key=("id",)), changes)
    assert rows(path, "SELECT id, v FROM t ORDER BY id") == [(1, stored), (2, None)]
