"""A multi-sink query: each micro-batch is computed once, cached, and written to each of its sinks.

Each sink is written as by a query of its own. If one sink fails, the batch is replayed for all of them after a restart.
Sinks that track their batches then skip or repeat it without duplicates; print sinks print it again. Only for classic
Spark, where the driver writes the sinks and counts their rows.

A Spark job per sink would cost more than a small batch itself. A small number of rows is therefore collected to the
driver when they are computed, and written to the sinks from there. Rows of sinks that drop them are only counted, in
the tasks. This module knows neither plan files nor sessions.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.storagelevel import StorageLevel

from hintplan.runtime.connectors.micro_batch import MicroBatch
from hintplan.runtime.engine.shared import Arrived, arrived
from hintplan.runtime.run.sink_rows import SinkRows
from hintplan.runtime.spark.names import job_description, shown_as

RowCounts = MutableMapping[tuple[str, int], int]
"""The number of rows written, by sink and batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkWriter:
    """One of the sinks: its rows, and a function that writes a micro-batch and returns the number of its rows."""

    rows: SinkRows
    write: Callable[[MicroBatch, int], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiSinkWriter:
    """Writes a micro-batch to each sink in turn; for ``foreachBatch``.

    ``counted`` are the sinks that drop their rows, for which a batch has only counts. ``most`` is the maximum number of
    bytes of a batch that are collected to the driver.
    """

    writers: tuple[SinkWriter, ...]
    counted: tuple[str, ...]
    counts: RowCounts
    most: int

    def __call__(self, rows: DataFrame, batch: int) -> None:
        packed = bool(self.counted) or any(writer.rows.branch is not None for writer in self.writers)
        if not self.writers or (len(self.writers) == 1 and not packed):  # no rows are read twice
            self._write(rows, batch, packed=packed)
            return
        kept = rows.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            self._write(kept, batch, packed=packed)
        finally:
            kept.unpersist()

    def _write(self, rows: DataFrame, batch: int, *, packed: bool) -> None:
        schemas = {w.rows.branch: w.rows.edges.schema(w.rows.top) for w in self.writers if w.rows.branch is not None}
        contents = arrived(rows, schemas, self.most) if packed else Arrived()
        for sink in self.counted:
            self.counts[sink, batch] = contents.counts.get(sink, 0)
        for writer in self.writers:
            table = None if writer.rows.branch is None else contents.tables.get(writer.rows.branch)
            batch_rows = writer.rows.of_kept(rows) if table is None else writer.rows.of_table(table)
            with job_description(rows.sparkSession, shown_as(writer.rows.edges.plan.name, writer.rows.sink)):
                self.counts[writer.rows.sink, batch] = writer.write(batch_rows, batch)
