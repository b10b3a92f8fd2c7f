"""The sink to a data lake table, for micro-batches and for batch jobs; the connector supplies the code of its lake."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

from hintplan.plans.connectors.connector import Connector
from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.connector import BatchesHad, BatchReader, ConnectorCode, Lacks, Mark
from hintplan.runtime.connectors.lakes.commits import Commit, Committed
from hintplan.runtime.connectors.lakes.target import Target
from hintplan.runtime.connectors.lakes.tasks import Rows
from hintplan.runtime.connectors.micro_batch import MicroBatch
from hintplan.runtime.connectors.query_id import query_id
from hintplan.runtime.engine.each_batch import written_by


class Committing(Protocol):
    """Commits rows to a table, unless it has the batch, and returns the outcome.

    With ``overwrites``, the rows replace the whole table, or with PARTITIONED BY, the partitions of the rows.
    """

    def __call__(
        self, target: Target, rows: Callable[[], Rows], commit: Commit, *, overwrites: bool = False
    ) -> Committed: ...


_ROWS = "rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeBatch:
    """Writes one micro-batch; Spark Connect pickles it to the server, with secrets still unresolved."""

    target: Target
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
        return done.asked

    def write_all(self, df: DataFrame) -> None:
        """Write the result of a batch job. Its unique writer name identifies a commit whose confirmation was lost."""
        self.commit(self.target.here(), lambda: df, (f"job-{uuid.uuid4()}", 0))


def each_micro_batch(sink: LakeBatch) -> Callable[[MicroBatch, int], int]:
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


class LakeSink(Protocol):
    """Returns the sink of a table; ``part`` distinguishes the sinks of one query.

    Raises RunError if the table exists and does not fit.
    """

    def __call__(
        self, name: str, table: Table, *, changelog: bool, checkpoint: str | None, part: str = ""
    ) -> LakeBatch: ...


def code_of(
    connector: Connector, *, read_batch: BatchReader, sink: LakeSink, batches_had: BatchesHad, lacks: Lacks
) -> ConnectorCode:
    """Return the code of a connector for a data lake."""

    def writer(
        df: DataFrame, name: str, table: Table, *, changelog: bool, checkpoint: str | None, mark: Mark | None = None
    ) -> DataStreamWriter:
        lake_batch = sink(name, table, changelog=changelog, checkpoint=checkpoint)
        return written_by(replace(lake_batch, mark=mark), df, checkpoint)

    def micro_batch_writer(
        name: str, table: Table, *, changelog: bool, checkpoint: str | None, part: str, mark: Mark | None = None
    ) -> Callable[[MicroBatch, int], int]:
        lake_batch = sink(name, table, changelog=changelog, checkpoint=checkpoint, part=part)
        return each_micro_batch(replace(lake_batch, mark=mark))

    def batch_writer(df: DataFrame, name: str, table: Table) -> Callable[[], None]:
        return partial(sink(name, table, changelog=False, checkpoint=None).write_all, df)

    def batch_overwriter(df: DataFrame, name: str, table: Table) -> Callable[[], None]:
        lake_batch = sink(name, table, changelog=False, checkpoint=None)
        return partial(replace(lake_batch, commit=partial(lake_batch.commit, overwrites=True)).write_all, df)

    return ConnectorCode(
        connector=connector, read_batch=read_batch, writer=writer, micro_batch_writer=micro_batch_writer,
        batch_writer=batch_writer, batch_overwriter=batch_overwriter, batches_had=batches_had,
        lacks=lacks,
    )  # fmt: skip


def refuse_updates(name: str, table: Table, *, changelog: bool) -> None:
    """Raise RunError for a changelog into a table without a primary key."""
    if changelog and not table.primary_key:
        raise RunError(
            f"table {name} cannot take updates: it has no primary key to find rows by",
            hint="declare PRIMARY KEY (...) NOT ENFORCED",
            path=f"tables.{name}",
        )
