"""A multi-sink query: what it computes in a micro-batch is kept, and written to each of its sinks.

A sink is written as its own query would write it. If one fails, the batch is replayed for all of them after a restart:
those that know which batches they have had then skip or repeat it, so that nothing is there twice, and print sinks
print it again. On classic Spark only: the sinks are written by the driver, which also counts their rows.

A job of Spark for each sink would cost more than a small batch itself. So rows that are few come to the driver once,
when they are computed, and their sinks are written from there; rows that their sinks drop are only counted, where they
are computed. Knows no plan files and no sessions.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.storagelevel import StorageLevel

from hintplan.runtime.connectors.micro_batch import MicroBatch
from hintplan.runtime.engine.shared import Arrived, arrived
from hintplan.runtime.run.sink_rows import SinkRows
from hintplan.runtime.spark.names import described, shown_as

RowCounts = MutableMapping[tuple[str, int], int]
"""How many rows a sink was given in a batch, by sink and batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkWriter:
    """One of the sinks: its rows, and what writes those of a micro-batch and says how many they were."""

    rows: SinkRows
    write: Callable[[MicroBatch, int], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiSinkWriter:
    """Writes a micro-batch to each sink in turn; for ``foreachBatch``.

    ``counted`` are the sinks that drop their rows, of which a batch has the numbers; ``most`` are the bytes of a batch
    that come to the driver.
    """

    writers: tuple[SinkWriter, ...]
    counted: tuple[str, ...]
    counts: RowCounts
    most: int

    def __call__(self, rows: Any, batch: int) -> None:
        packed = bool(self.counted) or any(writer.rows.branch is not None for writer in self.writers)
        if not self.writers or (len(self.writers) == 1 and not packed):  # nothing is read twice
            self._write(rows, batch, packed=packed)
            return
        kept = rows.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            self._write(kept, batch, packed=packed)
        finally:
            kept.unpersist()

    def _write(self, rows: DataFrame, batch: int, *, packed: bool) -> None:
        schemas = {w.rows.branch: w.rows.edges.schema(w.rows.top) for w in self.writers if w.rows.branch is not None}
        found = arrived(rows, schemas, self.most) if packed else Arrived()
        for sink in self.counted:
            self.counts[sink, batch] = found.counts.get(sink, 0)
        for writer in self.writers:
            table = None if writer.rows.branch is None else found.tables.get(writer.rows.branch)
            batch_rows = writer.rows.of_kept(rows) if table is None else writer.rows.of_table(table)
            with described(rows.sparkSession, shown_as(writer.rows.edges.plan.name, writer.rows.sink)):
                self.counts[writer.rows.sink, batch] = writer.write(batch_rows, batch)
