"""Lookups in an SQLite database: ``'connector' = 'jdbc', 'url' = 'jdbc:sqlite:...'``.

The database is opened read-only. Each key is one execution of a prepared query, because there are no round trips to
save; the keys of one call are answered from one snapshot. Values are read in the form that the jdbc sink writes.
DECIMAL, DATE and timestamps are text, and BOOLEAN is 0 or 1; DECIMAL may also be a number. A value that does not fit
its column fails the query.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, ClassVar

import pyarrow as pa

from hintplan.plans.connectors.jdbc import SQLITE_URL, ScanPart
from hintplan.plans.declarations.tables import Column
from hintplan.plans.declarations.types import DataType, parse_type
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.jdbc.sqlite import Sqlite, uri
from hintplan.runtime.lookup.api import Key, LookupContext, LookupFunction, Row, ScanFunction
from hintplan.runtime.lookup.sources.decoding import Decoder, decimal_decoder, integer_decoder, text_decoder
from hintplan.runtime.lookup.sources.failures import SourceUnavailable, redacted
from hintplan.runtime.lookup.sources.matching import MOST_ROWS, RowShape, refuse_excess
from hintplan.runtime.types import to_arrow

_WAIT_SECONDS = 30.0
_DIALECT = Sqlite()
_BYTES = ("BYTES", "BINARY", "VARBINARY")


class SqliteLookup(LookupFunction):
    """Answers keys with an equality query."""

    bulk: ClassVar[bool] = True
    retry_on: ClassVar[tuple[type[Exception], ...]] = (SourceUnavailable,)

    def __init__(self) -> None:
        self._connection: sqlite3.Connection | None = None

    def open(self, context: LookupContext) -> None:
        self._context = context
        self._shape = RowShape.of(context)
        self._binders = [_binder(column) for column in context.keys]
        types = {column.name: column.type for column in (*context.keys, *context.columns)}
        fetched = tuple(Column(name=name, type=types[name]) for name in self._shape.fetched)
        self._decode = _decoding(context, fetched)
        where = " AND ".join(f"{_column(column.name)} = ?" for column in context.keys)
        self._query = f"{_select(context, fetched)} WHERE {where} LIMIT {MOST_ROWS + 1}"

    def lookup(self, key: Key) -> list[Row]:
        return self.lookup_many([key])[0]

    def lookup_many(self, keys: Sequence[Key]) -> list[list[Row]]:
        with _failures(self._context):
            if self._connection is None:
                self._connection = _connect(self._context)
            self._connection.execute("BEGIN")
            try:
                return [self._rows(self._connection, key) for key in keys]
            finally:
                self._connection.execute("ROLLBACK")

    def _rows(self, connection: sqlite3.Connection, key: Key) -> list[Row]:
        bound = [bind(value) for bind, value in zip(self._binders, key, strict=True)]
        stored = connection.execute(self._query, bound).fetchall()
        refuse_excess(stored, self._context.table)
        return self._shape.match([key], self._decode(stored))[0]

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class SqliteScan(ScanFunction):
    """Reads the table from one snapshot."""

    retry_on: ClassVar[tuple[type[Exception], ...]] = (SourceUnavailable,)

    def scan(self, context: LookupContext) -> Iterator[pa.RecordBatch]:
        return self.scan_part(context, None, None)

    def scan_part(self, context: LookupContext, part: ScanPart | None, pushed_filter: None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of ``part``, or of the whole table.

        There is no condition ``pushed_filter``, because an SQLite column can hold values of any type.
        """
        where = "" if part is None else f" WHERE {_column(part.column)} BETWEEN ? AND ?"
        schema = pa.schema([(column.name, to_arrow(column.type)) for column in context.columns])
        size = int(context.options.get("scan.fetch-size", "10000"))
        decode = _decoding(context, context.columns)
        with _failures(context):
            connection = _connect(context)
            try:
                bounds = () if part is None else (part.low, part.high)
                cursor = connection.execute(_select(context, context.columns) + where, bounds)
                while rows := cursor.fetchmany(size):
                    values = zip(*decode(rows), strict=True)
                    arrays = [pa.array(column, field.type) for column, field in zip(values, schema, strict=True)]
                    yield pa.record_batch(arrays, schema=schema)
            finally:
                connection.close()


