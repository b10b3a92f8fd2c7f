"""An SQLite table as a sink: its DDL, the conversion of Arrow columns to SQLite values, and its transactions.

Each micro-batch is one transaction. Identifiers are quoted and values are bound. Types in SQLite:

- Integers and BOOLEAN are INTEGER.
- FLOAT and DOUBLE are REAL; SQLite stores NaN as NULL.
- Texts are TEXT, and bytes are BLOB.
- DECIMAL is TEXT, because REAL would round it; compare it with ``CAST(x AS REAL)``.
- DATE is TEXT, such as ``2020-01-01``.
- TIMESTAMP(3) is TEXT, such as ``2020-01-01 00:00:00.000``, with the declared number of digits. TIMESTAMP_LTZ(3) is the
  same in UTC, with a ``Z``. These texts sort by time, and SQLite's date functions accept them.

Knows neither Spark nor the options of plans, only columns, keys and rows.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hintplan.plans.declarations.tables import Column
from hintplan.plans.declarations.types import parse_type
from hintplan.plans.errors import RunError, Unavailable
from hintplan.plans.text.links import link_to_nowhere
from hintplan.runtime.connectors.jdbc.dialect import Dialect
from hintplan.runtime.connectors.netting import Net, Row
from hintplan.runtime.lookup.source import source_of_classes

_COMMITS = "hintplan_commits"
_CREATE_COMMITS = (
    f"CREATE TABLE IF NOT EXISTS {_COMMITS} (sink TEXT NOT NULL, query_id TEXT NOT NULL, batch_id INTEGER NOT NULL, "
    "PRIMARY KEY (sink, query_id))"
)
_REMEMBER = (
    f"INSERT INTO {_COMMITS} VALUES (?, ?, ?) "
    "ON CONFLICT (sink, query_id) DO UPDATE SET batch_id = max(batch_id, excluded.batch_id)"
)
_STORAGE = {"FLOAT": "REAL", "DOUBLE": "REAL", "BYTES": "BLOB", "BINARY": "BLOB", "VARBINARY": "BLOB"}
_STORAGE |= dict.fromkeys(("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT"), "INTEGER")
_WAIT_SECONDS = 60.0
_HINTS = {
    sqlite3.SQLITE_FULL: "make room on its disk, then run again: the batch is written whole or not at all",
    sqlite3.SQLITE_IOERR: "check its disk, and whether there is room, then run again",
    sqlite3.SQLITE_READONLY: "give the user of the run the right to write to the file and its directory",
    sqlite3.SQLITE_BUSY: "another program holds a lock on the file; let it end its transaction, then run again",
    sqlite3.SQLITE_CORRUPT: "restore the file from a backup, with the checkpoint of that time, or start both from "
    "scratch",
}
"""Hints for SQLite's primary result codes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SqliteTable:
    """A table: its name, its columns in order, and its primary key, which may be empty."""

    name: str
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...]


