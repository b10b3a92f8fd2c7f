"""Runs an operator for one partition and micro-batch, in the task that received the partition's packed rows.

It turns blobs into deltas, opens the state of the previous batch (:mod:`hintplan.runtime.storage.partition`), publishes
the operator's new state, and yields its output. Spark passes the batch number to each task. The partition and the time
come with the packed rows, so a batch that runs again computes the same. For an operator that goes by event time, it
moves the watermark (:mod:`hintplan.runtime.engine.watermarks`), stores it with the state, and reports it to the next
operator in the same batch. Knows no joins and no aggregates.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

import pyarrow as pa

from hintplan.plans.errors import RunError
from hintplan.plans.evidence.uses import encoded_uses
from hintplan.runtime.engine.blobs import from_blob, row_chunks
from hintplan.runtime.engine.marks import Marks, decode_marks
from hintplan.runtime.engine.pack import MARK, PackedRow, hashed, packed_rows
from hintplan.runtime.engine.row_order import in_row_order
from hintplan.runtime.engine.rows import Aggregate, Report
from hintplan.runtime.engine.this_task import this_task
from hintplan.runtime.engine.watermarks import EventTime, Moved, moved_watermark
from hintplan.runtime.operator import FOREVER, NEVER, Presum, Result, StatefulOperator, TimeOperator
from hintplan.runtime.storage.files import files_at
from hintplan.runtime.storage.manifest import RESTORE, DamagedFile, StoredWatermark, added_lateness
from hintplan.runtime.storage.operations import OPERATIONS
from hintplan.runtime.storage.partition import PartitionStore, Remembered, open_partition
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
"""The metrics of one call, and their aggregation over a batch.

``reports`` counts calls, which shows whether totals are whole or partial. File system operations on the state are
counted for the attempt that completed.
"""

USES: tuple[str, Aggregate] = ("uses", "list")
"""The last metric of an operator: the ages at which the rows of its states with a TTL were used
(:mod:`hintplan.plans.evidence.uses`)."""

TIME_METRICS: tuple[tuple[str, Aggregate], ...] = (
    ("watermark", "max"),
    ("held_by", "max"),
    ("held_split", "max"),
    ("late_rows", "sum"),
    ("waiting_rows", "sum"),
)
"""The further metrics of an operator that goes by event time.

``watermark`` is in ms, NEVER for an operator that goes by processing time. ``held_by`` is the position of the source
with the lowest watermark; -1 if all are idle, ``BY_CLOCK`` for processing time. ``held_split`` is the
:func:`split_number` of its split.
"""

BY_CLOCK = -2

NOW = "now"
"""The column of packed rows with the time of the batch in Spark's offset log, in ms, as text."""