def _connect(context: LookupContext) -> sqlite3.Connection:
    path = context.options["url"].removeprefix(SQLITE_URL)
    return sqlite3.connect(
        uri(path, "ro"), uri=True, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False
    )


def _select(context: LookupContext, columns: Sequence[Column]) -> str:
    # Column names must be qualified: SQLite treats a quoted name as a text if no such column exists.
    column_list = ", ".join(_column(column.name) for column in columns) or "1"
    return f"SELECT {column_list} FROM {_DIALECT.quote(context.options['table-name'])} AS t"


def _column(name: str) -> str:
    return f"t.{_DIALECT.quote(name)}"


@contextmanager
def _failures(context: LookupContext) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        text = redacted(str(error), context.options)
        path = f"tables.{context.table}"
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR):
            raise SourceUnavailable(f"SQLite could not look up: {text}", path=path) from None
        hint = None
        if code == sqlite3.SQLITE_CANTOPEN:
            hint = "check the path in 'url'; a relative path starts where the Python worker runs"
        elif "no such table" in text:
            hint = "check 'table-name'"
        elif "no such column" in text:
            hint = "declare the columns as the database has them"
        raise RunError(f"SQLite cannot look up: {text}", hint=hint, path=path) from None


def _decoding(context: LookupContext, columns: Sequence[Column]) -> Callable[[list[Row]], list[Row]]:
    """Return a function that converts SQLite's rows to the columns' types, and raises RunError for an invalid value."""
    decoders = [(column.name, _decoder(column)) for column in columns]

    def decode_value(name: str, decode: Decoder, value: object) -> Any:
        try:
            return decode(value)
        except ValueError as error:
            raise RunError(
                f"column {name!r} in the SQLite database holds a value that does not fit: {error}",
                hint="declare the column as the database fills it",
                path=f"tables.{context.table}",
            ) from None

    def decode_row(row: Row) -> Row:
        values = zip(decoders, row, strict=True)
        return tuple(None if value is None else decode_value(*column, value) for column, value in values)

    return lambda rows: [decode_row(row) for row in rows]


def _decoder(column: Column) -> Decoder:
    data_type = parse_type(column.type)
    root = data_type.root
    if data_type.is_integer:
        in_range = integer_decoder(column.type)
        return lambda value: in_range(value) if isinstance(value, int) else _misfit(value, data_type)
    if root in ("FLOAT", "DOUBLE"):
        return lambda value: float(value) if isinstance(value, int | float) else _misfit(value, data_type)
    if root == "BOOLEAN":
        return lambda value: bool(value) if value in (0, 1) else _misfit(value, data_type)
    if root == "DECIMAL":
        fit, parse = decimal_decoder(column.type), text_decoder(column.type)
        return lambda value: fit(Decimal(repr(value))) if isinstance(value, int | float) else parse(value)
    if root in _BYTES:
        return lambda value: value if isinstance(value, bytes) else _misfit(value, data_type)
    parse = text_decoder(column.type)
    return lambda value: parse(value) if isinstance(value, str) else _misfit(value, data_type)


def _misfit(value: object, data_type: DataType) -> Any:
    raise ValueError(f"{str(value)[:40]!r} is not {data_type.as_nullable()}")


def _binder(column: Column) -> Callable[[Any], Any]:
    """Return a function that converts a key value to the form in which the jdbc sink stores it."""
    data_type = parse_type(column.type)
    if data_type.root == "DECIMAL":
        fit = decimal_decoder(column.type)
        return lambda value: format(fit(value), "f")
    if data_type.root in ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ"):
        digits = data_type.precision or 0
        return lambda value: _stored_time(value, digits)
    return lambda value: value


def _stored_time(value: date | datetime, digits: int) -> str:
    if not isinstance(value, datetime):
        return value.isoformat()
    local = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    text = local.isoformat(sep=" ", timespec="microseconds")
    return text[: 20 + digits if digits else 19] + ("Z" if value.tzinfo else "")
