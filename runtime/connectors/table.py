"""The connectors' code by name, and what is done with a table: its connector does it, which nothing here names.

What options mean and which are allowed is :mod:`hintplan.plans.connectors`' business, and tables have passed its
``check_table`` before they come here. Nothing here starts a query, knows an operator, or keeps a session.

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
from hintplan.runtime.expressions.asked import Asked
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
    asked: Asked | None = None,
    given: Given = NOTHING,
) -> DataFrame:
    """The rows of table ``name`` as a stream of exactly the physical ``columns``, with the types of
    ``hintplan.runtime.types``.

    A changelog has ``__kind`` behind them, and with ``row_order`` also the columns of ``ROW_ORDER``. ``pins`` is where
    a source that asks another system keeps what it was told; None if nothing depends on that. Rows for which ``asked``
    is not true may be left out. ``given`` is what the program has handed over that runs the plan.
    RunError if the connector cannot be read, or if what it should read does not exist.
    """
    reader = _able(_code(table, asked, given).read, "read", name, table)
    return checked(reader(spark, name, as_texts(table), columns, row_order=row_order, pins=pins), name, table)


def read_in_arrow(spark: SparkSession, name: str, table: Table, columns: tuple[str, ...]) -> ArrowRows | None:
    """The rows that :func:`read` would give, in Arrow in the workers; None if they cannot be had like that."""
    reader = _code(table).read_in_arrow
    return None if reader is None or times_of(table) else reader(spark, name, table, columns)


def read_batch(
    spark: SparkSession,
    name: str,
    table: Table,
    columns: tuple[str, ...],
    *,
    asked: Asked | None = None,
    given: Given = NOTHING,
) -> DataFrame:
    """All rows that table ``name`` has now; otherwise as :func:`read`."""
    reader = _able(_code(table, asked, given).read_batch, "read", name, table)
    return checked(reader(spark, name, as_texts(table), columns), name, table)


def files_reader(
    table: Table,
) -> Callable[[SparkSession, str, Table, tuple[str, ...], list[str]], DataFrame] | None:
    """What reads some files of the table only, as :func:`read_batch` reads all of them; None if it has no files."""
    reader = _code(table).read_files
    if reader is None or not times_of(table):
        return reader

    def read_files(spark: SparkSession, name: str, table: Table, columns: tuple[str, ...], of: list[str]) -> DataFrame:
        return checked(reader(spark, name, as_texts(table), columns, of), name, table)

    return read_files


def failed_tables(spark: SparkSession, tables: Mapping[str, Table]) -> FailedTables:
    """What is told of ``tables`` if a query that reads or writes them fails."""
    servers = {
        name: [str(place) for place in places(table) if place.option.endswith("bootstrap.servers")]
        for name, table in tables.items()
    }
    brokers = tuple(f"table {name} ({', '.join(found)})" for name, found in servers.items() if found)
    return FailedTables(wrong_line=partial(wrong_line, spark, tables), brokers=brokers)


def wrong_line(spark: SparkSession, tables: Mapping[str, Table], file: str) -> WrongLine | None:
    """The first line of ``file`` that does not fit its table; None if there is none to be found."""
    for table in tables.values():
        find = _code(table).wrong_line
        found = find(spark, as_texts(table), file) if find is not None else None
        if found is not None:
            return found
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
    """A writer of ``df`` into table ``name``, configured but for name, checkpoint and trigger, and not started.

    ``changelog`` says whether the last column of ``df`` is the row kind. ``checkpoint`` is the checkpoint location that
    the caller will set; a sink may need it to tell a replayed batch from a new one. A sink that can say what it has
    calls ``mark`` when a batch has changed it. RunError if the connector cannot be written to or its target does not
    fit.
    """
    chosen = _able(_code(table, given=given).writer, "written to", name, table)
    return chosen(df, name, as_texts(table), changelog=changelog, checkpoint=checkpoint, **_marking(table, mark))


def arrow_writer(table: Table, *, mark: Mark | None = None) -> ArrowWriter | None:
    """What writes rows that are in Arrow, as :func:`writer` writes those of Spark; None if the sink wants Spark's."""
    chosen = _code(table).arrow_writer
    if chosen is None:
        return None

    def write(
        rows: ArrowRows, name: str, table: Table, *, checkpoint: str | None
    ) -> tuple[ArrowRows, Callable[[DataFrame], DataStreamWriter]]:
        return chosen(rows, name, as_texts(table), checkpoint=checkpoint, **_marking(table, mark))

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
    """What writes one micro-batch into table ``name`` and returns its number of rows, for a query with several sinks.

    ``part`` is this sink among them; otherwise as :func:`writer`.
    """
    chosen = _able(_code(table, given=given).micro_batch_writer, "written to", name, table)
    return chosen(name, as_texts(table), changelog=changelog, checkpoint=checkpoint, part=part, **_marking(table, mark))


