"""Lookups in MySQL and MariaDB through PyMySQL: ``'connector' = 'jdbc', 'url' = 'jdbc:mysql://...'``.

One query looks up many keys, on one connection per Python worker. Sessions are read-only, in UTC, and end a statement
after ``statement.timeout``. The first lookup reads the column types of the table. A table or column that does not fit
thus fails before any key is looked up. A lost connection, a timeout and a starting server are retried.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, ClassVar

import pyarrow as pa
import pymysql
from pymysql.cursors import SSCursor

from hintplan.plans.connectors.columns import NESTED
from hintplan.plans.connectors.jdbc import ScanPart, split_name
from hintplan.plans.declarations.durations import parse_duration
from hintplan.plans.declarations.tables import Column
from hintplan.plans.declarations.types import DataType, parse_type
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.jdbc.mysql import mysql_name
from hintplan.runtime.connectors.jdbc.mysql_connection import (
    is_transient_mysql_error,
    mysql_connection,
    mysql_error_code,
    mysql_message,
)
from hintplan.runtime.expressions.pushed_filter import PushedFilter, pushed_filter_sql
from hintplan.runtime.lookup.api import Key, LookupContext, LookupFunction, Row, ScanFunction
from hintplan.runtime.lookup.sources.decoding import Decoder, decimal_decoder, integer_decoder, text_decoder
from hintplan.runtime.lookup.sources.failures import SourceUnavailable
from hintplan.runtime.lookup.sources.matching import MOST_ROWS, RowShape, refuse_excess
from hintplan.runtime.types import to_arrow

_TEXTS = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "json", "uuid")
_BLOBS = ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob")
_INTEGERS = ("tinyint", "smallint", "mediumint", "int", "bigint")
_ACCEPTED: Mapping[str, tuple[str, ...]] = {
    "BOOLEAN": ("tinyint",),
    "TINYINT": _INTEGERS[:1],
    "SMALLINT": _INTEGERS[:2],
    "INT": _INTEGERS[:4],
    "BIGINT": _INTEGERS,
    "FLOAT": ("float",),
    "DOUBLE": ("float", "double", "decimal"),
    "DECIMAL": ("decimal", *_INTEGERS),
    "DATE": ("date",),
    "TIMESTAMP": ("datetime",),
    "TIMESTAMP_LTZ": ("timestamp", "datetime"),
    **dict.fromkeys(("CHAR", "VARCHAR", "STRING"), _TEXTS),
    **dict.fromkeys(("BYTES", "BINARY", "VARBINARY"), _BLOBS),
    **dict.fromkeys(NESTED, ("json", "text", "mediumtext", "longtext")),
}
_HINTS = {
    1146: "check 'table-name'; a table of another database is written database.table",
    1142: "grant the user SELECT on the table",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A column in SQL: the expression that reads it, and the expression that is compared with values."""

    read: str
    compared: str


class MysqlLookup(LookupFunction):
    """Answers keys while the caller waits, on one connection."""

    bulk: ClassVar[bool] = True
    retry_on: ClassVar[tuple[type[Exception], ...]] = (SourceUnavailable,)

    def open(self, context: LookupContext) -> None:
        self._context = context
        self._shape = RowShape.of(context)
        types = {column.name: column.type for column in (*context.keys, *context.columns)}
        self._fetched = tuple(Column(name=name, type=types[name]) for name in self._shape.fetched)
        self._connection: pymysql.Connection[Any] | None = None
        self._select = ""

    def lookup(self, key: Key) -> Sequence[Row]:
        return self.lookup_many([key])[0]

    def lookup_many(self, keys: Sequence[Key]) -> Sequence[Sequence[Row]]:
        bound = [tuple(map(_bound, key)) for key in keys]
        key_columns = ", ".join(f"t.{mysql_name(column.name)}" for column in self._context.keys)
        single = len(self._context.keys) == 1
        where = f" WHERE {key_columns if single else f'({key_columns})'} IN %s LIMIT {MOST_ROWS + 1}"
        with _failures(self._context):
            try:
                if self._connection is None:
                    self._connection = _session(self._context)
                with self._connection.cursor() as cursor:
                    self._select = self._select or _select(self._context, _read(cursor, self._context, self._fetched))
                    cursor.execute(self._select + where, ([key[0] for key in bound] if single else bound,))
                    rows = list(cursor.fetchall())
            except pymysql.MySQLError:
                self.close()
                raise
        refuse_excess(rows, self._context.table)
        return self._shape.match(keys, _decoding(self._context, self._fetched)(rows))

    def close(self) -> None:
        if self._connection is not None and self._connection.open:
            self._connection.close()
        self._connection = None