_remembered = Remembered()
"""This worker's cache for the partitions that it has processed; Spark chooses the next partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """Reads the output of ``operator`` from packed rows; ``buckets`` are the ids of the partitions of ``place``.

    An operator has ``event_time`` if it goes by the watermark. It is a TimeOperator then. Another operator passes the
    marks of its sources on.
    """

    operator: StatefulOperator | TimeOperator
    place: Place
    buckets: Sequence[int]
    event_time: EventTime | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch], report: Report) -> Iterator[pa.Table]:
        """Yield the rows that the operator emits in this batch.

        If no row, no mark and no tick came, it yields nothing and does not call the operator. Raise RunError, which
        names the operator, if its state cannot be read or written.
        """
        packed: list[PackedRow] = []
        now = 0
        for batch in batches:
            packed += packed_rows(batch)
            now = int(batch[NOW][0].as_py()) if batch.num_rows else now
        if not packed:
            return
        partition = self.buckets.index(packed[0].bucket)
        packed.sort(key=lambda row: (row.side, row.task, row.sequence))
        deltas: list[pa.Table | None] = []
        for side, spec in enumerate(self.operator.inputs):
            tables = [from_blob(row.blob) for row in packed if row.side == side]
            # One hash came with the rows. The others are computed here, because they would only enlarge the shuffle.
            deltas.append(hashed(in_row_order(joined(tables, spec.presum)), spec.hashes, 1) if tables else None)
        marks: Marks = {}
        for row in packed:
            if row.side == MARK:
                decode_marks(row.blob, marks)
        del packed
        yield from self._call(deltas, partition, now, marks, report)

    def _call(
        self, deltas: Sequence[pa.Table | None], partition: int, now: int, marks: Marks, report: Report
    ) -> Iterator[pa.Table]:
        files = files_at(self.place.root)
        before_it = files.operations.counts()
        try:
            store = open_partition(files, self.place, partition, this_task(self.place.batch_key).batch, _remembered)
            before = store.before
            moved = self._moved(store, marks, now)
            result = self._processed(deltas, store, now, moved)
            store.publish(
                result.manifest,
                result.state_rows,
                result.state_bytes,
                watermark=None if moved is None else stored_with(moved.stored, result),
            )
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
        yield from row_chunks(result.output)
        if result.late is not None:
            yield from row_chunks(result.late)
        if not partition:  # all partitions would report the same
            report.marks |= self._marks_above(moved, marks)
        report.metrics += [
            result.rows_in,
            result.output.num_rows,
            result.state_rows,
            result.state_rows - (0 if before is None else before.state_rows),
            result.state_bytes,
            result.state_bytes - (0 if before is None else before.state_bytes),
            result.oldest_write,
            1,
            *asked,
            *(() if moved is None else _time_metrics(moved, result, self.event_time)),
            *result.metrics,
            *encoded_uses(result.uses),
        ]

    def _marks_above(self, moved: Moved | None, marks: Marks) -> Marks:
        """Return the marks for the operators above: the operator's own, or the marks of its sources."""
        if self.event_time is None or moved is None:
            return marks
        return {(self.event_time.number, ""): moved.mark(self.event_time.hold)}

    def _moved(self, store: PartitionStore, marks: Marks, now: int) -> Moved | None:
        if self.event_time is None:
            return None
        return moved_watermark(store.watermark, marks, self.event_time, now)

    def _processed(
        self, deltas: Sequence[pa.Table | None], store: PartitionStore, now: int, moved: Moved | None
    ) -> Result:
        tables = self.operator.inherit(store) if store.inherited else store.tables
        process: Any = self.operator.process
        result: Result = process(deltas, tables, store, now, *(() if moved is None else (moved.watermarks,)))
        return result


def stored_with(stored: StoredWatermark, result: Result) -> StoredWatermark:
    """Return ``stored`` with the late rows of a batch, and the time at which the operator has something to do."""
    if result.due is not None:
        stored = replace(stored, due=result.due if stored.due is None else min(result.due, stored.due))
    if not result.late_rows:
        return stored
    return replace(stored, lateness=added_lateness(stored.lateness, result.lateness))


def _time_metrics(moved: Moved, result: Result, event_time: EventTime | None) -> tuple[int, ...]:
    held_by, split = (-1, None) if moved.holder is None else (moved.holder.source, moved.holder.split)
    after = moved.watermarks.after
    if event_time is not None and event_time.by_clock:
        held_by = BY_CLOCK
        after = after if after == FOREVER else NEVER  # the clock is no watermark that could lag behind it
    return after, held_by, split_number(split or ""), result.late_rows, result.waiting_rows


def split_number(split: str) -> int:
    """Return the number for a split in metrics, which are integers; 0 for the only split of a source.

    The driver knows the names of all splits from the offsets of their sources.

    >>> split_number("bids/3"), split_number("")
    (803468776, 0)
    """
    return crc32(split.encode())


def joined(tables: Sequence[pa.Table], presum: Presum | None) -> pa.Table:
    """Return one delta with the rows of the tables in order, some of which may have been summed up."""
    if presum is not None and any(table.schema != tables[0].schema for table in tables):
        summed = presum.schema
        tables = [table if table.schema == summed else presum.lift(table) for table in tables]
    return pa.concat_tables(tables)