def batch_writer(df: DataFrame, name: str, table: Table, given: Given = NOTHING) -> Callable[[], None]:
    """What writes all of ``df``, which is insert-only, into table ``name`` when it is called, in a job of its own.

    A call that fails leaves nothing of ``df`` in the table. RunError, now, if the connector cannot be written to or its
    target does not fit.
    """
    return _able(_code(table, given=given).batch_writer, "written to", name, table)(df, name, as_texts(table))


def batch_overwriter(df: DataFrame, name: str, table: Table) -> Callable[[], None]:
    """As :func:`batch_writer`, in place of the rows that are there: of the whole table if it is not PARTITIONED BY.

    Otherwise of the partitions that rows are written to. A call that fails before all rows are written takes nothing
    away.
    """
    return _able(_code(table).batch_overwriter, "overwritten", name, table)(df, name, as_texts(table))


def counts_all(table: Table) -> bool:
    """Whether :func:`batches_had` counts each micro-batch, those that change nothing among them."""
    return _code(table).counts_all(table)


def batches_had(table: Table, writer: Callable[[], str | None], files_in: FilesIn) -> int:
    """The last micro-batch that the sink has had, -1 if it does not count them or has had none.

    ``writer`` is what the sink knows the query by that writes to it, None while that has no name.
    """
    had = _code(table).batches_had
    return -1 if had is None else had(table, writer, files_in)


def lacks(spark: SparkSession, table: Table, writer: Callable[[], str | None], had: Mapping[str, Any]) -> str | None:
    """Return what the sink lacks of what it ``had``, by its mark, as the rest of a sentence; None if it has all."""
    found = _code(table).lacks
    return None if found is None else found(spark, table, writer, had)


def _marking(table: Table, mark: Mark | None) -> dict[str, Any]:
    return {"mark": mark} if mark is not None and _code(table).lacks is not None else {}


def lookup_source(options: Mapping[str, str]) -> LookupSource:
    """The source of lookups in a table with these ``options``, whose connector looks up."""
    lookup = CODE[options["connector"]].lookup
    assert lookup is not None
    return lookup(options)


def refuse_unbounded(name: str, table: Table) -> None:
    """RunError if table ``name`` never ends, so that a run that stops when all is read would not stop."""
    if not takes_what_is_there(table):
        option = bounding_option(table)
        raise RunError(
            f"table {name} generates rows without end, so a run that takes what is there and stops cannot read it",
            hint=f"set '{option}', or run without --once",
            path=f"tables.{name}.options.{option}",
        )


def _code(table: Table, asked: Asked | None = None, given: Given = NOTHING) -> ConnectorCode:
    code = CODE[table.options["connector"]]
    if code.handed is not None:
        return code.handed(given)
    return code if asked is None or code.asking is None else code.asking(asked)


_Way = TypeVar("_Way")


def _able(way: _Way | None, verb: str, name: str, table: Table) -> _Way:
    if way is None:
        connector = table.options["connector"]
        raise RunError(f"table {name} cannot be {verb}: its connector is {connector!r}", path=f"tables.{name}")
    return way
