"""Connectors on Spark: how a table of a plan is read, and how rows are written to one, as a stream and in batch mode.

One module a connector; the registries below are the only place that lists them. What options mean and which are allowed
is :mod:`plans.connectors.table`'s business, and tables have passed its ``check_table`` before they come here. Nothing
here starts a query, knows an operator, or keeps a session.

    orders = read(spark, "orders", table, ("o_id", "o_total"))
    query = writer(orders, "result", result, changelog=False).option("checkpointLocation", path).start()
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from plans.declarations.tables import Table
from plans.errors import RunError
from runtime.connectors import blackhole, datagen, filesystem, jdbc, print_sink
from runtime.engine.arrow_rows import ArrowRows

__all__ = [
    "ARROW_READERS",
    "BATCH_READERS",
    "BATCH_WRITERS",
    "MICRO_BATCH_WRITERS",
    "READERS",
    "WRITERS",
    "batch_writer",
    "drops_rows",
    "micro_batch_writer",
    "read",
    "read_batch",
    "read_in_arrow",
    "refuse_unbounded",
    "writer",
]


class Writer(Protocol):
    """Configures a sink; ``changelog`` says that ``df`` ends with the row kind column."""

    def __call__(
        self, df: DataFrame, name: str, table: Table, *, changelog: bool, checkpoint: str | None
    ) -> DataStreamWriter: ...


READERS: Mapping[str, Callable[..., DataFrame]] = {
    "datagen": datagen.read,
    "filesystem": filesystem.read,
}

ARROW_READERS: Mapping[str, Callable[[SparkSession, str, Table, tuple[str, ...]], ArrowRows | None]] = {
    "filesystem": filesystem.read_in_arrow,
}

WRITERS: Mapping[str, Writer] = {
    "blackhole": blackhole.writer,
    "filesystem": filesystem.writer,
    "jdbc": jdbc.writer,
    "print": print_sink.writer,
}

MICRO_BATCH_WRITERS: Mapping[str, Callable[..., Callable[[DataFrame, int], int]]] = {
    "blackhole": blackhole.micro_batch_writer,
    "jdbc": jdbc.micro_batch_writer,
    "print": print_sink.micro_batch_writer,
}

BATCH_READERS: Mapping[str, Callable[[SparkSession, str, Table, tuple[str, ...]], DataFrame]] = {
    "datagen": datagen.read_batch,
    "filesystem": filesystem.read_batch,
}

BATCH_WRITERS: Mapping[str, Callable[[DataFrame, str, Table], Callable[[], None]]] = {
    "blackhole": blackhole.batch_writer,
    "filesystem": filesystem.batch_writer,
    "jdbc": jdbc.batch_writer,
    "print": print_sink.batch_writer,
}


def read(
    spark: SparkSession, name: str, table: Table, columns: tuple[str, ...], *, row_order: bool = False
) -> DataFrame:
    """The rows of table ``name`` as a stream of exactly the physical ``columns``, with the types of ``runtime.types``.

    A changelog has ``__kind`` behind them, and with ``row_order`` also the columns of ``ROW_ORDER``.
    RunError if the connector cannot be read, or if what it should read does not exist.
    """
    chosen = _chosen(READERS, "read", name, table)
    return chosen(spark, name, table, columns, **({"row_order": True} if row_order else {}))


def read_in_arrow(spark: SparkSession, name: str, table: Table, columns: tuple[str, ...]) -> ArrowRows | None:
    """The rows that :func:`read` would give, in Arrow in the workers; None if they cannot be had like that."""
    reader = ARROW_READERS.get(table.options["connector"])
    return None if reader is None else reader(spark, name, table, columns)


def read_batch(spark: SparkSession, name: str, table: Table, columns: tuple[str, ...]) -> DataFrame:
    """All rows that table ``name`` has now; otherwise as :func:`read`."""
    return _chosen(BATCH_READERS, "read", name, table)(spark, name, table, columns)


def writer(
    df: DataFrame, name: str, table: Table, *, changelog: bool, checkpoint: str | None = None
) -> DataStreamWriter:
    """A writer of ``df`` into table ``name``, configured but for name, checkpoint and trigger, and not started.

    ``changelog`` says whether the last column of ``df`` is the row kind. ``checkpoint`` is the checkpoint location that
    the caller will set; a sink may need it to tell a replayed batch from a new one. RunError if the connector cannot
    be written to or its target does not fit.
    """
    chosen = _chosen(WRITERS, "written to", name, table)
    return chosen(df, name, table, changelog=changelog, checkpoint=checkpoint)


def drops_rows(table: Table) -> bool:
    """Whether the sink does nothing with rows, so that they need not be Spark's."""
    return WRITERS.get(table.options["connector"]) is blackhole.writer


def micro_batch_writer(
    name: str, table: Table, *, changelog: bool, checkpoint: str, part: str
) -> Callable[[DataFrame, int], int]:
    """What writes one micro-batch into table ``name`` and returns its number of rows, for a query with several sinks.

    ``part`` is this sink among them; otherwise as :func:`writer`.
    """
    chosen = _chosen(MICRO_BATCH_WRITERS, "written to", name, table)
    return chosen(name, table, changelog=changelog, checkpoint=checkpoint, part=part)


def batch_writer(df: DataFrame, name: str, table: Table) -> Callable[[], None]:
    """What writes all of ``df``, which is insert-only, into table ``name`` when it is called, in a job of its own.

    A call that fails leaves nothing of ``df`` in the table. RunError, now, if the connector cannot be written to or its
    target does not fit.
    """
    return _chosen(BATCH_WRITERS, "written to", name, table)(df, name, table)


_Entry = TypeVar("_Entry")


def _chosen(registry: Mapping[str, _Entry], verb: str, name: str, table: Table) -> _Entry:
    connector = table.options["connector"]
    if connector not in registry:
        raise RunError(f"table {name} cannot be {verb}: its connector is {connector!r}", path=f"tables.{name}")
    return registry[connector]


def refuse_unbounded(name: str, table: Table) -> None:
    """RunError if table ``name`` never ends, so that a run that stops when all is read would not stop."""
    if table.options["connector"] == "datagen" and datagen.is_unbounded(table):
        raise RunError(
            f"table {name} generates rows without end, so a run that takes what is there and stops cannot read it",
            hint="set 'number-of-rows', or run without --once",
            path=f"tables.{name}.options.number-of-rows",
        )
