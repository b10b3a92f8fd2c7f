"""Runs an operator for one partition and micro-batch, in the task that has got the partition's packed rows.

It turns blobs into deltas, opens the state as the batch before left it (:mod:`hintplan.runtime.storage.partition`),
publishes what the operator makes of it, and hands on what that puts out. Which batch it is, Spark says to each task;
which partition and what time, the packed rows say, so that a batch that runs again computes the same. Knows no joins
and no aggregates.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from hintplan.plans.errors import RunError
from hintplan.runtime.engine.arrow_rows import Aggregate, Metrics
from hintplan.runtime.engine.blobs import chunks, from_blob
from hintplan.runtime.engine.pack import hashed
from hintplan.runtime.engine.row_order import in_order
from hintplan.runtime.engine.this_task import this_task
from hintplan.runtime.operator import Presum, StatefulOperator
from hintplan.runtime.storage.files import files_at
from hintplan.runtime.storage.manifest import RESTORE, DamagedFile
from hintplan.runtime.storage.operations import OPERATIONS
from hintplan.runtime.storage.partition import Remembered, open_partition
from hintplan.runtime.storage.place import Place

METRICS: tuple[tuple[str, Aggregate], ...] = (
    ("rows_in", "sum"),
    ("rows_out", "sum"),
    ("state_rows", "sum"),
    ("state_rows_delta", "sum"),
    ("state_bytes", "sum"),
    ("state_bytes_delta", "sum"),
    ("oldest_write", "min"),
    ("reports", "sum"),
    *((f"file_{name}", "sum") for name in OPERATIONS),
)
"""Metrics of one call, and how those of a batch become one; ``reports`` counts calls, so that totals are known to be
whole or partial.

What was asked of the file system of the state is counted of the attempt that came to its end.
"""

NOW = "now"
"""The column of packed rows with the time of the batch in Spark's log of offsets, in ms, as text."""

_remembered = Remembered()
"""What this worker knows of the partitions that it was given; which one it is given next is Spark's choice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """Reads the output of ``operator`` from packed rows, whose ``buckets`` are the partitions of ``place``."""

    operator: StatefulOperator
    place: Place
    buckets: Sequence[int]

    def __call__(self, batches: Iterable[pa.RecordBatch], metrics: Metrics) -> Iterator[pa.Table]:
        """The rows that the operator puts out in this batch; none, and nothing is called, if no row and no tick came.

        RunError, naming the operator, if its state cannot be read or written.
        """
        packed = [row for batch in batches for row in _rows(batch)]
        if not packed:
            return
        partition, now = self.buckets.index(packed[0].bucket), packed[0].now
        packed.sort(key=lambda row: (row.side, row.task, row.sequence))
        deltas: list[pa.Table | None] = []
        for side, spec in enumerate(self.operator.inputs):
            tables = [from_blob(row.blob) for row in packed if row.side == side]
            # One hash has come with the rows; the others are made here, as they would only be more to shuffle.
            deltas.append(hashed(in_order(joined(tables, spec.presum)), spec.hashes, 1) if tables else None)
        del packed
        yield from self._call(deltas, partition, now, metrics)

    def _call(
        self, deltas: Sequence[pa.Table | None], partition: int, now: int, metrics: Metrics
    ) -> Iterator[pa.Table]:
        files = files_at(self.place.root)
        before_it = files.operations.counts()
        try:
            store = open_partition(files, self.place, partition, this_task(self.place.batch_key).batch, _remembered)
            before = store.before
            tables = self.operator.inherit(store) if store.inherited else store.tables
            result = self.operator.process(deltas, tables, store, now)
            store.publish(result.manifest, result.state_rows, result.state_bytes)
            asked = files.operations.since(before_it)
        except DamagedFile as error:
            raise RunError(
                f"operator {self.place.operator} cannot read its state: {error.diagnostics[0].message}", hint=RESTORE
            ) from error
        except FileNotFoundError as error:
            folder = os.path.dirname(error.filename or self.place.root)
            raise RunError(
                f"operator {self.place.operator} cannot keep its state: {folder} is missing", hint=RESTORE
            ) from error
        except OSError as error:
            raise RunError(
                f"operator {self.place.operator} cannot keep its state: {error.strerror or error} "
                f"({error.filename or self.place.root})",
                hint="make room there, or see whether the worker may read and write it; the checkpoint has all that "
                "was committed",
            ) from error
        yield from chunks(result.output)
        metrics += [
            result.rows_in,
            result.output.num_rows,
            result.state_rows,
            result.state_rows - (0 if before is None else before.state_rows),
            result.state_bytes,
            result.state_bytes - (0 if before is None else before.state_bytes),
            result.oldest_write,
            1,
            *asked,
            *result.metrics,
        ]


@dataclass(frozen=True, slots=True)
class _Row:
    bucket: int
    side: int
    task: int
    sequence: int
    blob: pa.Buffer
    now: int


def _rows(batch: pa.RecordBatch) -> Iterator[_Row]:
    """The rows of packed input; blobs are not copied."""
    names = ("bucket", "side", "task", "seq", NOW)
    for row, (bucket, side, task, sequence, now) in enumerate(zip(*(batch[n].to_pylist() for n in names), strict=True)):
        yield _Row(bucket, side, task, sequence, batch["blob"][row].as_buffer(), int(now))


def joined(tables: Sequence[pa.Table], presum: Presum | None) -> pa.Table:
    """One delta in the order of its pieces, some of which may have been summed up."""
    if presum is not None and any(table.schema != tables[0].schema for table in tables):
        summed = presum.schema
        tables = [table if table.schema == summed else presum.lift(table) for table in tables]
    return pa.concat_tables(tables)
