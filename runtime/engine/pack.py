"""Packs the rows of one input into Arrow blobs, one per target partition, for a shuffle by bucket.

It runs in ``mapInArrow``. It hashes the rows, whether they come from Spark or are read here from files or blobs, and
normalises floating-point numbers as state needs them. If the operator has a presum, rows are summed up first. A task
that gains too little from it does not sum up its other rows. ``task`` and ``seq`` record the origin of a blob, so that
the receiver can restore the order of rows. Knows no state and no operator.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from pyspark import TaskContext

from hintplan.runtime.engine.blobs import blob_column
from hintplan.runtime.engine.marks import Marks, encode_marks, take_marks
from hintplan.runtime.engine.rows import Metrics, Read, Report
from hintplan.runtime.kernels.comparison import normalise_floats
from hintplan.runtime.kernels.xxhash import hash_rows
from hintplan.runtime.operator import Presum, hash_column
from hintplan.runtime.storage.place import partitions_of
from hintplan.runtime.worker.metered import METRICS_COLUMN

PACKED_DDL = f"bucket int, side tinyint, task int, seq int, blob binary, {METRICS_COLUMN} array<bigint>"
TICK = -1
"""The ``side`` of a row without data, which only makes Spark call a partition in this batch."""
MARK = -2
"""The ``side`` of a row whose blob has the marks of a task (:mod:`hintplan.runtime.engine.marks`)."""

_PACKED = pa.schema(
    [
        ("bucket", pa.int32()),
        ("side", pa.int8()),
        ("task", pa.int32()),
        ("seq", pa.int32()),
        ("blob", pa.binary()),
        (METRICS_COLUMN, pa.list_(pa.int64())),
    ]
)
_MAX_ROWS = 1 << 18
_MAX_BYTES = 32 << 20


def as_it_is(batches: Iterable[pa.RecordBatch], report: Report) -> Iterator[pa.Table]:
    """Return the rows that come from Spark, unchanged."""
    return (pa.Table.from_batches([batch]) for batch in batches)


def with_their_marks(batches: Iterable[pa.RecordBatch], report: Report) -> Iterator[pa.Table]:
    """Return the rows that come from Spark with their marks, and report the marks."""
    return (take_marks(pa.Table.from_batches([batch]), report.marks) for batch in batches)


@dataclass(frozen=True, slots=True, kw_only=True)
class Packing:
    """Packs the rows of the input ``side``; picklable.

    ``schema`` has the columns to keep. Rows are routed by the hash of the columns ``route``, which is added as a
    column. ``buckets`` has the bucket id of each target partition. ``tables`` makes rows from the batches of a task,
    and ``presum`` sums them up. With ``as_they_are``, rows are not normalised, because no state keeps them. With
    ``marks``, the receiver goes by event time, and every partition of it gets the marks of each task.
    """

    side: int
    schema: pa.Schema
    route: tuple[str, ...]
    buckets: Sequence[int]
    presum: Presum | None = None
    tables: Read = as_it_is
    as_they_are: bool = False
    marks: bool = False

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield packed rows for the batches of one task; task 0 also yields a tick for every bucket.

        Every running stage of Spark has a task 0, so Spark calls every partition if there is data anywhere. The values
        that ``tables`` has counted go with a tick at the end.
        """
        task = TaskContext.get()
        number = 0 if task is None else task.partitionId()
        if number == 0:
            yield _ticks(self.buckets, number)
        report = Report()
        sequence = 0
        presum = self.presum
        for table in gather(self.tables(batches, report)):
            conformed = _conform(table.select(self.schema.names), self.schema)
            rows, presum = self._summed(conformed if self.as_they_are else normalise_floats(conformed), presum)
            parts = _split(rows, len(self.buckets))
            yield _rows(
                [self.buckets[p] for p, _ in parts],
                [self.side] * len(parts),
                number,
                range(sequence, sequence + len(parts)),
                blob_column([part for _, part in parts]),
            )
            sequence += len(parts)
        if self.marks and report.marks:
            yield _marks(self.buckets, number, report.marks)
        if report.metrics:
            yield _ticks(self.buckets[:1], number, report.metrics)

    def _summed(self, rows: pa.Table, presum: Presum | None) -> tuple[pa.Table, Presum | None]:
        """Return ``rows`` with their hashes, summed up by ``presum``, and the presum for the next rows."""
        if presum is None:
            return hashed(rows, [self.route]), None
        if presum.by_hash:
            rows = hashed(rows, [self.route])
        sums = presum.sum_up(rows)
        summed = rows if sums is None else sums
        with_hashes = summed if presum.by_hash else hashed(summed, [self.route])
        return with_hashes, None if sums is None else presum


