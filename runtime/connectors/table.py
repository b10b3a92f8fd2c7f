"""Operations on tables: each calls the code of the table's connector, which it finds by name.

:mod:`hintplan.plans.connectors` defines the options and their meaning; its ``check_table`` has accepted every table
that arrives here. Nothing here starts a query, knows an operator, or keeps a session.

    orders = read(spark, "orders", table, ("o_id", "o_total"))
    query = writer(orders, "result", result, changelog=False).option("checkpointLocation", path).start()
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from hintplan.plans.connectors.table import bounding_option, places, takes_what_is_there
from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors import (
    blackhole,
    dataframe,
    datagen,
    delta,
    filesystem,
    http,
    iceberg,
    jdbc,
    kafka,
    print_sink,
    python,
    redis,
    upsert_kafka,
)
from hintplan.runtime.connectors.connector import ArrowWriter, ConnectorCode, FilesIn, Mark
from hintplan.runtime.connectors.given import NOTHING, Given
from hintplan.runtime.connectors.micro_batch import MicroBatch
from hintplan.runtime.connectors.times import as_texts, checked, times_of
from hintplan.runtime.engine.arrow_rows import ArrowRows
from hintplan.runtime.expressions.pushed_filter import PushedFilter
from hintplan.runtime.lookup.source import LookupSource
from hintplan.runtime.spark.explanation import FailedTables, WrongLine
from hintplan.runtime.storage.pins import PinPlace

CODE: Mapping[str, ConnectorCode] = {
    module.CODE.connector.name: module.CODE
    for module in (
        blackhole,
        dataframe,
        datagen,
        delta,
        filesystem,
        http,
        iceberg,
        jdbc,
        kafka,
        print_sink,
        python,
        redis,
        upsert_kafka,
    )
}


def read(
    spark: SparkSession,
    name: str,
    table: Table,
    columns: tuple[str, ...],
    *,
    row_order: bool = False,
    pins: PinPlace | None = None,
    pushed_filter: PushedFilter | None = None,
    given: Given = NOTHING,
) -> DataFrame:
    """Return the rows of table ``name`` as a stream of exactly the physical ``columns``.

    Their types are the types of ``hintplan.runtime.types``. A changelog adds ``__kind``, and with ``row_order`` also
    the columns of ``ROW_ORDER``.

    - ``pins``: the place where a source that queries another system keeps the answers; None if nothing depends on them.
    - ``pushed_filter``: a condition; rows that do not satisfy it may be omitted.
    - ``given``: the DataFrames and functions of the program that runs the plan.

    Raises RunError if the connector cannot read, or if its source does not exist.
    """
    reader = _able(_code(table, pushed_filter, given).read, "read", name, table)
    return checked(reader(spark, name, as_texts(table), columns, row_order=row_order, pins=pins), name, table)


def read_in_arrow(spark: SparkSession, name: str, table: Table, columns: tuple[str, ...]) -> ArrowRows | None:
    """Return the rows of :func:`read` in Arrow in the workers; None if the connector cannot read them like this."""
    reader = _code(table).read_in_arrow
    return None if reader is None or times_of(table) else reader(spark, name, table, columns)


def read_batch(
    spark: SparkSession,
    name: str,
    table: Table,
    columns: tuple[str, ...],
    *,
    pushed_filter: PushedFilter | None = None,
    given: Given = NOTHING,
) -> DataFrame:
    """Return all current rows of table ``name`` as a batch, otherwise like :func:`read`."""
    reader = _able(_code(table, pushed_filter, given).read_batch, "read", name, table)
    return checked(reader(spark, name, as_texts(table), columns), name, table)


def files_reader(
    table: Table,
) -> Callable[[SparkSession, str, Table, tuple[str, ...], list[str]], DataFrame] | None:
    """Return a function like :func:`read_batch` for some files of the table; None if the table has no files."""
    reader = _code(table).read_files
    if reader is None or not times_of(table):
        return reader

    def read_files(spark: SparkSession, name: str, table: Table, columns: tuple[str, ...], of: list[str]) -> DataFrame:
        return checked(reader(spark, name, as_texts(table), columns, of), name, table)

    return read_files


def failed_tables(spark: SparkSession, tables: Mapping[str, Table]) -> FailedTables:
    """Return the facts about ``tables`` that explain the failure of a query that reads or writes them."""
    servers = {
        name: [str(place) for place in places(table) if place.option.endswith("bootstrap.servers")]
        for name, table in tables.items()
    }
    brokers = tuple(f"table {name} ({', '.join(addresses)})" for name, addresses in servers.items() if addresses)
    return FailedTables(wrong_line=partial(wrong_line, spark, tables), brokers=brokers)


def wrong_line(spark: SparkSession, tables: Mapping[str, Table], file: str) -> WrongLine | None:
    """Return the first line of ``file`` that does not fit its table; None if there is no such line."""
    for table in tables.values():
        find = _code(table).wrong_line
        line = find(spark, as_texts(table), file) if find is not None else None
        if line is not None:
            return line
    return None


def writer(
    df: DataFrame,
    name: str,
    table: Table,
    *,
    changelog: bool,
    checkpoint: str | None = None,
    mark: Mark | None = None,
    given: Given = NOTHING,
) -> DataStreamWriter:
    """Return a writer of ``df`` into table ``name``, not started, and without a name, checkpoint and trigger.

    - ``changelog``: the last column of ``df`` is the row kind.
    - ``checkpoint``: the checkpoint location that the caller will set; a sink may need it to detect a replayed batch.
    - ``mark``: called by sinks that support it after each batch that has changed the table.

    Raises RunError if the connector cannot write, or if its target does not fit.
    """
    connector_writer = _able(_code(table, given=given).writer, "written to", name, table)
    return connector_writer(
        df, name, as_texts(table), changelog=changelog, checkpoint=checkpoint, **_marking(table, mark)
    )


def arrow_writer(table: Table, *, mark: Mark | None = None) -> ArrowWriter | None:
    """Return a function like :func:`writer` for rows in Arrow; None if the sink needs Spark's rows."""
    connector_writer = _code(table).arrow_writer
    if connector_writer is None:
        return None

    def write(
        rows: ArrowRows, name: str, table: Table, *, checkpoint: str | None
    ) -> tuple[ArrowRows, Callable[[DataFrame], DataStreamWriter]]:
        return connector_writer(rows, name, as_texts(table), checkpoint=checkpoint, **_marking(table, mark))

    return write


