"""The abilities of a connector's code: a source, a sink, a table for lookups.

:class:`~hintplan.plans.connectors.connector.Connector` describes a connector; its code makes it run. Each connector has
one class, in its file or in the ``__init__`` of its folder, and one object of it, ``CODE``. The class derives from the
abilities that the connector has. The callers run ``check_table`` first, so every method gets a valid table.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from hintplan.plans.connectors.connector import Connector
from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.micro_batch import MicroBatch
from hintplan.runtime.connectors.program_objects import NO_OBJECTS, ProgramObjects
from hintplan.runtime.engine.rows import ArrowRows
from hintplan.runtime.expressions.pushed_filter import PushedFilter
from hintplan.runtime.lookup.source import LookupSource
from hintplan.runtime.spark.explanation import WrongLine
from hintplan.runtime.storage.pins import PinPlace

FilesIn = Callable[[str], Iterable[str]]
"""Returns the names of the files in a directory."""
QueryId = Callable[[], str | None]
"""Returns the name under which a sink knows the query, or None while the query has no name."""
SinkFacts = Mapping[str, Any]
"""Facts about a sink's table after a batch, for :meth:`CheckedSink.missing`; a checkpoint keeps them as JSON."""
Mark = Callable[[int, SinkFacts], None]
"""Records a batch that a sink has committed: its number, and the facts."""
BatchWriter = Callable[[MicroBatch, int], int]
"""Writes a micro-batch with its number, and returns the number of rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRead:
    """One scan of table ``name``, of exactly the physical ``columns``.

    - ``row_order``: each row of a changelog carries the columns of ``ROW_ORDER``, which order it by arrival.
    - ``splits``: each row carries the column ``SPLIT``, which names its split; only for a source that has splits.
    - ``last_row``: each row carries the column ``LAST``, true in the last row; only for a source that knows it.
    - ``pins``: the place where a source that queries another system keeps the answers; None if nothing depends on them.
    - ``pushed_filter``: a source that supports predicate pushdown may omit rows that do not satisfy it.
    """

    spark: SparkSession
    name: str
    table: Table
    columns: tuple[str, ...]
    row_order: bool = False
    splits: bool = False
    last_row: bool = False
    pins: PinPlace | None = None
    pushed_filter: PushedFilter | None = None
    objects: ProgramObjects = NO_OBJECTS


@dataclass(frozen=True, slots=True, kw_only=True)
class TableWrite:
    """The rows of one query that go to table ``name``.

    - ``changelog``: the last column of the rows is the row kind.
    - ``checkpoint``: the checkpoint location of the query; a sink may need it to detect a replayed batch.
    - ``part`` distinguishes the sinks of one query.
    - ``mark``: a :class:`CheckedSink` calls it with each batch that has changed the table.
    """

    name: str
    table: Table
    changelog: bool = False
    checkpoint: str | None = None
    part: str = ""
    mark: Mark | None = None
    objects: ProgramObjects = NO_OBJECTS


class ConnectorCode(ABC):
    """The code of a connector. Subclasses derive from the abilities below."""

    connector: ClassVar[Connector]


class TableSource(ConnectorCode):
    """A connector whose tables batch jobs can read."""

    @abstractmethod
    def read_batch(self, read: TableRead) -> DataFrame:
        """Return all current rows; RunError if there is nothing to read."""


class StreamSource(TableSource):
    """A source that streams can read, too."""

    @abstractmethod
    def read_stream(self, read: TableRead) -> DataFrame:
        """Return the rows as a stream, and their row kinds if they are a changelog."""


class ArrowSource(StreamSource):
    """A source whose streams can stay in Arrow in the workers."""

    def why_spark_reads(self, read: TableRead) -> str | None:
        """Return the reason why Spark has to read this table, or None if workers can read it.

        Reasons in the declaration of the table are in its connector (``Readable.why_spark_reads``).
        """
        return None

    @abstractmethod
    def read_in_arrow(self, read: TableRead) -> ArrowRows:
        """Return the rows of :meth:`read_stream` in Arrow; :meth:`why_spark_reads` has found no reason."""


class FileSource(StreamSource):
    """A source whose tables are files."""

    @abstractmethod
    def read_files(self, read: TableRead, files: list[str]) -> DataFrame:
        """Return the rows of some ``files`` of the table, named as in ``DataFrame.inputFiles``, as a batch."""

    @abstractmethod
    def find_wrong_line(self, spark: SparkSession, table: Table, file: str) -> WrongLine | None:
        """Return the first line of ``file`` that does not fit; None if all fit or the file is not the table's."""