class Sqlite(Dialect):
    """SQLite."""

    title = "SQLite"
    lookup = source_of_classes(
        "jdbc:sqlite",
        "hintplan.runtime.connectors.jdbc.sqlite_lookup",
        {"sync": "SqliteLookup", "full": "SqliteScan"},
    )

    def quote(self, name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    def column_type(self, column: Column) -> str:
        return _STORAGE.get(parse_type(column.type).root, "TEXT")


_DIALECT = Sqlite()


def check_target(path: str, table: SqliteTable) -> None:
    """Raise RunError if the file at ``path`` is not a database, or has a different table of that name.

    Creates nothing.
    """
    try:
        # mode=ro does not create the file; a missing file cannot conflict with the table.
        connection = sqlite3.connect(uri(path, "ro"), uri=True, timeout=_WAIT_SECONDS)
    except sqlite3.OperationalError:
        return
    try:
        _check_columns(connection, table)
    except sqlite3.OperationalError as error:
        if "unable to open" not in str(error):
            raise RunError(f"SQLite cannot read the database: {error}") from error
    except sqlite3.DatabaseError as error:
        raise RunError(f"SQLite cannot read the database: {error}", hint="check the path in 'url'") from error
    finally:
        connection.close()


def apply_net(path: str, table: SqliteTable, changes: Net, *, commit: tuple[str, int] | None = None) -> str:
    """Delete and upsert by primary key, in one transaction; a second call changes nothing.

    ``commit`` is the query and the number of the batch, which the database records. The result distinguishes the table
    from a later one with the same name.
    """
    columns = [column.name for column in table.columns]
    values = [_DIALECT.quote(name) for name in columns if name not in table.primary_key]
    keys = [_DIALECT.quote(name) for name in table.primary_key]
    upsert = f"{_insert(table)} {_DIALECT.upsert(keys, values)}"
    where = " AND ".join(f"{_DIALECT.quote(name)} = ?" for name in table.primary_key)
    with _transaction(path, table) as connection:
        connection.executemany(f"DELETE FROM {_DIALECT.quote(table.name)} WHERE {where}", changes.deletes)
        connection.executemany(upsert, changes.upserts)
        if commit is not None:
            connection.execute(_CREATE_COMMITS)
            connection.execute(_REMEMBER, (table.name, *commit))
        return _made(connection)


def append_rows(path: str, table: SqliteTable, rows: Iterator[Row], *, query_id: str, batch_id: int) -> str:
    """Insert ``rows``, unless this batch of this query is already there; return the result of :func:`apply_net`.

    The table ``hintplan_commits`` records the last batch of each query and sink, in the same transaction.
    """
    with _transaction(path, table) as connection:
        connection.execute(_CREATE_COMMITS)
        done = connection.execute(
            f"SELECT batch_id FROM {_COMMITS} WHERE sink = ? AND query_id = ?", (table.name, query_id)
        ).fetchone()
        if done is not None and done[0] > batch_id:
            raise RunError(
                f"table {table.name!r} in {path} has batch {done[0]} of this query, which is at batch {batch_id}",
                hint="its checkpoint is older than the table: restore the checkpoint that wrote it, or start both "
                "from scratch",
            )
        if done is None or done[0] < batch_id:
            connection.executemany(_insert(table), rows)
            connection.execute(_REMEMBER, (table.name, query_id, batch_id))
        return _made(connection)


def last_sqlite_batch(path: str, table: str, query_id: str) -> int:
    """Return the last batch of a query that ``table`` has, or -1 if there is none."""
    row = _first_row(path, f"SELECT batch_id FROM {_COMMITS} WHERE sink = ? AND query_id = ?", table, query_id)
    return -1 if row is None else int(row[0])


def is_there(path: str, table: str) -> bool:
    """Return true if the database has a table of that name."""
    return _first_row(path, "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", table) is not None


def made_of_empty(path: str, table: str) -> str | None:
    """Return the value that distinguishes an empty table from an earlier one of its name, or None if it has rows."""
    if _first_row(path, f"SELECT 1 FROM {_DIALECT.quote(table)} LIMIT 1") is not None:
        return None
    row = _first_row(path, "PRAGMA schema_version")
    return None if row is None else str(row[0])


def _made(connection: sqlite3.Connection) -> str:
    """Return the value that distinguishes a table from an earlier one of its name: the database's schema version."""
    return str(connection.execute("PRAGMA schema_version").fetchone()[0])


def _first_row(path: str, query: str, *values: str) -> tuple[Any, ...] | None:
    """Return the first row of a query; None without row, table or database. :func:`check_target` reports errors."""
    try:
        connection = sqlite3.connect(uri(path, "ro"), uri=True, timeout=_WAIT_SECONDS)
        try:
            row: tuple[Any, ...] | None = connection.execute(query, values).fetchone()
        finally:
            connection.close()
    except sqlite3.Error:
        return None
    return row


def unopened(path: str) -> str | None:
    """Return the reason why SQLite cannot open or create the file at ``path``, or None if it is unknown."""
    parent = os.path.dirname(path) or "."
    if (link := link_to_nowhere(parent)) is not None:
        return link
    if os.path.isdir(path):
        return "it is a directory"
    if not os.path.isdir(parent):
        return f"{parent} is a file" if os.path.exists(parent) else f"there is no directory {parent}"
    return None


def insert_rows(path: str, table: SqliteTable, rows: Iterator[Row]) -> None:
    """Insert ``rows`` in one transaction; a second call inserts them again."""
    with _transaction(path, table) as connection:
        connection.executemany(_insert(table), rows)


def storage_columns(table: pa.Table, columns: tuple[Column, ...]) -> list[list[object]]:
    """Return the columns of ``table`` as lists of SQLite values, in the order of ``columns``."""
    return [_storage(table.column(column.name), column) for column in columns]


def _storage(values: pa.ChunkedArray, column: Column) -> list[object]:
    data_type = parse_type(column.type)
    if data_type.root == "DECIMAL":
        return [None if value is None else format(value, "f") for value in values.to_pylist()]
    if data_type.root == "BOOLEAN":
        values = values.cast(pa.int8())
    elif data_type.root == "DATE":
        values = values.cast(pa.string())
    elif data_type.root in ("FLOAT", "DOUBLE"):
        values = pc.if_else(pc.is_nan(values), None, values)
    elif data_type.root in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        # Via int64, because printing a zoned timestamp needs a time zone database, which small container images lack.
        moments = values.cast(pa.timestamp("us", values.type.tz)).cast(pa.int64()).cast(pa.timestamp("us"))
        digits = data_type.precision or 0
        values = pc.utf8_slice_codeunits(moments.cast(pa.string()), 0, 19 + (1 + digits if digits else 0))
        if data_type.root == "TIMESTAMP_LTZ":
            values = pc.binary_join_element_wise(values, "Z", "")
    stored: list[object] = values.to_pylist()
    return stored


@contextmanager
def _transaction(path: str, table: SqliteTable) -> Iterator[sqlite3.Connection]:
    """Open a write transaction on a database with ``table``; commit it at the end, or roll it back after an error."""
    try:
        connection = sqlite3.connect(path, timeout=_WAIT_SECONDS, isolation_level=None)
    except sqlite3.OperationalError as error:
        raise RunError(
            f"SQLite cannot open {path}: {unopened(path) or error}", hint="check the path in 'url'"
        ) from error
    try:
        connection.execute("BEGIN IMMEDIATE")
        if not _check_columns(connection, table):
            connection.execute(
                f"CREATE TABLE {_DIALECT.quote(table.name)} ({_DIALECT.definitions(table.columns, table.primary_key)})"
            )
        yield connection
        connection.execute("COMMIT")
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        kind = Unavailable if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) else RunError
        raise kind(
            f"SQLite refused to write to table {table.name!r} in {path}: {error}", hint=_HINTS.get(code)
        ) from error
    finally:
        connection.close()  # rolls back an uncommitted transaction