def micro_batch_writer(
    name: str,
    table: Table,
    *,
    changelog: bool,
    checkpoint: str,
    part: str,
    mark: Mark | None = None,
    given: Given = NOTHING,
) -> Callable[[MicroBatch, int], int]:
    """Return a function that writes a micro-batch to table ``name``, for a query with several sinks.

    It returns the number of rows. ``part`` distinguishes the sinks of the query; otherwise like :func:`writer`.
    """
    connector_writer = _able(_code(table, given=given).micro_batch_writer, "written to", name, table)
    return connector_writer(
        name, as_texts(table), changelog=changelog, checkpoint=checkpoint, part=part, **_marking(table, mark)
    )


def batch_writer(df: DataFrame, name: str, table: Table, given: Given = NOTHING) -> Callable[[], None]:
    """Return a function that writes all rows of the insert-only ``df`` to table ``name``, in a Spark job of its own.

    A failed call leaves no rows of ``df`` in the table. Raises RunError immediately if the connector cannot write, or
    if its target does not fit.
    """
    return _able(_code(table, given=given).batch_writer, "written to", name, table)(df, name, as_texts(table))


def batch_overwriter(df: DataFrame, name: str, table: Table) -> Callable[[], None]:
    """Return a function like :func:`batch_writer`, which replaces the existing rows.

    With PARTITIONED BY, it replaces only the partitions to which it writes. A call that fails before all rows are
    written removes nothing.
    """
    return _able(_code(table).batch_overwriter, "overwritten", name, table)(df, name, as_texts(table))


def counts_all(table: Table) -> bool:
    """Return true if :func:`batches_had` counts each micro-batch, even a batch without changes."""
    return _code(table).counts_all(table)


def batches_had(table: Table, writer: Callable[[], str | None], files_in: FilesIn) -> int:
    """Return the last micro-batch that the sink has committed, or -1 if it has none or does not count them.

    ``writer`` returns the name under which the sink knows the query, or None while the query has no name.
    """
    had = _code(table).batches_had
    return -1 if had is None else had(table, writer, files_in)


def lacks(spark: SparkSession, table: Table, writer: Callable[[], str | None], had: Mapping[str, Any]) -> str | None:
    """Return the part of ``had`` that the sink lacks, as the predicate of a sentence about it, or None."""
    find_losses = _code(table).lacks
    return None if find_losses is None else find_losses(spark, table, writer, had)


def _marking(table: Table, mark: Mark | None) -> dict[str, Any]:
    return {"mark": mark} if mark is not None and _code(table).lacks is not None else {}


def lookup_source(options: Mapping[str, str]) -> LookupSource:
    """Return the lookup source for a table with these ``options``, whose connector must support lookups."""
    lookup = CODE[options["connector"]].lookup
    assert lookup is not None
    return lookup(options)


def refuse_unbounded(name: str, table: Table) -> None:
    """Raise RunError if table ``name`` is unbounded, so that a run that stops after all rows would not stop."""
    if not takes_what_is_there(table):
        option = bounding_option(table)
        raise RunError(
            f"table {name} generates rows without end, so a run that takes what is there and stops cannot read it",
            hint=f"set '{option}', or run without --once",
            path=f"tables.{name}.options.{option}",
        )


def _code(table: Table, pushed_filter: PushedFilter | None = None, given: Given = NOTHING) -> ConnectorCode:
    code = CODE[table.options["connector"]]
    if code.handed is not None:
        return code.handed(given)
    return code if pushed_filter is None or code.asking is None else code.asking(pushed_filter)


_Way = TypeVar("_Way")


def _able(way: _Way | None, verb: str, name: str, table: Table) -> _Way:
    if way is None:
        connector = table.options["connector"]
        raise RunError(f"table {name} cannot be {verb}: its connector is {connector!r}", path=f"tables.{name}")
    return way
