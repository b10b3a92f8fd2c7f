"""The sink to a data lake table, for micro-batches and for batch jobs; the connector supplies the code of its lake."""

from __future__ import annotations

import uuid
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

from hintplan.plans.declarations.tables import Table
from hintplan.runtime.connectors.connector import (
    BatchWriter,
    CheckedSink,
    CountingSink,
    Mark,
    OverwritingSink,
    TableSource,
    TableWrite,
)
from hintplan.runtime.connectors.lakes.commits import Commit, Committed
from hintplan.runtime.connectors.lakes.target import LakeTarget
from hintplan.runtime.connectors.lakes.tasks import Rows
from hintplan.runtime.connectors.micro_batch import MicroBatch, query_id
from hintplan.runtime.engine.each_batch import written_by


class Committing(Protocol):
    """Commits rows to a table, unless it has the batch, and returns the outcome.

    With ``overwrites``, the rows replace the whole table, or with PARTITIONED BY, the partitions of the rows.
    """

    def __call__(
        self, target: LakeTarget, rows: Callable[[], Rows], commit: Commit, *, overwrites: bool = False
    ) -> Committed: ...


_ROWS = "rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeBatch:
    """Writes one micro-batch; Spark Connect pickles it to the server, with secrets still unresolved."""

    target: LakeTarget
    checkpoint: str | None
    commit: Committing
    part: str = ""
    """Distinguishes this sink from other sinks of the same query."""
    mark: Mark | None = None
    """Records facts about the table after a batch; None on Spark Connect."""

    def __call__(self, df: DataFrame, batch_id: int) -> None:
        self.write(lambda: df, batch_id, df.sparkSession)

    def write(self, rows: Callable[[], Rows], batch_id: int, spark: SparkSession) -> bool:
        """Write the rows; return false if the table already has the batch, so that no rows were computed."""
        commit = (query_id(spark, self.checkpoint) + self.part, batch_id)
        done = self.commit(self.target.here(), rows, commit)
        if self.mark is not None and done.has is not None:
            self.mark(batch_id, done.has)
        return done.computed

    def write_all(self, df: DataFrame) -> None:
        """Write the result of a batch job. Its unique writer name identifies a commit whose confirmation was lost."""
        self.commit(self.target.here(), lambda: df, (f"job-{uuid.uuid4()}", 0))


def each_micro_batch(sink: LakeBatch) -> BatchWriter:
    """Return a function that writes a micro-batch to ``sink`` and returns its number of rows."""

    def write(rows: MicroBatch, batch: int) -> int:
        if rows.is_on_driver:
            driver_rows = rows.on_driver()
            sink.write(lambda: driver_rows, batch, rows.spark)
            return int(driver_rows.num_rows)
        observation = Observation()
        counted = lambda: rows.in_spark().observe(observation, F.count(F.lit(1)).alias(_ROWS))  # noqa: E731
        return int(observation.get[_ROWS]) if sink.write(counted, batch, rows.spark) else 0

    return write


class Lake(TableSource, CountingSink, CheckedSink, OverwritingSink):
    """Tables in a data lake, whose versions record the writer and the number of each batch."""

    @abstractmethod
    def lake_batch(self, write: TableWrite) -> LakeBatch:
        """Return the writer of micro-batches, after checking the table; RunError if the table does not fit.

        A client of Spark Connect leaves the check to the server.
        """

    def stream_writer(self, write: TableWrite, rows: DataFrame) -> DataStreamWriter:
        return written_by(self.lake_batch(write), rows, write.checkpoint)

    def micro_batch_writer(self, write: TableWrite) -> BatchWriter:
        return each_micro_batch(self.lake_batch(write))

    def batch_writer(self, write: TableWrite, rows: DataFrame) -> Callable[[], None]:
        return partial(self.lake_batch(write).write_all, rows)

    def batch_overwriter(self, write: TableWrite, rows: DataFrame) -> Callable[[], None]:
        lake_batch = self.lake_batch(write)
        return partial(replace(lake_batch, commit=partial(lake_batch.commit, overwrites=True)).write_all, rows)

    def counts_every_batch(self, table: Table) -> bool:
        """Return false: a batch without changes makes no version."""
        return False