class MysqlScan(ScanFunction):
    """Reads the table with one query, ``scan.fetch-size`` rows at a time."""

    retry_on: ClassVar[tuple[type[Exception], ...]] = (SourceUnavailable,)

    def scan(self, context: LookupContext) -> Iterator[pa.RecordBatch]:
        return self.scan_part(context, None, None)

    def scan_part(
        self, context: LookupContext, part: ScanPart | None, pushed_filter: PushedFilter | None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of ``part``, or of the whole table, that satisfy the condition ``pushed_filter``."""
        schema = pa.schema([(column.name, to_arrow(column.type)) for column in context.columns])
        size = int(context.options.get("scan.fetch-size", "10000"))
        decode = _decoding(context, context.columns)
        with _failures(context):
            session = _session(context)
            try:
                with session.cursor() as cursor:
                    read = _read(cursor, context, context.columns)
                where, bound = _where(part, pushed_filter, read)
                with session.cursor(SSCursor) as cursor:
                    cursor.execute(_select(context, read) + where, bound)
                    while rows := cursor.fetchmany(size):
                        values = zip(*decode(list(rows)), strict=True)
                        arrays = [pa.array(column, field.type) for column, field in zip(values, schema, strict=True)]
                        yield pa.record_batch(arrays, schema=schema)
            finally:
                session.close()


def _session(context: LookupContext) -> pymysql.Connection[Any]:
    session = mysql_connection(context.options, context.table, autocommit=True)
    milliseconds = parse_duration(context.options.get("statement.timeout", "30 s"))
    is_mariadb = "mariadb" in session.get_server_info().lower()
    limit = f"max_statement_time = {milliseconds / 1000}" if is_mariadb else f"max_execution_time = {milliseconds}"
    with session.cursor() as cursor:
        cursor.execute(f"SET SESSION {limit}")
        cursor.execute("SET SESSION TRANSACTION READ ONLY")
    return session


def _where(
    part: ScanPart | None, pushed_filter: PushedFilter | None, read: Mapping[str, Value]
) -> tuple[str, tuple[Any, ...]]:
    """Return the WHERE clause and its parameters."""
    conditions: list[str] = []
    bound: tuple[Any, ...] = ()
    if part is not None:
        conditions.append(f"t.{mysql_name(part.column)} BETWEEN %s AND %s")
        bound = (part.low, part.high)
    if pushed_filter is not None:
        text, values = pushed_filter_sql(pushed_filter, lambda name: read[name].compared)
        conditions.append(f"({text})")
        bound += values
    return (f" WHERE {' AND '.join(conditions)}" if conditions else ""), bound


def _name(context: LookupContext) -> str:
    return ".".join(map(mysql_name, split_name(context.options["table-name"])))


def _select(context: LookupContext, read: Mapping[str, Value]) -> str:
    """Return the query for all rows."""
    return f"SELECT {', '.join(value.read for value in read.values()) or '1'} FROM {_name(context)} AS t"


def _read(cursor: Any, context: LookupContext, columns: Sequence[Column]) -> dict[str, Value]:
    """Return the SQL expressions for each column; raise RunError if a column is missing or its type does not fit."""
    cursor.execute(f"SHOW COLUMNS FROM {_name(context)}", ())
    types = {row[0]: row[1].decode() if isinstance(row[1], bytes) else str(row[1]) for row in cursor.fetchall()}
    read = {}
    for column in columns:
        actual = types.get(column.name)
        if actual is None:
            raise RunError(
                f"MySQL refused a lookup: the table has no column {column.name!r}",
                hint="declare the columns as the database has them",
                path=f"tables.{context.table}",
            )
        root = parse_type(column.type).root
        base = re.split(r"[( ]", actual, maxsplit=1)[0]
        unsigned = " unsigned" in actual and root != "DECIMAL"
        if base not in _ACCEPTED[root] or unsigned:
            raise RunError(
                f"column {column.name!r} is {column.type} here, but {actual} in MySQL",
                hint="declare a type that holds all values of it",
                path=f"tables.{context.table}",
            )
        name = f"t.{mysql_name(column.name)}"
        # MySQL prints only six digits of a FLOAT, but all digits of a DOUBLE.
        value = f"({name} + 0e0)" if base == "float" else name
        # Without the cast, MySQL would compare as JSON or as UUID, whatever the type of the other operand.
        read[column.name] = Value(read=value, compared=f"CAST({name} AS CHAR)" if base in ("json", "uuid") else value)
    return read


@contextmanager
def _failures(context: LookupContext) -> Iterator[None]:
    """Raise errors of PyMySQL as RunError, or as SourceUnavailable if another attempt may succeed."""
    try:
        yield
    except pymysql.MySQLError as error:
        path, text, code = f"tables.{context.table}", mysql_message(error, context.options), mysql_error_code(error)
        if code in (1969, 3024):
            limit = context.options.get("statement.timeout", "30 s")
            raise SourceUnavailable(
                f"MySQL ended a lookup after {limit}: {text}",
                hint="is there an index on the key columns? 'statement.timeout' sets the limit",
                path=path,
            ) from None
        if is_transient_mysql_error(error):
            raise SourceUnavailable(f"MySQL did not answer a lookup: {text}", path=path) from None
        raise RunError(f"MySQL refused a lookup: {text}", hint=_HINTS.get(code), path=path) from None


def _bound(value: object) -> Any:
    return value.astimezone(UTC).replace(tzinfo=None) if isinstance(value, datetime) and value.tzinfo else value


def _decoding(context: LookupContext, columns: Sequence[Column]) -> Callable[[list[Row]], list[Row]]:
    decoders = [(column.name, _decoder(column)) for column in columns]

    def decoded(name: str, decode: Decoder, value: object) -> Any:
        try:
            return None if value is None else decode(value)
        except ValueError as error:
            raise RunError(
                f"column {name!r} in MySQL holds a value that does not fit: {error}",
                hint="declare the column wide enough",
                path=f"tables.{context.table}",
            ) from None

    return lambda rows: [
        tuple(decoded(*decoder, value) for decoder, value in zip(decoders, row, strict=True)) for row in rows
    ]


def _decoder(column: Column) -> Decoder:
    data_type = parse_type(column.type)
    root = data_type.root
    if root == "BOOLEAN":
        return bool
    if data_type.is_integer:
        return integer_decoder(column.type)
    if root in ("FLOAT", "DOUBLE"):
        return float
    if root == "DECIMAL":
        fit = decimal_decoder(column.type)
        return lambda value: fit(Decimal(value))
    if root == "DATE":
        return lambda value: value if isinstance(value, date) else _misfit(value, data_type)
    if root in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        zone = UTC if root == "TIMESTAMP_LTZ" else None
        return lambda value: value.replace(tzinfo=zone) if isinstance(value, datetime) else _misfit(value, data_type)
    if data_type.is_text:
        return str
    return text_decoder(column.type) if data_type.children else bytes


def _misfit(value: object, data_type: DataType) -> Any:
    raise ValueError(f"{str(value)[:40]!r} is not {data_type.as_nullable()}")