class TableSink(ConnectorCode):
    """A connector whose tables can be written to. Each method raises RunError if the target does not fit."""

    @abstractmethod
    def stream_writer(self, write: TableWrite, rows: DataFrame) -> DataStreamWriter:
        """Return a writer of the stream, not started, and without a name, checkpoint and trigger."""

    @abstractmethod
    def micro_batch_writer(self, write: TableWrite) -> BatchWriter:
        """Return a function that writes the micro-batches of a query with several sinks."""

    @abstractmethod
    def batch_writer(self, write: TableWrite, rows: DataFrame) -> Callable[[], None]:
        """Return a function that writes all rows of a batch job; a failed call leaves none of them in the table."""


class ArrowSink(TableSink):
    """A sink to which tasks convert rows that are in Arrow."""

    @abstractmethod
    def arrow_writer(
        self, write: TableWrite, rows: ArrowRows
    ) -> tuple[ArrowRows, Callable[[DataFrame], DataStreamWriter]] | None:
        """Return the converted rows, and a function that configures their writer; None if only Spark can write them.

        ``rows`` may have the row kind and more columns than the table. Each converted row stands for one row, or for
        the number of rows in its column ``ROWS``.
        """


class OverwritingSink(TableSink):
    """A sink whose rows a batch job can replace."""

    @abstractmethod
    def batch_overwriter(self, write: TableWrite, rows: DataFrame) -> Callable[[], None]:
        """Return a function that replaces the rows of the table, or of the partitions to which it writes.

        A call that fails before all rows are written removes nothing.
        """


class CountingSink(TableSink):
    """A sink that remembers the last micro-batch that it has committed."""

    @abstractmethod
    def last_batch(self, table: Table, query: QueryId, files_in: FilesIn) -> int:
        """Return the last committed micro-batch of ``query``, or -1 if the sink has none or does not count them."""

    @abstractmethod
    def counts_every_batch(self, table: Table) -> bool:
        """Return true if :meth:`last_batch` counts every micro-batch, even a batch without changes."""


class CheckedSink(TableSink):
    """A sink that can find out whether its table has lost batches, from the facts that it marked with them."""

    @abstractmethod
    def missing(self, spark: SparkSession, table: Table, query: QueryId, facts: SinkFacts) -> str | None:
        """Return the part of ``facts`` that the table lacks, as the predicate of a sentence about it, or None."""


class LookupTable(ConnectorCode):
    """A connector whose tables lookup joins can use."""

    @abstractmethod
    def lookup_source(self, options: Mapping[str, str]) -> LookupSource:
        """Return the lookup source of a table with these ``options``."""


NOT_THERE = "no longer exists"
EMPTIED = "was recreated or emptied, and has no rows"


def missing_batches(last: int, batch: int) -> str | None:
    """Return the predicate of a sentence about a table with batches up to ``last``; None if it has ``batch``."""
    if last >= batch:
        return None
    return f"has them up to {last}" if last >= 0 else "has none of them"


def refuse_keyless_updates(write: TableWrite) -> None:
    """Raise RunError for a changelog into a table without a primary key."""
    if write.changelog and not write.table.primary_key:
        raise RunError(
            f"table {write.name} cannot take updates: it has no primary key to find rows by",
            hint="declare PRIMARY KEY (...) NOT ENFORCED",
            path=f"tables.{write.name}",
        )