@dataclass(frozen=True, slots=True)
class Ticking:
    """Calls the partitions with these ``buckets``, without regard to its input; picklable.

    ``marks`` are the marks that the partitions receive besides.
    """

    buckets: Sequence[int]
    marks: Marks = field(default_factory=dict)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield _ticks(self.buckets, 0)
        if self.marks:
            yield _marks(self.buckets, 0, self.marks)


def _ticks(buckets: Sequence[int], task: int, metrics: Metrics | None = None) -> pa.RecordBatch:
    size = len(buckets)
    return _rows(buckets, [TICK] * size, task, range(size), pa.nulls(size, pa.binary()), metrics)


def _marks(buckets: Sequence[int], task: int, marks: Marks) -> pa.RecordBatch:
    size = len(buckets)
    return _rows(buckets, [MARK] * size, task, range(size), pa.array([encode_marks(marks)] * size, pa.binary()))


def _rows(
    buckets: Sequence[int],
    sides: Sequence[int],
    task: int,
    sequence: Sequence[int],
    blobs: pa.Array,
    metrics: Metrics | None = None,
) -> pa.RecordBatch:
    columns = [
        pa.array(buckets, pa.int32()),
        pa.array(sides, pa.int8()),
        pa.array([task] * len(buckets), pa.int32()),
        pa.array(sequence, pa.int32()),
        blobs,
        pa.array([metrics] * len(buckets), pa.list_(pa.int64())),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_PACKED)


@dataclass(frozen=True, slots=True)
class PackedRow:
    """A packed row; ``side`` is the number of the input, ``TICK`` or ``MARK``."""

    bucket: int
    side: int
    task: int
    sequence: int
    blob: pa.Buffer


def packed_rows(batch: pa.RecordBatch) -> Iterator[PackedRow]:
    """Yield the packed rows of ``batch``; blobs are not copied."""
    columns = (batch[name].to_pylist() for name in ("bucket", "side", "task", "seq"))
    for row, (bucket, side, task, sequence) in enumerate(zip(*columns, strict=True)):
        yield PackedRow(bucket, side, task, sequence, batch["blob"][row].as_buffer())


def gather(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield the rows of the tables in larger tables, so that they become few blobs."""
    pending: list[pa.Table] = []
    rows = size = 0
    for table in tables:
        pending.append(table)
        rows += table.num_rows
        size += table.nbytes
        if rows >= _MAX_ROWS or size >= _MAX_BYTES:
            yield pa.concat_tables(pending)
            pending, rows, size = [], 0, 0
    if pending:
        yield pa.concat_tables(pending)


def _conform(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the same data under ``schema``.

    Spark labels timestamps with the session's time zone, and fields as not null.
    """
    return table if table.schema.equals(schema) else table.cast(schema)


def hashed(table: pa.Table, hashes: Sequence[tuple[str, ...]], first: int = 0) -> pa.Table:
    """Return ``table`` with a hash column for each set of columns in ``hashes``, from the ``first`` set on."""
    if first >= len(hashes):
        return table
    whole = table.combine_chunks()
    for index, columns in enumerate(hashes[first:], first):
        hash_values = hash_rows([whole[name].chunk(0) for name in columns], whole.num_rows)
        whole = whole.append_column(hash_column(index), pa.array(hash_values))
    return whole


def _split(table: pa.Table, partitions: int) -> list[tuple[int, pa.Table]]:
    """Return the non-empty parts of ``table`` by partition, with rows in order.

    One ``take`` sorts the rows; the parts are slices without a copy.
    """
    if partitions == 1:
        return [(0, table)]
    # Few bits make numpy's stable sort a radix sort.
    target = partitions_of(table.column(hash_column(0)).to_numpy(), partitions)
    target = target.astype(np.min_scalar_type(partitions - 1))
    table = table.take(pa.array(np.argsort(target, kind="stable")))
    counts = np.bincount(target, minlength=partitions)
    starts = np.concatenate(([0], np.cumsum(counts)))
    return [(int(p), table.slice(starts[p], counts[p])) for p in np.flatnonzero(counts)]
