"""What a connector can have code for; what it says of itself is its
:class:`~hintplan.plans.connectors.connector.Connector`.

Each has one :class:`ConnectorCode` in its file or in the ``__init__`` of its folder. Tables have passed ``check_table``
before they come to any of its functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from hintplan.plans.connectors.connector import Connector
from hintplan.plans.declarations.tables import Table
from hintplan.runtime.connectors.given import Given
from hintplan.runtime.connectors.micro_batch import MicroBatch
from hintplan.runtime.engine.arrow_rows import ArrowRows
from hintplan.runtime.expressions.asked import Asked
from hintplan.runtime.lookup.source import LookupSource
from hintplan.runtime.spark.explanation import WrongLine
from hintplan.runtime.storage.pins import PinPlace

BatchReader = Callable[[SparkSession, str, Table, tuple[str, ...]], DataFrame]
FilesIn = Callable[[str], Iterable[str]]
"""The names of the files in a directory."""
Mark = Callable[[int, Mapping[str, Any]], None]
"""Takes the number of a batch that a sink has, and what the sink has since: what its connector's ``lacks`` asks for."""


class Reader(Protocol):
    """Reads a table as a stream; the rows of a changelog say when they arrived with ``row_order``.

    ``pins`` is where a source that asks for its rows keeps what it was told, if anything depends on that.
    """

    def __call__(
        self,
        spark: SparkSession,
        name: str,
        table: Table,
        columns: tuple[str, ...],
        *,
        row_order: bool = False,
        pins: PinPlace | None = None,
    ) -> DataFrame: ...


class Writer(Protocol):
    """Configures a sink; ``changelog`` says that ``df`` ends with the row kind column."""

    def __call__(
        self, df: DataFrame, name: str, table: Table, *, changelog: bool, checkpoint: str | None
    ) -> DataStreamWriter: ...


class ArrowWriter(Protocol):
    """What a sink makes of rows in the tasks that have them, one for each, and a writer of that.

    ``rows`` may have the row kind and more columns than the table.
    """

    def __call__(
        self, rows: ArrowRows, name: str, table: Table, *, checkpoint: str | None
    ) -> tuple[ArrowRows, Callable[[DataFrame], DataStreamWriter]]: ...


class MicroBatchWriter(Protocol):
    """Makes what writes a micro-batch; ``part`` tells the sinks of one query apart."""

    def __call__(
        self, name: str, table: Table, *, changelog: bool, checkpoint: str | None, part: str
    ) -> Callable[[MicroBatch, int], int]: ...


class BatchesHad(Protocol):
    """The last micro-batch that a sink has had, -1 if it does not count them or has had none.

    ``writer`` is what the sink knows the query by that writes to it, None while that has no name.
    """

    def __call__(self, table: Table, writer: Callable[[], str | None], files_in: FilesIn) -> int: ...


class Lacks(Protocol):
    """Return what ``table`` lacks of what it ``had``, as the rest of a sentence about it; None if it has all of that.

    ``writer`` is as in :class:`BatchesHad`.
    """

    def __call__(
        self, spark: SparkSession, table: Table, writer: Callable[[], str | None], had: Mapping[str, Any]
    ) -> str | None: ...


NOT_THERE = "is not there any more"
EMPTIED = "was made anew, or emptied as a whole, and has no rows"


def lacks_batches(had: int, batch: int) -> str | None:
    """Return what a table lacks that has had batches up to ``had``, and was marked after ``batch``; None if nothing."""
    if had >= batch:
        return None
    return f"has them up to {had}" if had >= 0 else "has none of them"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorCode:
    """The code of a connector: None where it cannot do that, or has no own way to.

    ``asking`` gives the code that asks the source, in ``read`` and ``read_batch``, for the rows alone for which a
    condition is true; it may send more.
    ``read_files`` reads some of the files of a table, ``wrong_line`` finds the first line of one that does not
    fit. ``counts_all`` says whether ``batches_had`` counts each batch, those that change nothing among them.
    A sink with ``lacks`` takes a :data:`Mark` as ``mark`` in ``writer``, ``arrow_writer`` and ``micro_batch_writer``,
    and calls it with each batch that has changed the table.
    ``lookup`` gives the source of lookups by the options of a table. ``handed`` gives the code for a run that was given
    DataFrames and functions, of a connector that reads and writes these.
    """

    connector: Connector
    read: Reader | None = None
    read_in_arrow: Callable[[SparkSession, str, Table, tuple[str, ...]], ArrowRows | None] | None = None
    read_batch: BatchReader | None = None
    asking: Callable[[Asked], ConnectorCode] | None = None
    read_files: Callable[[SparkSession, str, Table, tuple[str, ...], list[str]], DataFrame] | None = None
    wrong_line: Callable[[SparkSession, Table, str], WrongLine | None] | None = None
    writer: Writer | None = None
    arrow_writer: ArrowWriter | None = None
    micro_batch_writer: MicroBatchWriter | None = None
    batch_writer: Callable[[DataFrame, str, Table], Callable[[], None]] | None = None
    batch_overwriter: Callable[[DataFrame, str, Table], Callable[[], None]] | None = None
    batches_had: BatchesHad | None = None
    counts_all: Callable[[Table], bool] = lambda table: False
    lacks: Lacks | None = None
    lookup: Callable[[Mapping[str, str]], LookupSource] | None = None
    handed: Callable[[Given], ConnectorCode] | None = None
