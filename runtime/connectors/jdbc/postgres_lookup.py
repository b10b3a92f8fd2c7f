"""Lookups in PostgreSQL through psycopg 3: ``'connector' = 'jdbc', 'url' = 'jdbc:postgresql://...'``.

One query looks up many keys. Each Python worker has a pool of connections. Their sessions are read-only, in UTC, and
end a statement after ``statement.timeout``. The first lookup reads the column types of the table. A table or column
that does not fit thus fails before any key is looked up. A lost connection, a timeout and a starting server are
retried. The pool drops all dead connections as soon as one fails.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import psycopg
import pyarrow as pa
from psycopg_pool import AsyncConnectionPool, ConnectionPool, PoolTimeout

from hintplan.plans.connectors.jdbc import ScanPart
from hintplan.plans.declarations.durations import parse_duration
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.jdbc.postgres_connection import (
    REFUSED_HINT,
    connection_settings,
    is_refused,
    is_transient_postgres_error,
)
from hintplan.runtime.connectors.jdbc.postgres_query import KeyQuery, key_query, probe_query, scan_query
from hintplan.runtime.expressions.pushed_filter import PushedFilter
from hintplan.runtime.lookup.api import AsyncLookupFunction, Key, LookupContext, LookupFunction, Row, ScanFunction
from hintplan.runtime.lookup.sources.failures import SourceUnavailable, redacted
from hintplan.runtime.types import to_arrow

_DEFAULTS = {"connection.pool-size": "10", "connection.timeout": "30 s", "statement.timeout": "30 s"}
_DEFAULTS |= {"scan.fetch-size": "10000"}
_HINTS = {
    "42P01": "check 'table-name'; a table outside of the search path is written schema.table",
    "42703": "declare the columns as the database has them",
    "42501": "grant the user SELECT on the table",
    "3F000": "check the schema in 'table-name'",
}


class PostgresLookup(LookupFunction):
    """Answers keys while the caller waits, on one connection."""

    bulk: ClassVar[bool] = True
    retry_on: ClassVar[tuple[type[Exception], ...]] = (SourceUnavailable,)

    def open(self, context: LookupContext) -> None:
        self._context = context
        self._query: KeyQuery | None = None
        self._pool = ConnectionPool(
            kwargs=_connection_settings(context), min_size=0, max_size=1, num_workers=1, open=False,
            timeout=_seconds(context, "connection.timeout"), name=f"lookup {context.table}",
        )  # fmt: skip
        self._pool.open()

    def lookup(self, key: Key) -> Sequence[Row]:
        return self.lookup_many([key])[0]

    def lookup_many(self, keys: Sequence[Key]) -> Sequence[Sequence[Row]]:
        with _failures(self._context):
            if self._query is None:
                with psycopg.connect(**_connection_settings(self._context)) as connection:
                    self._query = key_query(self._context, _probe(connection, self._context))
            parameters = self._query.parameters(keys)
            if parameters is None:
                return [()] * len(keys)
            try:
                with self._pool.connection() as connection:
                    rows = connection.execute(self._query.scan.statement, parameters, binary=True).fetchall()
            except PoolTimeout:
                psycopg.connect(**_connection_settings(self._context)).close()  # raises the reason if this fails, too
                raise
            except psycopg.OperationalError:
                self._pool.check()
                raise
        return self._query.match(keys, rows)

    def close(self) -> None:
        self._pool.close()


class AsyncPostgresLookup(AsyncLookupFunction):
    """Answers keys on up to ``connection.pool-size`` connections."""

    bulk: ClassVar[bool] = True
    retry_on: ClassVar[tuple[type[Exception], ...]] = (SourceUnavailable,)

    async def open(self, context: LookupContext) -> None:
        self._context = context
        self._query: KeyQuery | None = None
        self._probing = asyncio.Lock()
        self._pool = AsyncConnectionPool(
            kwargs=_connection_settings(context), min_size=0, max_size=int(_option(context, "connection.pool-size")),
            open=False, timeout=_seconds(context, "connection.timeout"), name=f"lookup {context.table}",
        )  # fmt: skip
        await self._pool.open()

    async def lookup(self, key: Key) -> Sequence[Row]:
        return (await self.lookup_many([key]))[0]

    async def lookup_many(self, keys: Sequence[Key]) -> Sequence[Sequence[Row]]:
        with _failures(self._context):
            query = self._query or await self._probed()
            parameters = query.parameters(keys)
            if parameters is None:
                return [()] * len(keys)
            try:
                async with self._pool.connection() as connection:
                    cursor = await connection.execute(query.scan.statement, parameters, binary=True)
                    rows = await cursor.fetchall()
            except PoolTimeout:
                await (await psycopg.AsyncConnection.connect(**_connection_settings(self._context))).close()
                raise
            except psycopg.OperationalError:
                await self._pool.check()
                raise
        return query.match(keys, rows)

    async def _probed(self) -> KeyQuery:
        async with self._probing:
            if self._query is None:
                settings = _connection_settings(self._context)
                async with await psycopg.AsyncConnection.connect(**settings) as connection:
                    cursor = await connection.execute(probe_query(self._context), ())
                    self._query = key_query(self._context, _described(cursor))
        return self._query

    async def close(self) -> None:
        await self._pool.close()


class PostgresScan(ScanFunction):
    """Reads the table in one transaction, ``scan.fetch-size`` rows at a time."""

    retry_on: ClassVar[tuple[type[Exception], ...]] = (SourceUnavailable,)

    def scan(self, context: LookupContext) -> Iterator[pa.RecordBatch]:
        return self.scan_part(context, None, None)

    def scan_part(
        self, context: LookupContext, part: ScanPart | None, pushed_filter: PushedFilter | None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of ``part``, or of the whole table, that satisfy the condition ``pushed_filter``."""
        schema = pa.schema([(column.name, to_arrow(column.type)) for column in context.columns])
        with _failures(context), psycopg.connect(**_connection_settings(context)) as connection:
            query, bound = scan_query(context, _probe(connection, context), part, pushed_filter)
            with connection.transaction(), connection.cursor(name="scan", binary=True) as cursor:
                cursor.execute(query.statement, bound)
                while rows := cursor.fetchmany(int(_option(context, "scan.fetch-size"))):
                    values = zip(*query.decode(rows), strict=True)
                    arrays = [pa.array(column, field.type) for column, field in zip(values, schema, strict=True)]
                    yield pa.record_batch(arrays, schema=schema)


