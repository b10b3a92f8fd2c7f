"""Packing: the rows of one input become Arrow blobs, one per target partition, ready to be shuffled by bucket.

Runs in ``mapInArrow``. Rows are hashed here, whether they come from Spark or from files or blobs that are read here,
and floating-point numbers get the one form in which state knows them.
Where the operator says how, rows are summed up first; a task that finds that not worth it leaves its other rows as they
are. ``task`` and ``seq`` say where a blob came from, so that the receiver can restore the order of rows. Knows no state
and no operator.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark import TaskContext

from runtime.engine.arrow_rows import Read, Step, tables
from runtime.engine.blobs import blob_column
from runtime.kernels.floats import normal_floats
from runtime.kernels.xxhash import hash_rows
from runtime.operator import Presum, hash_column
from runtime.worker.zip_paths import forget_zip_finders

UNCOUNTED = "uncounted"
"""The column that says how many rows a task has read beyond those that Spark has counted."""

PACKED_DDL = f"bucket int, side tinyint, task int, seq int, blob binary, {UNCOUNTED} bigint"
TICK = -1
"""The ``side`` of a row that carries no data and only makes Spark call a partition in this batch."""

_PACKED = pa.schema(
    [
        ("bucket", pa.int32()),
        ("side", pa.int8()),
        ("task", pa.int32()),
        ("seq", pa.int32()),
        ("blob", pa.binary()),
        (UNCOUNTED, pa.int64()),
    ]
)
_MAX_ROWS = 1 << 18
_MAX_BYTES = 32 << 20


def as_it_is(batch: pa.RecordBatch) -> Iterator[pa.Table]:
    """A batch of rows that come from Spark."""
    yield pa.Table.from_batches([batch])


@dataclass(frozen=True, slots=True, kw_only=True)
class Packing:
    """How the rows of the input ``side`` are packed; picklable.

    ``schema`` has the columns of rows that are wanted, to which the hash of the columns ``route`` is added, by which
    rows are routed; ``buckets`` is the bucket id per target partition. ``read`` and ``steps`` make the rows of what a
    batch has, and ``presum`` sums them up.
    """

    side: int
    schema: pa.Schema
    route: tuple[str, ...]
    buckets: Sequence[int]
    presum: Presum | None = None
    read: Read = as_it_is
    steps: Sequence[Step] = ()

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield packed rows for the batches of one task; task 0 also yields a tick for every bucket.

        A stage of Spark that runs at all has a task 0, so with any data anywhere each partition is called, and an idle
        one can expire its state. A tick at the end says how many rows were read beyond those of ``batches``.
        """
        forget_zip_finders()
        task = TaskContext.get()
        number = 0 if task is None else task.partitionId()
        if number == 0:
            yield _ticks(self.buckets, number, None)
        counter = _Counter()
        sequence = 0
        presum = self.presum
        for table in _gather(tables(counter.counted(batches, self.read), self.steps)):
            rows = hashed(normal_floats(_conform(table.select(self.schema.names), self.schema)), [self.route])
            sums = None if presum is None else presum.sum_up(rows)
            if sums is None:
                presum = None
            parts = _split(rows if sums is None else sums, len(self.buckets))
            yield _rows(
                [self.buckets[p] for p, _ in parts],
                [self.side] * len(parts),
                number,
                range(sequence, sequence + len(parts)),
                blob_column([part for _, part in parts]),
            )
            sequence += len(parts)
        if counter.uncounted:
            yield _ticks(self.buckets[:1], number, counter.uncounted)


class _Counter:
    """Reads, and keeps how many rows there were beyond those that stand for them."""

    def __init__(self) -> None:
        self.uncounted = 0

    def counted(self, batches: Iterable[pa.RecordBatch], read: Read) -> Iterator[pa.Table]:
        for batch in batches:
            self.uncounted -= batch.num_rows
            for table in read(batch):
                self.uncounted += table.num_rows
                yield table


def _ticks(buckets: Sequence[int], task: int, uncounted: int | None) -> pa.RecordBatch:
    size = len(buckets)
    return _rows(buckets, [TICK] * size, task, range(size), pa.nulls(size, pa.binary()), uncounted)


def _rows(
    buckets: Sequence[int],
    sides: Sequence[int],
    task: int,
    sequence: Sequence[int],
    blobs: pa.Array,
    uncounted: int | None = None,
) -> pa.RecordBatch:
    columns = [
        pa.array(buckets, pa.int32()),
        pa.array(sides, pa.int8()),
        pa.array([task] * len(buckets), pa.int32()),
        pa.array(sequence, pa.int32()),
        blobs,
        pa.array([uncounted] * len(buckets), pa.int64()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_PACKED)


def _gather(found: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The rows of tables in larger tables, so that few blobs are made of them."""
    pending: list[pa.Table] = []
    rows = size = 0
    for table in found:
        pending.append(table)
        rows += table.num_rows
        size += table.nbytes
        if rows >= _MAX_ROWS or size >= _MAX_BYTES:
            yield pa.concat_tables(pending)
            pending, rows, size = [], 0, 0
    if pending:
        yield pa.concat_tables(pending)


def _conform(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The same data under ``schema``: Spark labels timestamps with the session's zone and fields as not null."""
    return table if table.schema.equals(schema) else table.cast(schema)


def hashed(table: pa.Table, hashes: Sequence[tuple[str, ...]], first: int = 0) -> pa.Table:
    """``table`` with a column for the hash of each set of columns in ``hashes``, from the ``first`` on."""
    if first >= len(hashes):
        return table
    whole = table.combine_chunks()
    for index, columns in enumerate(hashes[first:], first):
        found = hash_rows([whole[name].chunk(0) for name in columns], whole.num_rows)
        whole = whole.append_column(hash_column(index), pa.array(found))
    return whole


def _split(table: pa.Table, partitions: int) -> list[tuple[int, pa.Table]]:
    """The non-empty parts of ``table`` by partition, rows in their order; one ``take``, then slices without a copy."""
    if partitions == 1:
        return [(0, table)]
    hashes = table.column(hash_column(0)).to_numpy().view(np.uint64)
    # Few bits make numpy's stable sort a radix sort.
    target = (hashes % np.uint64(partitions)).astype(np.min_scalar_type(partitions - 1))
    table = table.take(pa.array(np.argsort(target, kind="stable")))
    counts = np.bincount(target, minlength=partitions)
    starts = np.concatenate(([0], np.cumsum(counts)))
    return [(int(p), table.slice(starts[p], counts[p])) for p in np.flatnonzero(counts)]