def _check_columns(connection: sqlite3.Connection, table: SqliteTable) -> bool:
    """Return true if the table exists; raise RunError if it has other columns or another primary key."""
    table_info = connection.execute(f"PRAGMA table_info({_DIALECT.quote(table.name)})").fetchall()
    if not table_info:
        return False
    expected = [f"{column.name} {_DIALECT.column_type(column)}" for column in table.columns]
    existing = [f"{name} {_affinity(declared)}" for _, name, declared, *_ in table_info]
    key = tuple(name for _, name, _, _, _, position in sorted(table_info, key=lambda row: row[5]) if position)
    if sorted(expected) != sorted(existing) or (table.primary_key and set(key) != set(table.primary_key)):
        raise RunError(
            f"table {table.name!r} exists in the database, but not as this sink would create it",
            hint=f"expected {_shape(expected, table.primary_key)}; found {_shape(existing, key)}. "
            "Change the columns in CREATE TABLE, choose another 'table-name', or drop the table",
        )
    return True


def _shape(columns: Sequence[str], key: Sequence[str]) -> str:
    return f"({', '.join(columns)})" + (f" with PRIMARY KEY ({', '.join(key)})" if key else " without PRIMARY KEY")


def _insert(table: SqliteTable) -> str:
    columns = ", ".join(_DIALECT.quote(column.name) for column in table.columns)
    return f"INSERT INTO {_DIALECT.quote(table.name)} ({columns}) VALUES ({', '.join('?' * len(table.columns))})"


def _affinity(declared: str) -> str:
    """Return the type affinity of a declared column type, by SQLite's rules in their order."""
    text = declared.upper()
    if "INT" in text:
        return "INTEGER"
    if any(word in text for word in ("CHAR", "CLOB", "TEXT")):
        return "TEXT"
    if "BLOB" in text or not text:
        return "BLOB"
    return "REAL" if any(word in text for word in ("REAL", "FLOA", "DOUB")) else "NUMERIC"


def uri(path: str, mode: str) -> str:
    """Return the URI with which SQLite opens the file at ``path`` in ``mode``, such as ``ro``."""
    return "file:" + "".join(f"%{ord(c):02x}" if c in "?#%" else c for c in path) + f"?mode={mode}"
