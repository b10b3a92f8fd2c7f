"""The jdbc connector: sources, sinks and lookups in SQLite, PostgreSQL, MySQL and MariaDB."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.utils import is_remote

from hintplan.plans.connectors.jdbc import JDBC, MYSQL_URLS, POSTGRES_URL, SQLITE_URL
from hintplan.plans.declarations.tables import Table
from hintplan.runtime.connectors.connector import (
    BatchWriter,
    CheckedSink,
    CountingSink,
    FilesIn,
    LookupTable,
    QueryId,
    SinkFacts,
    StreamSource,
    TableRead,
    TableWrite,
    refuse_keyless_updates,
)
from hintplan.runtime.connectors.jdbc import scan
from hintplan.runtime.connectors.jdbc.mysql import Mysql
from hintplan.runtime.connectors.jdbc.postgres import Postgres
from hintplan.runtime.connectors.jdbc.server_sink import ServerSink
from hintplan.runtime.connectors.jdbc.sink import DatabaseBatch, DatabaseSink
from hintplan.runtime.connectors.jdbc.sqlite_sink import SqliteSink
from hintplan.runtime.engine.each_batch import written_by
from hintplan.runtime.lookup.source import LookupSource

__all__ = ["CODE"]

_DATABASES: Mapping[str, DatabaseSink] = {
    SQLITE_URL: SqliteSink(),
    POSTGRES_URL: ServerSink(dialect=Postgres()),
    **dict.fromkeys(MYSQL_URLS, ServerSink(dialect=Mysql())),
}
"""The databases by the start of their URLs."""


class JdbcCode(StreamSource, CountingSink, CheckedSink, LookupTable):
    """Tables of databases."""

    connector = JDBC

    def read_stream(self, read: TableRead) -> DataFrame:
        """Return the rows that satisfy the pushed-down filter, as a stream with a single micro-batch."""
        return scan.stream_of_parts(read, self.lookup_source(read.table.options))

    def read_batch(self, read: TableRead) -> DataFrame:
        """Return the rows that satisfy the pushed-down filter."""
        return scan.batch_of_parts(read, self.lookup_source(read.table.options))

    def stream_writer(self, write: TableWrite, rows: DataFrame) -> DataStreamWriter:
        return written_by(_checked_batch(write), rows, write.checkpoint)

    def micro_batch_writer(self, write: TableWrite) -> BatchWriter:
        return _checked_batch(write).write_micro_batch

    def batch_writer(self, write: TableWrite, rows: DataFrame) -> Callable[[], None]:
        """Return a function that writes all rows in one transaction."""
        batch = _database(write.table.options).batch(write)
        batch.check()
        return partial(batch.write_all, rows)

    def last_batch(self, table: Table, query: QueryId, files_in: FilesIn) -> int:
        return _database(table.options).last_batch(table, query)

    def counts_every_batch(self, table: Table) -> bool:
        """Return true for a table without a primary key, whose batches the database remembers."""
        return not table.primary_key

    def missing(self, spark: SparkSession, table: Table, query: QueryId, facts: SinkFacts) -> str | None:
        return _database(table.options).missing(table, query, facts)

    def lookup_source(self, options: Mapping[str, str]) -> LookupSource:
        return _database(options).dialect.lookup


def _checked_batch(write: TableWrite) -> DatabaseBatch:
    """Return the writer of micro-batches, after checking the table; Spark Connect leaves the check to the server."""
    refuse_keyless_updates(write)
    batch = _database(write.table.options).batch(write)
    if not is_remote():
        batch.check()
    return batch


def _database(options: Mapping[str, str]) -> DatabaseSink:
    return next(database for start, database in _DATABASES.items() if options["url"].startswith(start))


CODE = JdbcCode()
