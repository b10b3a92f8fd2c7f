"""A multi-sink query: what its operator puts out in a micro-batch is kept, and written to each.

A sink is written as its own query would write it. If one fails, the batch is replayed for all of them after a restart:
jdbc sinks then skip or repeat what they have, so that nothing is there twice, and print sinks print it again. On
classic Spark only: the sinks are written by the driver, which also counts their rows. Knows no plan files and no
sessions.
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
    """One of the sinks: what the calcs above it make of the rows, and what writes them and says how many they were."""

    sink: str
    select: Callable[[DataFrame], DataFrame]
    write: Callable[[DataFrame, int], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiSinkWriter:
    """Writes a micro-batch to each sink in turn; for ``foreachBatch``."""

    writers: tuple[SinkWriter, ...]
    counts: RowCounts

    def __call__(self, rows: Any, batch: int) -> None:
        kept = rows.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            for writer in self.writers:
                self.counts[writer.sink, batch] = writer.write(writer.select(kept), batch)
        finally:
            kept.unpersist()
