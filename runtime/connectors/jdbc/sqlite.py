"""One SQLite table as a sink: its DDL, how Arrow columns become SQLite values, and one transaction a micro-batch.

Identifiers are quoted and values bound. Types: integers and BOOLEAN are INTEGER, FLOAT and DOUBLE are REAL (NaN becomes
NULL, which SQLite has instead), text is TEXT, bytes are BLOB. What SQLite has no type for is TEXT: DECIMAL with all its
digits, since REAL would round it (``CAST(x AS REAL)`` to compare); DATE as ``2020-01-01``; TIMESTAMP(3) as
``2020-01-01 00:00:00.000``, and TIMESTAMP_LTZ(3) the same in UTC with a ``Z``, with as many digits as declared. Such
texts sort by time, and SQLite's date functions read them.

Knows neither Spark nor plans' options, only columns, keys and rows.
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
from hintplan.runtime.connectors.netting import Net, Row

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
    sqlite3.SQLITE_CORRUPT: "restore the file from a backup, with the checkpoint of that time, or start both anew",
}
"""What to do about SQLite's primary result codes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SqliteTable:
    """A table by name, with columns in order and the columns of its primary key, if it has one."""

    name: str
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...]


def check_target(path: str, table: SqliteTable) -> None:
    """RunError if the file at ``path`` is no database, or holds a table of that name that differs. Creates nothing."""
    try:
        # mode=ro does not create the file; one that is not there yet has nothing that could be wrong.
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
    """Delete and upsert by primary key, in one transaction; doing it again changes nothing.

    ``commit`` are the query and the number of the batch, which the database remembers. Return what tells the table from
    another one that is made under its name.
    """
    names = [column.name for column in table.columns]
    values = [name for name in names if name not in table.primary_key]
    update = ", ".join(f"{quoted(name)} = excluded.{quoted(name)}" for name in values)
    upsert = (
        f"{_insert(table)} ON CONFLICT ({', '.join(map(quoted, table.primary_key))}) "
        f"DO {f'UPDATE SET {update}' if update else 'NOTHING'}"
    )
    where = " AND ".join(f"{quoted(name)} = ?" for name in table.primary_key)
    with _transaction(path, table) as connection:
        connection.executemany(f"DELETE FROM {quoted(table.name)} WHERE {where}", changes.deletes)
        connection.executemany(upsert, changes.upserts)
        if commit is not None:
            connection.execute(_CREATE_COMMITS)
            connection.execute(_REMEMBER, (table.name, *commit))
        return _made(connection)


def append_rows(path: str, table: SqliteTable, rows: Iterator[Row], *, query_id: str, batch_id: int) -> str:
    """Insert ``rows`` unless this batch of this query was inserted before; return as :func:`apply_net`.

    The table ``hintplan_commits`` remembers, in the same transaction, the last batch of each query and sink.
    """
    with _transaction(path, table) as connection:
        connection.execute(_CREATE_COMMITS)
        done = connection.execute(
            f"SELECT batch_id FROM {_COMMITS} WHERE sink = ? AND query_id = ?", (table.name, query_id)
        ).fetchone()
        if done is not None and done[0] > batch_id:
            raise RunError(
                f"table {table.name!r} in {path} has batch {done[0]} of this query, which is at batch {batch_id}",
                hint="its checkpoint is older than the table: restore the one that wrote it, or start both anew",
            )
        if done is None or done[0] < batch_id:
            connection.executemany(_insert(table), rows)
            connection.execute(_REMEMBER, (table.name, query_id, batch_id))
        return _made(connection)


def last_written(path: str, table: str, query_id: str) -> int:
    """The last batch of a query that ``table`` has, -1 if there is none."""
    found = _asked(path, f"SELECT batch_id FROM {_COMMITS} WHERE sink = ? AND query_id = ?", table, query_id)
    return -1 if found is None else int(found[0])


def is_there(path: str, table: str) -> bool:
    """Return true if there is a table of that name."""
    return _asked(path, "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", table) is not None


def made_of_empty(path: str, table: str) -> str | None:
    """Return what tells an empty table from another one that was there under its name; None of one with rows."""
    if _asked(path, f"SELECT 1 FROM {quoted(table)} LIMIT 1") is not None:
        return None
    found = _asked(path, "PRAGMA schema_version")
    return None if found is None else str(found[0])


def _made(connection: sqlite3.Connection) -> str:
    """What tells a table from another one of its name: the number of times that anything was made or dropped."""
    return str(connection.execute("PRAGMA schema_version").fetchone()[0])


def _asked(path: str, query: str, *values: str) -> tuple[Any, ...] | None:
    """The first row; None if there is none, nor what it is asked of. What is wrong with that, check_target says."""
    try:
        connection = sqlite3.connect(uri(path, "ro"), uri=True, timeout=_WAIT_SECONDS)
        try:
            found: tuple[Any, ...] | None = connection.execute(query, values).fetchone()
        finally:
            connection.close()
    except sqlite3.Error:
        return None
    return found