@contextmanager
def _failures(context: LookupContext) -> Iterator[None]:
    """Raise errors of psycopg as RunError, or as SourceUnavailable if another attempt may succeed."""
    try:
        yield
    except psycopg.Error as error:
        path = f"tables.{context.table}"
        state = error.sqlstate or ""
        text = error.diag.message_primary or " ".join(str(error).split())
        text = redacted(text, context.options)
        if isinstance(error, PoolTimeout):
            timeout = _option(context, "connection.timeout")
            raise SourceUnavailable(
                f"no connection to PostgreSQL within {timeout}: {text}",
                hint="is the server up? Raise 'connection.pool-size' if all connections were busy",
                path=path,
            ) from None
        if state == "57014":
            raise SourceUnavailable(
                f"PostgreSQL ended a lookup after {_option(context, 'statement.timeout')}: {text}",
                hint="is there an index on the key columns? 'statement.timeout' sets the limit",
                path=path,
            ) from None
        if is_refused(error):
            raise RunError(f"PostgreSQL refused a connection: {text}", hint=REFUSED_HINT, path=path) from None
        if is_transient_postgres_error(error):
            raise SourceUnavailable(f"PostgreSQL did not answer a lookup: {text}", path=path) from None
        raise RunError(f"PostgreSQL refused a lookup: {text}", hint=_HINTS.get(state), path=path) from None


def _connection_settings(context: LookupContext) -> dict[str, Any]:
    milliseconds = parse_duration(_option(context, "statement.timeout"))
    session = f"-c default_transaction_read_only=on -c statement_timeout={milliseconds} -c timezone=UTC"
    return {**connection_settings(context.options, context.table, session), "autocommit": True}


def _probe(connection: psycopg.Connection[Any], context: LookupContext) -> Mapping[str, tuple[int, str]]:
    return _described(connection.execute(probe_query(context), ()))


def _described(cursor: psycopg.Cursor[Any] | psycopg.AsyncCursor[Any]) -> dict[str, tuple[int, str]]:
    return {column.name: (column.type_code, column.type_display) for column in cursor.description or ()}


def _option(context: LookupContext, name: str) -> str:
    return context.options.get(name, _DEFAULTS[name])


def _seconds(context: LookupContext, name: str) -> float:
    return parse_duration(_option(context, name)) / 1000
