r"""Reads the content of text files, and cuts it into blocks of whole records.

A file with the suffix of a Hadoop codec is decompressed, as in Spark. Several tasks may read a large file in pieces. A
piece has the lines that begin behind its start, up to the line that begins at its end, as in Hadoop. A line ends with
``\n``, ``\r\n`` or ``\r``.

    for block in blocks(content("/data/orders/1.json.gz"), last_end):
        ...
"""

from __future__ import annotations

import bz2
import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import IO

import pyarrow as pa

from hintplan.runtime.connectors.filesystem.file_systems import opened
from hintplan.runtime.storage.remote_files import patiently

BLOCK = 4 << 20
"""The size of a block in bytes, unless a record is longer."""
FAULTS = (OSError, EOFError, ValueError, zlib.error, pa.ArrowException)
"""The errors of files that cannot be read or decompressed."""

_CHUNK = 1 << 20
_REQUEST = 8 << 20
"""The number of bytes that one request reads from a remote file."""
_LOOK = 1 << 16
_LINE_END = re.compile(rb"\r\n?|\n")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

LastEnd = Callable[[bytes], int]
"""Returns the position behind the last record that ends in some data, or 0."""


def content(path: str) -> Iterator[bytes]:
    """Yield the decompressed content of the file at ``path``."""
    unpack = CODECS.get(path[path.rfind(".") :] if "." in path else "", _chunks)
    with _open(path) as file:
        yield from unpack(file)


def piece(path: str, start: int, length: int) -> Iterator[bytes]:
    """Yield the lines of the uncompressed file at ``path`` that belong to the piece from ``start``."""
    with _open(path) as file:
        # The client of HDFS cannot seek behind the end of a file.
        end = _line_behind(file, min(start + length, file.seek(0, io.SEEK_END)))
        begin = _line_behind(file, start) if start else 0
        file.seek(begin)
        while begin < end and (data := file.read(min(_CHUNK, end - begin))):
            yield data
            begin += len(data)


def blocks(chunks: Iterator[bytes], last_end: LastEnd, size: int = BLOCK) -> Iterator[bytes]:
    """Yield the content in ``chunks`` as blocks of whole records; the last record needs no end."""
    pending: list[bytes] = []
    pending_size, wanted, is_first = 0, size, True
    for chunk in chunks:
        pending.append(chunk)
        pending_size += len(chunk)
        if pending_size < wanted:
            continue
        data = b"".join(pending)
        if is_first:
            data, is_first = data.removeprefix(_BYTE_ORDER_MARK), False
        end = last_end(data)
        if end:
            yield data[:end]
        pending, pending_size = [data[end:]], len(data) - end
        # If a record is longer than a block, its end is sought each time that the data have doubled.
        wanted = max(size, 2 * pending_size)
    data = b"".join(pending)
    if is_first:
        data = data.removeprefix(_BYTE_ORDER_MARK)
    if data:
        yield data


@contextmanager
def _open(path: str) -> Iterator[IO[bytes]]:
    """Open the file at ``path``, a local path or a URL as Hadoop writes it."""
    if "://" not in path:
        with open(path, "rb", buffering=_CHUNK) as local:
            yield local
        return
    system, inner = opened(path)
    with system.open_input_file(inner) as remote, io.BufferedReader(_Patient(remote), _REQUEST) as file:
        yield file


class _Patient(io.RawIOBase):
    """A remote file, whose failed reads are repeated."""

    def __init__(self, file: pa.NativeFile) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        return int(self._file.tell())

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        data = patiently(partial(self._file.read, len(buffer)))
        buffer[: len(data)] = data
        return len(data)


def _line_behind(file: IO[bytes], position: int) -> int:
    """Return where the first line begins behind ``position``, or the end of the file."""
    file.seek(position)
    while data := file.read(_LOOK):
        if match := _LINE_END.search(data):
            end = position + match.end()
            is_cut = match[0] == b"\r" and match.end() == len(data)
            return end + (is_cut and file.read(1) == b"\n")
        position += len(data)
    return file.seek(0, io.SEEK_END)


def _chunks(file: IO[bytes] | gzip.GzipFile) -> Iterator[bytes]:
    while data := file.read(_CHUNK):
        yield data


def _inflated(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the content of a stream of zlib."""
    inflater = zlib.decompressobj()
    for packed in _chunks(file):
        while packed:
            yield inflater.decompress(packed, _CHUNK)
            packed = inflater.unconsumed_tail
    if not inflater.eof:
        raise EOFError("the file ends too early")


def _in_blocks(file: IO[bytes], unpack: Callable[[bytes, int], bytes]) -> Iterator[bytes]:
    """Yield the content of Hadoop's blocks: each has its size, and parts with their compressed sizes."""
    while head := file.read(4):
        missing = int.from_bytes(head)
        while missing > 0:
            data = unpack(file.read(int.from_bytes(file.read(4))), missing)
            if not data:
                raise EOFError("the file ends too early")
            missing -= len(data)
            yield data


def _snappy(packed: bytes, missing: int) -> bytes:
    """Decompress a part, which begins with its size: seven bits per byte, the lowest first."""
    size = sum((byte & 0x7F) << 7 * place for place, byte in enumerate(packed[: _size_bytes(packed)]))
    plain: bytes = pa.Codec("snappy").decompress(packed, size, asbytes=True)
    return plain


def _size_bytes(packed: bytes) -> int:
    return next((place for place, byte in enumerate(packed, 1) if byte < 0x80), 0)


def _lz4(packed: bytes, missing: int) -> bytes:
    plain: bytes = pa.Codec("lz4_raw").decompress(packed, missing, asbytes=True)
    return plain


CODECS: Mapping[str, Callable[[IO[bytes]], Iterator[bytes]]] = {
    ".gz": lambda file: _chunks(gzip.GzipFile(fileobj=file)),
    ".bz2": lambda file: _chunks(bz2.BZ2File(file)),
    ".deflate": _inflated,
    ".zst": lambda file: _chunks(pa.CompressedInputStream(file, "zstd")),
    ".snappy": lambda file: _in_blocks(file, _snappy),
    ".lz4": lambda file: _in_blocks(file, _lz4),
}
"""Functions that decompress a file, by its suffix."""
