"""Operations on tables: each finds the code of the table's connector by name, and checks that it has the ability.

:mod:`hintplan.plans.connectors` defines the options and their meaning; its ``check_table`` has accepted every table
that arrives here. Connectors get TIME columns as text; this module checks the texts that they read. Nothing here starts
a query, knows an operator, or keeps a session.

    orders = read_stream(spark, "orders", table, ("o_id", "o_total"))
    query = stream_writer(orders, "result", result, changelog=False).option("checkpointLocation", path).start()
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from hintplan.plans.connectors.table import bounding_option, places, takes_what_is_there, why_spark_reads
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
from hintplan.runtime.connectors.columns import as_texts, check_times
from hintplan.runtime.connectors.connector import (
    ArrowSink,
    ArrowSource,
    BatchWriter,
    CheckedSink,
    ConnectorCode,
    CountingSink,
    FilesIn,
    FileSource,
    LookupTable,
    Mark,
    OverwritingSink,
    QueryId,
    SinkFacts,
    StreamSource,
    TableRead,
    TableSink,
    TableSource,
    TableWrite,
)
from hintplan.runtime.connectors.program_objects import NO_OBJECTS, ProgramObjects
from hintplan.runtime.engine.rows import ArrowRows
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


def read_stream(
    spark: SparkSession,
    name: str,
    table: Table,
    columns: tuple[str, ...],
    *,
    row_order: bool = False,
    splits: bool = False,
    last_row: bool = False,
    pins: PinPlace | None = None,
    pushed_filter: PushedFilter | None = None,
    objects: ProgramObjects = NO_OBJECTS,
) -> DataFrame:
    """Return the rows of table ``name`` as a stream of exactly the physical ``columns``.

    :class:`~hintplan.runtime.connectors.connector.TableRead` describes the arguments. The columns have the types of
    ``hintplan.runtime.types``. A changelog adds ``__kind``, and with ``row_order`` also the columns of ``ROW_ORDER``;
    ``splits`` adds ``SPLIT``, and ``last_row`` adds ``LAST``.

    Raises RunError if the connector cannot read, or if its source does not exist.
    """
    source = _code(table)
    if not isinstance(source, StreamSource):
        raise _unable("read", name, table)
    read = TableRead(
        spark=spark, name=name, table=as_texts(table), columns=columns,
        row_order=row_order, splits=splits, last_row=last_row, pins=pins, pushed_filter=pushed_filter, objects=objects,
    )  # fmt: skip
    return check_times(source.read_stream(read), name, table)


def why_not_in_arrow(spark: SparkSession, name: str, table: Table, columns: tuple[str, ...]) -> str | None:
    """Return the reason why only Spark can read the table, or None if workers can read it in Arrow."""
    source = _code(table)
    if not isinstance(source, ArrowSource):
        return "its connector has no reader in Arrow"
    reason = why_spark_reads(table, columns)
    return reason or source.why_spark_reads(TableRead(spark=spark, name=name, table=table, columns=columns))


def read_in_arrow(
    spark: SparkSession,
    name: str,
    table: Table,
    columns: tuple[str, ...],
    *,
    row_order: bool = False,
    splits: bool = False,
) -> ArrowRows:
    """Return the rows of :func:`read_stream` in Arrow in the workers; :func:`why_not_in_arrow` has found no reason."""
    source = _code(table)
    if not isinstance(source, ArrowSource):
        raise _unable("read in Arrow", name, table)
    read = TableRead(spark=spark, name=name, table=table, columns=columns, row_order=row_order, splits=splits)
    return source.read_in_arrow(read)


def read_batch(
    spark: SparkSession,
    name: str,
    table: Table,
    columns: tuple[str, ...],
    *,
    pushed_filter: PushedFilter | None = None,
    objects: ProgramObjects = NO_OBJECTS,
) -> DataFrame:
    """Return all current rows of table ``name`` as a batch, otherwise like :func:`read_stream`."""
    source = _code(table)
    if not isinstance(source, TableSource):
        raise _unable("read", name, table)
    read = TableRead(
        spark=spark, name=name, table=as_texts(table), columns=columns, pushed_filter=pushed_filter, objects=objects
    )
    return check_times(source.read_batch(read), name, table)


def files_reader(
    table: Table,
) -> Callable[[SparkSession, str, Table, tuple[str, ...], list[str]], DataFrame] | None:
    """Return a function like :func:`read_batch` for some files of the table; None if the table has no files."""
    source = _code(table)
    if not isinstance(source, FileSource):
        return None

    def read_files(
        spark: SparkSession, name: str, table: Table, columns: tuple[str, ...], files: list[str]
    ) -> DataFrame:
        read = TableRead(spark=spark, name=name, table=as_texts(table), columns=columns)
        return check_times(source.read_files(read, files), name, table)

    return read_files


def failed_tables(spark: SparkSession, tables: Mapping[str, Table]) -> FailedTables:
    """Return the facts about ``tables`` that explain the failure of a query that reads or writes them."""
    servers = {
        name: [str(place) for place in places(table) if place.option.endswith("bootstrap.servers")]
        for name, table in tables.items()
    }
    brokers = tuple(f"table {name} ({', '.join(addresses)})" for name, addresses in servers.items() if addresses)
    return FailedTables(wrong_line=partial(find_wrong_line, spark, tables), brokers=brokers)


def find_wrong_line(spark: SparkSession, tables: Mapping[str, Table], file: str) -> WrongLine | None:
    """Return the first line of ``file`` that does not fit its table; None if there is no such line."""
    for table in tables.values():
        source = _code(table)
        line = source.find_wrong_line(spark, as_texts(table), file) if isinstance(source, FileSource) else None
        if line is not None:
            return line
    return None


def stream_writer(
    rows: DataFrame,
    name: str,
    table: Table,
    *,
    changelog: bool,
    checkpoint: str | None = None,
    mark: Mark | None = None,
    objects: ProgramObjects = NO_OBJECTS,
) -> DataStreamWriter:
    """Return a writer of ``rows`` into table ``name``, not started, and without a name, checkpoint and trigger.

    :class:`~hintplan.runtime.connectors.connector.TableWrite` describes the arguments. Raises RunError if the connector
    cannot write, or if its target does not fit.
    """
    write = TableWrite(
        name=name, table=as_texts(table), changelog=changelog, checkpoint=checkpoint, mark=mark, objects=objects
    )
    sink = _code(table)
    if not isinstance(sink, TableSink):
        raise _unable("written to", name, table)
    return sink.stream_writer(write, rows)


def arrow_writer(
    rows: ArrowRows, name: str, table: Table, *, checkpoint: str | None, mark: Mark | None = None
) -> tuple[ArrowRows, Callable[[DataFrame], DataStreamWriter]] | None:
    """Return ``rows`` in the format of the sink, and a function that configures their writer.

    None if the sink needs Spark's rows. Each converted row stands for one row, or for the number of rows in ``ROWS``.
    """
    sink = _code(table)
    if not isinstance(sink, ArrowSink):
        return None
    return sink.arrow_writer(TableWrite(name=name, table=as_texts(table), checkpoint=checkpoint, mark=mark), rows)


def micro_batch_writer(
    name: str,
    table: Table,
    *,
    changelog: bool,
    checkpoint: str,
    part: str,
    mark: Mark | None = None,
    objects: ProgramObjects = NO_OBJECTS,
) -> BatchWriter:
    """Return a function that writes a micro-batch to table ``name``, for a query with several sinks.

    It returns the number of rows. ``part`` distinguishes the sinks of the query; otherwise like :func:`stream_writer`.
    """
    write = TableWrite(
        name=name, table=as_texts(table), changelog=changelog,
        checkpoint=checkpoint, part=part, mark=mark, objects=objects,
    )  # fmt: skip
    sink = _code(table)
    if not isinstance(sink, TableSink):
        raise _unable("written to", name, table)
    return sink.micro_batch_writer(write)


def batch_writer(rows: DataFrame, name: str, table: Table, objects: ProgramObjects = NO_OBJECTS) -> Callable[[], None]:
    """Return a function that writes all rows of the insert-only ``rows`` to table ``name``, in a Spark job of its own.

    A failed call leaves none of the rows in the table. Raises RunError immediately if the connector cannot write, or if
    its target does not fit.
    """
    write = TableWrite(name=name, table=as_texts(table), objects=objects)
    sink = _code(table)
    if not isinstance(sink, TableSink):
        raise _unable("written to", name, table)
    return sink.batch_writer(write, rows)


def batch_overwriter(rows: DataFrame, name: str, table: Table) -> Callable[[], None]:
    """Return a function like :func:`batch_writer`, which replaces the existing rows.

    With PARTITIONED BY, it replaces only the partitions to which it writes. A call that fails before all rows are
    written removes nothing.
    """
    write = TableWrite(name=name, table=as_texts(table))
    sink = _code(table)
    if not isinstance(sink, OverwritingSink):
        raise _unable("overwritten", name, table)
    return sink.batch_overwriter(write, rows)


def counts_every_batch(table: Table) -> bool:
    """Return true if :func:`last_sink_batch` counts each micro-batch, even a batch without changes."""
    sink = _code(table)
    return isinstance(sink, CountingSink) and sink.counts_every_batch(table)


def last_sink_batch(table: Table, query: QueryId, files_in: FilesIn) -> int:
    """Return the last micro-batch that the sink has committed, or -1 if it has none or does not count them."""
    sink = _code(table)
    return sink.last_batch(table, query, files_in) if isinstance(sink, CountingSink) else -1


def missing_from_sink(spark: SparkSession, table: Table, query: QueryId, facts: SinkFacts) -> str | None:
    """Return the part of ``facts`` that the sink lacks, as the predicate of a sentence about it, or None."""
    sink = _code(table)
    return sink.missing(spark, table, query, facts) if isinstance(sink, CheckedSink) else None


def lookup_source(options: Mapping[str, str]) -> LookupSource:
    """Return the lookup source for a table with these ``options``, whose connector must support lookups."""
    code = CODE[options["connector"]]
    assert isinstance(code, LookupTable)
    return code.lookup_source(options)


def refuse_unbounded(name: str, table: Table) -> None:
    """Raise RunError if table ``name`` is unbounded, so that a run that stops after all rows would not stop."""
    if not takes_what_is_there(table):
        option = bounding_option(table)
        raise RunError(
            f"table {name} generates rows without end, so a run with an end cannot read it",
            hint=f"set '{option}', or run without --once",
            path=f"tables.{name}.options.{option}",
        )


def _code(table: Table) -> ConnectorCode:
    return CODE[table.options["connector"]]


def _unable(verb: str, name: str, table: Table) -> RunError:
    connector = table.options["connector"]
    return RunError(f"table {name} cannot be {verb}: its connector is {connector!r}", path=f"tables.{name}")
