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
from hintplan.runtime.connectors.connector import BatchesHad, BatchReader, ConnectorCode
from hintplan.runtime.connectors.lakes.commits import Commit
from hintplan.runtime.connectors.lakes.target import Target
from hintplan.runtime.connectors.lakes.tasks import Rows
from hintplan.runtime.connectors.micro_batch import MicroBatch
from hintplan.runtime.connectors.query_id import query_id
from hintplan.runtime.engine.each_batch import written_by


class Committing(Protocol):
    """Commits rows to a table, and says whether they were asked for.

    One that ``overwrites`` takes what is there away: of the table, or if it is PARTITIONED BY, of their partitions.
    """

    def __call__(
        self, target: Target, rows: Callable[[], Rows], commit: Commit, *, overwrites: bool = False
    ) -> bool: ...


_ROWS = "rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeBatch:
    """Writes one micro-batch; Spark Connect pickles it to the server, with secrets still unresolved."""

    target: Target
    checkpoint: str | None
    commit: Committing
    part: str = ""
    """Tells this sink from others that the same query writes."""

    def __call__(self, df: DataFrame, batch_id: int) -> None:
        self.write(lambda: df, batch_id, df.sparkSession)

    def write(self, rows: Callable[[], Rows], batch_id: int, spark: SparkSession) -> bool:
        """Write the rows, and say whether they were asked for: of a batch that the table has, they are not."""
        commit = (query_id(spark, self.checkpoint) + self.part, batch_id)
        return self.commit(self.target.here(), rows, commit)

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


def code_of(connector: Connector, *, read_batch: BatchReader, sink: LakeSink, batches_had: BatchesHad) -> ConnectorCode:
    """The code of a lake, which reads and has sinks like this."""

    def writer(df: DataFrame, name: str, table: Table, *, changelog: bool, checkpoint: str | None) -> DataStreamWriter:
        return written_by(sink(name, table, changelog=changelog, checkpoint=checkpoint), df, checkpoint)

    def micro_batch_writer(
        name: str, table: Table, *, changelog: bool, checkpoint: str | None, part: str
    ) -> Callable[[MicroBatch, int], int]:
        return each_micro_batch(sink(name, table, changelog=changelog, checkpoint=checkpoint, part=part))

    def batch_writer(df: DataFrame, name: str, table: Table) -> Callable[[], None]:
        return partial(sink(name, table, changelog=False, checkpoint=None).write_all, df)

    def batch_overwriter(df: DataFrame, name: str, table: Table) -> Callable[[], None]:
        made = sink(name, table, changelog=False, checkpoint=None)
        return partial(replace(made, commit=partial(made.commit, overwrites=True)).write_all, df)

    return ConnectorCode(
        connector=connector, read_batch=read_batch, writer=writer, micro_batch_writer=micro_batch_writer,
        batch_writer=batch_writer, batch_overwriter=batch_overwriter, batches_had=batches_had,
    )  # fmt: skip


def refuse_updates(name: str, table: Table, *, changelog: bool) -> None:
    """RunError if rows are a changelog, and the table has no key to find them by."""
    if changelog and not table.primary_key:
        raise RunError(
            f"table {name} cannot take updates: it has no primary key to find rows by",
            hint="declare PRIMARY KEY (...) NOT ENFORCED",
            path=f"tables.{name}",
        )
