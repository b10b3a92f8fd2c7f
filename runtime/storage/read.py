"""Reads manifests and segments, and refuses a file that is incomplete or damaged."""

from __future__ import annotations

import zlib

import numpy as np
import pyarrow as pa

from hintplan.runtime.storage.files import Files
from hintplan.runtime.storage.manifest import DamagedFile, Manifest, SegmentRef, body_start, decode_manifest
from hintplan.runtime.storage.names import MANIFEST
from hintplan.runtime.storage.open_segments import Key, OpenSegments
from hintplan.runtime.storage.place import END

_READ_BYTES = 1 << 20
_HASH = 0
"""The position of the hash column, by which the rows of a segment are sorted."""


def read_manifest_file(files: Files, path: str) -> Manifest:
    """Return the manifest at ``path``; errors as :func:`decode`, and FileNotFoundError if it was removed."""
    return decode_manifest(files.read(path), f"{files.root}/{path}")


def read_segment(files: Files, ref: SegmentRef, opened: OpenSegments) -> pa.Table:
    """Return the rows of the segment ``ref``; DamagedFile if the file is missing or damaged."""
    key = segment_key(files, ref)
    table = opened.find(key)
    if table is None:
        table = _read(files, ref)
        opened.keep(key, table)
    return table if ref.low is None or ref.high is None else _between(table, ref.low, ref.high)


def segment_key(files: Files, ref: SegmentRef) -> Key:
    """Return the key of an open segment."""
    return f"{files.root}/{ref.file}", ref.offset


def _read(files: Files, ref: SegmentRef) -> pa.Table:
    try:
        content = _part(files, ref)
        if not _is_right(content, ref) and files.distrust(ref.file):
            content = _part(files, ref)
    except FileNotFoundError as error:
        raise DamagedFile(f"{files.root}/{ref.file}", "is missing") from error
    if not _is_right(content, ref):
        raise DamagedFile(f"{files.root}/{ref.file}", f"has not the {ref.length} bytes that were written")
    return pa.ipc.open_file(content).read_all()


def _part(files: Files, ref: SegmentRef) -> pa.Buffer:
    whole = files.read(ref.file)
    if ref.file.endswith(MANIFEST):
        whole = whole.slice(body_start(whole, f"{files.root}/{ref.file}"))
    return whole.slice(ref.offset, ref.length) if ref.offset + ref.length <= len(whole) else whole.slice(0, 0)


def _is_right(content: pa.Buffer, ref: SegmentRef) -> bool:
    if len(content) != ref.length:
        return False
    crc = 0
    for start in range(0, ref.length, _READ_BYTES):
        crc = zlib.crc32(content.slice(start, min(_READ_BYTES, ref.length - start)), crc)
    return crc == ref.crc


def _between(table: pa.Table, low: int, high: int) -> pa.Table:
    """Return the rows with hashes from ``low`` to before ``high``, without a copy."""
    pieces = []
    for batch in table.to_batches():
        hashes = batch.column(_HASH).to_numpy()
        begin = int(np.searchsorted(hashes, np.int64(low)))
        end = batch.num_rows if high == END else int(np.searchsorted(hashes, np.int64(high)))
        if end > begin:
            pieces.append(batch.slice(begin, end - begin))
    return pa.Table.from_batches(pieces, table.schema)
