"""Connectors on Spark: how a table of a plan is read as a stream, and how a stream is written to one.

One module a connector; the two registries below are the only place that lists them. What options mean and which are
allowed is :mod:`plans.connectors`'s business, and tables have passed its ``check_table`` before they come here. Nothing
here starts a query, knows an operator, or keeps a session.

    orders = read(spark, "orders", table, ("o_id", "o_total"))
    query = writer(orders, "result", result, changelog=False).option("checkpointLocation", path).start()
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from plans.errors import RunError
from plans.model import Table
from runtime.connectors import blackhole, datagen, filesystem, jdbc, print_sink

__all__ = ["READERS", "WRITERS", "read", "refuse_unbounded", "writer"]


class Writer(Protocol):
    """Configures a sink; ``changelog`` says that ``df`` ends with the row kind column."""

    def __call__(
        self, df: DataFrame, name: str, table: Table, *, changelog: bool, checkpoint: str | None
    ) -> DataStreamWriter: ...


READERS: Mapping[str, Callable[[SparkSession, str, Table, tuple[str, ...]], DataFrame]] = {
    "datagen": datagen.read,
    "filesystem": filesystem.read,
}

WRITERS: Mapping[str, Writer] = {
    "blackhole": blackhole.writer,
    "filesystem": filesystem.writer,
    "jdbc": jdbc.writer,
    "print": print_sink.writer,
}


def read(spark: SparkSession, name: str, table: Table, columns: tuple[str, ...]) -> DataFrame:
    """The rows of table ``name`` as a stream of exactly the physical ``columns``, with the types of ``runtime.types``.

    RunError if the connector cannot be read, or if what it should read does not exist.
    """
    connector = table.options["connector"]
    if connector not in READERS:
        raise RunError(f"table {name} cannot be read: its connector is {connector!r}", path=f"tables.{name}")
    return READERS[connector](spark, name, table, columns)


def writer(
    df: DataFrame, name: str, table: Table, *, changelog: bool, checkpoint: str | None = None
) -> DataStreamWriter:
    """A writer of ``df`` into table ``name``, configured but for name, checkpoint and trigger, and not started.

    ``changelog`` says whether the last column of ``df`` is the row kind. ``checkpoint`` is the checkpoint location that
    the caller will set; a sink may need it to tell a replayed batch from a new one. RunError if the connector cannot
    be written to or its target does not fit.
    """
    connector = table.options["connector"]
    if connector not in WRITERS:
        raise RunError(f"table {name} cannot be written to: its connector is {connector!r}", path=f"tables.{name}")
    return WRITERS[connector](df, name, table, changelog=changelog, checkpoint=checkpoint)


def refuse_unbounded(name: str, table: Table) -> None:
    """RunError if table ``name`` never ends, so that a run that stops when all is read would not stop."""
    if table.options["connector"] == "datagen" and datagen.is_unbounded(table):
        raise RunError(
            f"table {name} generates rows without end, so a run that takes what is there and stops cannot read it",
            hint="set 'number-of-rows', or run without --once",
            path=f"tables.{name}.options.number-of-rows",
        )
