"""A multi-sink query: what it computes in a micro-batch is kept, and written to each of its sinks.

A sink is written as its own query would write it. If one fails, the batch is replayed for all of them after a restart:
those that know which batches they have had then skip or repeat it, so that nothing is there twice, and print sinks
print it again. On classic Spark only: the sinks are written by the driver, which also counts their rows. Knows no plan
files and no sessions.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.storagelevel import StorageLevel

RowCounts = MutableMapping[tuple[str, int], int]
"""How many rows a sink was given in a batch, by sink and batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkWriter:
    """One of the sinks, and what writes its part of a micro-batch and says how many rows that was."""

    sink: str
    write: Callable[[DataFrame, int], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiSinkWriter:
    """Writes a micro-batch to each sink in turn; for ``foreachBatch``."""

    writers: tuple[SinkWriter, ...]
    counts: RowCounts

    def __call__(self, rows: Any, batch: int) -> None:
        if len(self.writers) == 1:  # the others are gone from the plan
            self._write(rows, batch)
            return
        kept = rows.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            self._write(kept, batch)
        finally:
            kept.unpersist()

    def _write(self, rows: DataFrame, batch: int) -> None:
        for writer in self.writers:
            self.counts[writer.sink, batch] = writer.write(rows, batch)