def unopened(path: str) -> str | None:
    """Return why SQLite cannot open or make the file at ``path``, which it does not say; None if nobody knows."""
    above = os.path.dirname(path) or "."
    if (link := link_to_nowhere(above)) is not None:
        return link
    if os.path.isdir(path):
        return "it is a directory"
    if not os.path.isdir(above):
        return f"{above} is a file" if os.path.exists(above) else f"there is no directory {above}"
    return None


def insert_rows(path: str, table: SqliteTable, rows: Iterator[Row]) -> None:
    """Insert ``rows``, in one transaction; doing it again inserts them again."""
    with _transaction(path, table) as connection:
        connection.executemany(_insert(table), rows)


def storage_columns(table: pa.Table, columns: tuple[Column, ...]) -> list[list[Any]]:
    """The columns of ``table`` as lists of what SQLite stores, in the order of ``columns``."""
    return [_storage(table.column(column.name), column) for column in columns]


def _storage(values: pa.ChunkedArray, column: Column) -> list[Any]:
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
        # By way of int64, as printing a zoned timestamp needs a time zone database, which small images lack.
        moments = values.cast(pa.timestamp("us", values.type.tz)).cast(pa.int64()).cast(pa.timestamp("us"))
        digits = data_type.precision or 0
        values = pc.utf8_slice_codeunits(moments.cast(pa.string()), 0, 19 + (1 + digits if digits else 0))
        if data_type.root == "TIMESTAMP_LTZ":
            values = pc.binary_join_element_wise(values, "Z", "")
    stored: list[Any] = values.to_pylist()
    return stored


@contextmanager
def _transaction(path: str, table: SqliteTable) -> Iterator[sqlite3.Connection]:
    """A connection in a write transaction on a database that has ``table``: committed at the end, or rolled back."""
    try:
        connection = sqlite3.connect(path, timeout=_WAIT_SECONDS, isolation_level=None)
    except sqlite3.OperationalError as error:
        raise RunError(
            f"SQLite cannot open {path}: {unopened(path) or error}", hint="check the path in 'url'"
        ) from error
    try:
        connection.execute("BEGIN IMMEDIATE")
        if not _check_columns(connection, table):
            connection.execute(_create(table))
        yield connection
        connection.execute("COMMIT")
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        kind = Unavailable if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) else RunError
        raise kind(
            f"SQLite refused to write to table {table.name!r} in {path}: {error}", hint=_HINTS.get(code)
        ) from error
    finally:
        connection.close()  # rolls back what was not committed


def _check_columns(connection: sqlite3.Connection, table: SqliteTable) -> bool:
    """Whether the table exists; RunError if it does with other columns or another primary key."""
    found = connection.execute(f"PRAGMA table_info({quoted(table.name)})").fetchall()
    if not found:
        return False
    expected = [f"{column.name} {_storage_class(column)}" for column in table.columns]
    existing = [f"{name} {_affinity(declared)}" for _, name, declared, *_ in found]
    key = tuple(name for _, name, _, _, _, position in sorted(found, key=lambda row: row[5]) if position)
    if sorted(expected) != sorted(existing) or (table.primary_key and set(key) != set(table.primary_key)):
        raise RunError(
            f"table {table.name!r} exists in the database, but not as this sink would create it",
            hint=f"expected {_shape(expected, table.primary_key)}; found {_shape(existing, key)}. "
            "Change the columns in CREATE TABLE, choose another 'table-name', or drop the table",
        )
    return True


def _shape(columns: Sequence[str], key: Sequence[str]) -> str:
    return f"({', '.join(columns)})" + (f" with PRIMARY KEY ({', '.join(key)})" if key else " without PRIMARY KEY")


def _create(table: SqliteTable) -> str:
    parts = []
    for column in table.columns:
        required = not parse_type(column.type).nullable or column.name in table.primary_key
        parts.append(f"{quoted(column.name)} {_storage_class(column)}" + (" NOT NULL" if required else ""))
    if table.primary_key:
        parts.append(f"PRIMARY KEY ({', '.join(map(quoted, table.primary_key))})")
    return f"CREATE TABLE {quoted(table.name)} ({', '.join(parts)})"


def _insert(table: SqliteTable) -> str:
    names = ", ".join(quoted(column.name) for column in table.columns)
    return f"INSERT INTO {quoted(table.name)} ({names}) VALUES ({', '.join('?' * len(table.columns))})"


def _storage_class(column: Column) -> str:
    return _STORAGE.get(parse_type(column.type).root, "TEXT")


def _affinity(declared: str) -> str:
    """The type affinity of a declared column type, by SQLite's rules in their order."""
    text = declared.upper()
    if "INT" in text:
        return "INTEGER"
    if any(word in text for word in ("CHAR", "CLOB", "TEXT")):
        return "TEXT"
    if "BLOB" in text or not text:
        return "BLOB"
    return "REAL" if any(word in text for word in ("REAL", "FLOA", "DOUB")) else "NUMERIC"


def uri(path: str, mode: str) -> str:
    """The name by which SQLite opens the file at ``path`` in ``mode``, such as ``ro``."""
    return "file:" + "".join(f"%{ord(c):02x}" if c in "?#%" else c for c in path) + f"?mode={mode}"


def quoted(name: str) -> str:
    """``name`` as an SQL identifier, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'
