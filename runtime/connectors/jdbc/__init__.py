"""The jdbc connector: sources, sinks and lookups in SQLite, PostgreSQL, MySQL and MariaDB."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from types import ModuleType
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from hintplan.plans.connectors.jdbc import JDBC, MYSQL_URLS, SQLITE_URL
from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.connector import ConnectorCode, FilesIn, Mark
from hintplan.runtime.connectors.jdbc import scan, server_write, write
from hintplan.runtime.connectors.micro_batch import MicroBatch
from hintplan.runtime.expressions.pushed_filter import PushedFilter
from hintplan.runtime.lookup.source import LookupSource, source_of_classes
from hintplan.runtime.storage.pins import PinPlace

__all__ = ["CODE"]

_POSTGRES = source_of_classes(
    "jdbc:postgresql",
    f"{__name__}.postgres_lookup",
    {"sync": "PostgresLookup", "async": "AsyncPostgresLookup", "full": "PostgresScan"},
    extra="postgres",
    packages=("psycopg", "psycopg_pool"),
)
_MYSQL = source_of_classes(
    "jdbc:mysql",
    f"{__name__}.mysql_lookup",
    {"sync": "MysqlLookup", "full": "MysqlScan"},
    extra="mysql",
    packages=("pymysql",),
)
_SQLITE = source_of_classes("jdbc:sqlite", f"{__name__}.sqlite_lookup", {"sync": "SqliteLookup", "full": "SqliteScan"})


def _lookup(options: Mapping[str, str]) -> LookupSource:
    if options["url"].startswith(SQLITE_URL):
        return _SQLITE
    return _MYSQL if options["url"].startswith(MYSQL_URLS) else _POSTGRES


def _read(
    spark: SparkSession,
    name: str,
    table: Table,
    columns: tuple[str, ...],
    *,
    row_order: bool = False,
    pins: PinPlace | None = None,
    pushed_filter: PushedFilter | None = None,
) -> DataFrame:
    return scan.read(spark, name, table, columns, _lookup(table.options), pins, pushed_filter)


def _read_batch(
    spark: SparkSession, name: str, table: Table, columns: tuple[str, ...], *, pushed_filter: PushedFilter | None = None
) -> DataFrame:
    return scan.read_batch(spark, name, table, columns, _lookup(table.options), pushed_filter)


def _asking(pushed_filter: PushedFilter) -> ConnectorCode:
    return replace(
        CODE,
        read=partial(_read, pushed_filter=pushed_filter),
        read_batch=partial(_read_batch, pushed_filter=pushed_filter),
    )


def _sink(table: Table) -> ModuleType:
    """Return the module that writes to the table: for SQLite, or for database servers."""
    return write if table.options["url"].startswith(SQLITE_URL) else server_write


def _writer(
    df: DataFrame, name: str, table: Table, *, changelog: bool, checkpoint: str | None, mark: Mark | None = None
) -> DataStreamWriter:
    _refuse_updates(name, table, changelog=changelog)
    stream_writer: DataStreamWriter = _sink(table).writer(df, name, table, checkpoint=checkpoint, mark=mark)
    return stream_writer


def _micro_batch_writer(
    name: str, table: Table, *, changelog: bool, checkpoint: str | None, part: str, mark: Mark | None = None
) -> Callable[[MicroBatch, int], int]:
    _refuse_updates(name, table, changelog=changelog)
    write_batch: Callable[[MicroBatch, int], int] = _sink(table).micro_batch_writer(
        name, table, checkpoint=checkpoint, part=part, mark=mark
    )
    return write_batch


def _refuse_updates(name: str, table: Table, *, changelog: bool) -> None:
    if changelog and not table.primary_key:
        raise RunError(
            f"table {name} cannot take updates: it has no primary key to find rows by",
            hint="declare PRIMARY KEY (...) NOT ENFORCED",
            path=f"tables.{name}",
        )


def _batch_writer(df: DataFrame, name: str, table: Table) -> Callable[[], None]:
    write_rows: Callable[[], None] = _sink(table).batch_writer(df, name, table)
    return write_rows


def _batches_had(table: Table, writer: Callable[[], str | None], files_in: FilesIn) -> int:
    had: int = _sink(table).batches_had(table, writer, files_in)
    return had


def _lacks(spark: SparkSession, table: Table, writer: Callable[[], str | None], had: Mapping[str, Any]) -> str | None:
    lacking: str | None = _sink(table).lacks(table, writer, had)
    return lacking


CODE = ConnectorCode(
    connector=JDBC,
    read=_read,
    read_batch=_read_batch,
    asking=_asking,
    writer=_writer,
    micro_batch_writer=_micro_batch_writer,
    batch_writer=_batch_writer,
    batches_had=_batches_had,
    counts_all=lambda table: not table.primary_key,
    lacks=_lacks,
    lookup=_lookup,
)
