"""The interfaces of a connector's code.

:class:`~hintplan.plans.connectors.connector.Connector` describes a connector; the code here makes it run. Each
connector has one :class:`ConnectorCode`, in its file or in the ``__init__`` of its folder. The callers run
``check_table`` first, so every function here gets a valid table.
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
from hintplan.runtime.expressions.pushed_filter import PushedFilter
from hintplan.runtime.lookup.source import LookupSource
from hintplan.runtime.spark.explanation import WrongLine
from hintplan.runtime.storage.pins import PinPlace

BatchReader = Callable[[SparkSession, str, Table, tuple[str, ...]], DataFrame]
FilesIn = Callable[[str], Iterable[str]]
"""Returns the names of the files in a directory."""
Mark = Callable[[int, Mapping[str, Any]], None]
"""Records a batch that a sink has committed: its number, and the facts that ``lacks`` later looks for in the table."""


class Reader(Protocol):
    """Reads a table as a stream. With ``row_order``, each row of a changelog carries columns that order it by arrival.

    A source that queries another system keeps the answers at ``pins``, if any state or sink depends on them.
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
    """Configures a sink. With ``changelog``, the last column of ``df`` is the row kind."""

    def __call__(
        self, df: DataFrame, name: str, table: Table, *, changelog: bool, checkpoint: str | None
    ) -> DataStreamWriter: ...


class ArrowWriter(Protocol):
    """Converts rows to a sink's format in the tasks that hold them, one output row for each input row.

    Returns the converted rows and a function that configures their writer. ``rows`` may have the row kind and more
    columns than the table.
    """

    def __call__(
        self, rows: ArrowRows, name: str, table: Table, *, checkpoint: str | None
    ) -> tuple[ArrowRows, Callable[[DataFrame], DataStreamWriter]]: ...


class MicroBatchWriter(Protocol):
    """Returns a function that writes a micro-batch; ``part`` distinguishes the sinks of one query."""

    def __call__(
        self, name: str, table: Table, *, changelog: bool, checkpoint: str | None, part: str
    ) -> Callable[[MicroBatch, int], int]: ...


class BatchesHad(Protocol):
    """Returns the last micro-batch that a sink has committed, or -1 if it has none or does not count them.

    ``writer`` returns the name under which the sink knows the query, or None while the query has no name.
    """

    def __call__(self, table: Table, writer: Callable[[], str | None], files_in: FilesIn) -> int: ...


class Lacks(Protocol):
    """Returns the part of ``had`` that ``table`` lacks, as the predicate of a sentence about it, or None.

    ``writer`` is the same as in :class:`BatchesHad`.
    """

    def __call__(
        self, spark: SparkSession, table: Table, writer: Callable[[], str | None], had: Mapping[str, Any]
    ) -> str | None: ...


NOT_THERE = "is not there any more"
EMPTIED = "was made anew, or emptied as a whole, and has no rows"


def lacks_batches(had: int, batch: int) -> str | None:
    """Return the predicate of a sentence about a table with batches up to ``had``; None if it has ``batch``."""
    if had >= batch:
        return None
    return f"has them up to {had}" if had >= 0 else "has none of them"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorCode:
    """The code of a connector; a field is None if the connector cannot do this, or needs no code of its own for it.

    - ``asking`` returns code whose ``read`` and ``read_batch`` push a condition down to the source. The source may
      return more rows than match.
    - ``read_files`` reads a subset of a table's files.
    - ``wrong_line`` finds the first line of a file that does not fit the table.
    - ``counts_all`` is true if ``batches_had`` counts every batch, even a batch without changes.
    - If there is ``lacks``, then ``writer``, ``arrow_writer`` and ``micro_batch_writer`` take a :data:`Mark` as
      ``mark``. The sink calls it with each batch that has changed the table.
    - ``lookup`` returns the lookup source for the options of a table.
    - ``handed`` returns the code for a run whose program passed DataFrames and functions, for a connector that uses
      them.
    """

    connector: Connector
    read: Reader | None = None
    read_in_arrow: Callable[[SparkSession, str, Table, tuple[str, ...]], ArrowRows | None] | None = None
    read_batch: BatchReader | None = None
    asking: Callable[[PushedFilter], ConnectorCode] | None = None
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
