"""Packing: the rows of one input become Arrow blobs, one per target partition, ready to be shuffled by bucket.

Runs in ``mapInArrow`` on the data columns, ``__kind`` and the hash columns that Spark computed. Where the operator says
how, rows are summed up first; a task that finds that not worth it leaves its other rows as they are. ``task`` and
``seq`` say where a blob came from, so that the receiver can restore the order of rows. Knows no state and no operator.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from pyspark import TaskContext

from runtime.operator import Presum, hash_column
from runtime.shell.blobs import blob_column

__all__ = ["PACKED_DDL", "TICK", "pack"]

PACKED_DDL = "bucket int, side tinyint, task int, seq int, blob binary"
TICK = -1
"""The ``side`` of a row that carries no data and only makes Spark call a partition in this batch."""

_PACKED = pa.schema(
    [("bucket", pa.int32()), ("side", pa.int8()), ("task", pa.int32()), ("seq", pa.int32()), ("blob", pa.binary())]
)
_MAX_ROWS = 1 << 18
_MAX_BYTES = 32 << 20


def pack(
    batches: Iterable[pa.RecordBatch],
    *,
    side: int,
    schema: pa.Schema,
    buckets: Sequence[int],
    presum: Presum | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield packed rows for the batches of one task; task 0 also yields a tick for every bucket.

    A stage of Spark that runs at all has a task 0, so with any data anywhere each partition is called, and an idle one
    can expire its state. ``schema`` is what rows have, ``buckets`` the bucket id per target partition.
    """
    task = TaskContext.get()
    number = 0 if task is None else task.partitionId()
    if number == 0:
        yield _rows(buckets, [TICK] * len(buckets), number, range(len(buckets)), pa.nulls(len(buckets), pa.binary()))
    sequence = 0
    for table in _gather(batches):
        rows = _conform(table, schema)
        sums = None if presum is None else presum.sum_up(rows)
        if sums is None:
            presum = None
        parts = _split(rows if sums is None else sums, len(buckets))
        yield _rows(
            [buckets[p] for p, _ in parts],
            [side] * len(parts),
            number,
            range(sequence, sequence + len(parts)),
            blob_column([part for _, part in parts]),
        )
        sequence += len(parts)


def _rows(
    buckets: Sequence[int], sides: Sequence[int], task: int, sequence: Sequence[int], blobs: pa.Array
) -> pa.RecordBatch:
    columns = [
        pa.array(buckets, pa.int32()),
        pa.array(sides, pa.int8()),
        pa.array([task] * len(buckets), pa.int32()),
        pa.array(sequence, pa.int32()),
        blobs,
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_PACKED)


def _gather(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    pending: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if batch.num_rows == 0:
            continue
        pending.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= _MAX_ROWS or size >= _MAX_BYTES:
            yield pa.Table.from_batches(pending)
            pending, rows, size = [], 0, 0
    if pending:
        yield pa.Table.from_batches(pending)


def _conform(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The same data under ``schema``: Spark labels timestamps with the session's zone and fields as not null."""
    return table if table.schema.equals(schema) else table.cast(schema)


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
