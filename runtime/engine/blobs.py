"""Arrow tables as IPC blobs, the form in which rows cross Spark between operators.

A blob is one Arrow IPC stream, uncompressed, because Spark compresses its shuffle itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

CHUNK_ROWS = 1 << 18
CHUNK_BYTES = 32 << 20
"""The approximate maximum size of a blob: far below the 2 GiB of a Spark value, and small enough to stream."""


def from_blob(blob: bytes | pa.Buffer) -> pa.Table:
    """Return the table in ``blob``, without copying its columns."""
    with pa.ipc.open_stream(pa.py_buffer(blob)) as reader:
        return reader.read_all()


def blob_column(tables: Sequence[pa.Table]) -> pa.Array:
    """Return ``tables`` as a binary column of IPC streams, written one after the other into one buffer."""
    sink = pa.BufferOutputStream()
    offsets = [0]
    for table in tables:
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        offsets.append(sink.tell())
    starts = pa.array(offsets, pa.int32()).buffers()[1]
    return pa.Array.from_buffers(pa.binary(), len(tables), [None, starts, sink.getvalue()])


def row_chunks(table: pa.Table) -> Iterator[pa.Table]:
    """Yield zero-copy slices of at most CHUNK_ROWS rows and about CHUNK_BYTES, in order; none for an empty table."""
    if table.num_rows == 0:
        return
    rows = max(1, min(CHUNK_ROWS, CHUNK_BYTES * table.num_rows // max(1, table.nbytes)))
    for start in range(0, table.num_rows, rows):
        yield table.slice(start, rows)
