"""A sink in a table of a data lake, for each micro-batch and for the result of a batch job; which lake, others say."""

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
    """Commits rows to a table, and says whether they were asked for, and what the table has since.

    One that ``overwrites`` takes what is there away: of the table, or if it is PARTITIONED BY, of their partitions.
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
    """Tells this sink from others that the same query writes."""
    mark: Mark | None = None
    """Takes what the table has after a batch; None on Spark Connect."""

    def __call__(self, df: DataFrame, batch_id: int) -> None:
        self.write(lambda: df, batch_id, df.sparkSession)

    def write(self, rows: Callable[[], Rows], batch_id: int, spark: SparkSession) -> bool:
        """Write the rows, and say whether they were asked for: of a batch that the table has, they are not."""
        commit = (query_id(spark, self.checkpoint) + self.part, batch_id)
        done = self.commit(self.target.here(), rows, commit)
        if self.mark is not None and done.has is not None:
            self.mark(batch_id, done.has)
        return done.asked

    def write_all(self, df: DataFrame) -> None:
        """Write the result of a batch job; the name of its own tells a commit whose end was not heard of."""
        self.commit(self.target.here(), lambda: df, (f"job-{uuid.uuid4()}", 0))


def each_micro_batch(sink: LakeBatch) -> Callable[[MicroBatch, int], int]:
    """What writes a micro-batch by ``sink`` and returns its number of rows."""

    def write(rows: MicroBatch, batch: int) -> int:
        if rows.is_on_driver:
            found = rows.on_driver()
            sink.write(lambda: found, batch, rows.spark)
            return int(found.num_rows)
        seen = Observation()
        counted = lambda: rows.in_spark().observe(seen, F.count(F.lit(1)).alias(_ROWS))  # noqa: E731
        return int(seen.get[_ROWS]) if sink.write(counted, batch, rows.spark) else 0

    return write


class LakeSink(Protocol):
    """Makes the sink in a table; ``part`` tells the sinks of one query apart. RunError if the table does not fit."""

    def __call__(
        self, name: str, table: Table, *, changelog: bool, checkpoint: str | None, part: str = ""
    ) -> LakeBatch: ...


def code_of(
    connector: Connector, *, read_batch: BatchReader, sink: LakeSink, batches_had: BatchesHad, lacks: Lacks
) -> ConnectorCode:
    """The code of a lake, which reads and has sinks like this."""

    def writer(
        df: DataFrame, name: str, table: Table, *, changelog: bool, checkpoint: str | None, mark: Mark | None = None
    ) -> DataStreamWriter:
        made = sink(name, table, changelog=changelog, checkpoint=checkpoint)
        return written_by(replace(made, mark=mark), df, checkpoint)

    def micro_batch_writer(
        name: str, table: Table, *, changelog: bool, checkpoint: str | None, part: str, mark: Mark | None = None
    ) -> Callable[[MicroBatch, int], int]:
        made = sink(name, table, changelog=changelog, checkpoint=checkpoint, part=part)
        return each_micro_batch(replace(made, mark=mark))

    def batch_writer(df: DataFrame, name: str, table: Table) -> Callable[[], None]:
        return partial(sink(name, table, changelog=False, checkpoint=None).write_all, df)

    def batch_overwriter(df: DataFrame, name: str, table: Table) -> Callable[[], None]:
        made = sink(name, table, changelog=False, checkpoint=None)
        return partial(replace(made, commit=partial(made.commit, overwrites=True)).write_all, df)

    return ConnectorCode(
        connector=connector, read_batch=read_batch, writer=writer, micro_batch_writer=micro_batch_writer,
        batch_writer=batch_writer, batch_overwriter=batch_overwriter, batches_had=batches_had,
        lacks=lacks,
    )  # fmt: skip


def refuse_updates(name: str, table: Table, *, changelog: bool) -> None:
    """RunError if rows are a changelog, and the table has no key to find them by."""
    if changelog and not table.primary_key:
        raise RunError(
            f"table {name} cannot take updates: it has no primary key to find rows by",
            hint="declare PRIMARY KEY (...) NOT ENFORCED",
            path=f"tables.{name}",
        )
