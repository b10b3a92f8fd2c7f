"""The interface of the sinks of databases: SQLite writes on the driver, servers get the rows from tasks."""

from __future__ import annotations

from abc import ABC, abstractmethod

from pyspark.sql import DataFrame

from hintplan.plans.declarations.tables import Table
from hintplan.runtime.connectors.connector import QueryId, SinkFacts, TableWrite
from hintplan.runtime.connectors.jdbc.dialect import Dialect
from hintplan.runtime.connectors.micro_batch import MicroBatch


class DatabaseBatch(ABC):
    """Writes one micro-batch; Spark Connect pickles it to the server, with secrets still unresolved."""

    __slots__ = ()

    @abstractmethod
    def check(self) -> None:
        """Raise RunError if the database has a different table of that name."""

    @abstractmethod
    def __call__(self, df: DataFrame, batch_id: int) -> None:
        """Write a micro-batch that is the only one of its query."""

    @abstractmethod
    def write_micro_batch(self, rows: MicroBatch, batch_id: int) -> int:
        """Write the rows, and return their number."""

    @abstractmethod
    def write_all(self, df: DataFrame) -> None:
        """Write the result of a batch job, which is not replayed."""


class DatabaseSink(ABC):
    """A kind of database as a sink."""

    dialect: Dialect

    @abstractmethod
    def batch(self, write: TableWrite) -> DatabaseBatch:
        """Return the writer of micro-batches, without checking the table."""

    @abstractmethod
    def last_batch(self, table: Table, query: QueryId) -> int:
        """Return the last batch of ``query``, which the database remembers for a table without a key."""

    @abstractmethod
    def missing(self, table: Table, query: QueryId, facts: SinkFacts) -> str | None:
        """Return the part of ``facts`` that the table lacks; None if nothing is missing.

        Deleted rows do not count as missing, unless the table was recreated or truncated and is empty.
        """
