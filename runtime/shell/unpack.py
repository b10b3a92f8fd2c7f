"""Unpacking: the blobs that an operator put out become columns again, in ``mapInArrow``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from runtime.shell.blobs import from_blob

__all__ = ["unpack"]


def unpack(batches: Iterable[pa.RecordBatch], *, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of all blobs, in order; rows without a blob carry metrics and yield nothing."""
    for batch in batches:
        for blob in batch.column("blob"):
            if blob.is_valid:
                yield from from_blob(blob.as_buffer()).cast(schema).to_batches()
