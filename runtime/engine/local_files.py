"""The local copies of segments: whole and right, or as good as not there.

A file ends with its length and checksum, so one that was cut off, changed or half-written by a dead worker or a full
disk is told from a right one when a process first reads it, and removed. What a process has written or checked is not
checked again while it stays the same file. Knows bytes, no Arrow and no state store.
"""

from __future__ import annotations

import mmap
import os
import re
import struct
import uuid
import weakref
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from plans.errors import RunError

Identity = tuple[int, int, int]
"""Inode, size and time of a file, by which it is known again."""

_TRAILER = struct.Struct("<8sQI")
_MAGIC = b"hintplan"
_READ_BYTES = 1 << 20

_checked: dict[str, Identity] = {}
"""Files that this process knows to be right."""
_mapped: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()
"""Files that this process has in memory."""
_swept: set[str] = set()
"""Directories that this process has cleared of what dead processes left half-written."""


class Summed:
    """A file that keeps the length and the checksum of what is written to it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.length = 0
        self.sum = 0
        self.closed = False

    def write(self, data: bytes) -> int:
        part = memoryview(data)
        self.sum = zlib.crc32(part, self.sum)
        self.length += part.nbytes
        return self._file.write(part)

    def flush(self) -> None:
        self._file.flush()


class LocalFiles:
    """Files by token in ``directory``; RunError names ``operator`` when one cannot be written."""

    def __init__(self, directory: Path, operator: str) -> None:
        self._directory = directory
        self._operator = operator

    def path(self, token: str) -> Path:
        return self._directory / f"{token}.arrow"

    def read(self, token: str) -> pa.Buffer | None:
        """What was written under ``token``, mapped into memory; None if it is not there, or damaged and now removed."""
        path = self.path(token)
        try:
            with open(path, "rb") as source:
                pages = mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_READ)
        except FileNotFoundError:
            _checked.pop(str(path), None)
            return None
        except ValueError:  # an empty file cannot be mapped
            self.remove(token)
            return None
        _mapped.add(pages)
        whole = pa.py_buffer(pages)
        if _checked.get(str(path)) != identity(path):
            if not _is_right(whole):
                self.remove(token)
                return None
            _checked[str(path)] = identity(path)
        return whole.slice(0, whole.size - _TRAILER.size)

    @contextmanager
    def writing(self, token: str) -> Iterator[Summed]:
        """A file to write to, which has its name when the block has ended, and is gone if that fails."""
        path = self.path(token)
        # Two attempts of one task may fetch the same segment at once; each has a file of its own until it is whole.
        temporary = self._directory / f"{token}.{os.getpid()}.{uuid.uuid4().hex}.tmp"
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            self._sweep()
            with open(temporary, "wb") as file:
                summed = Summed(file)
                yield summed
                file.write(_TRAILER.pack(_MAGIC, summed.length, summed.sum))
            os.replace(temporary, path)
            _checked[str(path)] = identity(path)
        except OSError as error:
            reason = error.strerror or str(error)
            raise RunError(
                f"operator {self._operator} cannot keep its state on this worker: {reason} ({path})",
                hint="make room there, or choose another directory with --conf spark.local.dir=DIRECTORY; "
                "the checkpoint has all that was committed",
            ) from error
        finally:
            temporary.unlink(missing_ok=True)

    def write(self, token: str, parts: Iterable[bytes]) -> None:
        """Keep ``parts``, one after the other, under ``token``."""
        with self.writing(token) as file:
            for part in parts:
                file.write(part)

    def parts(self, token: str, size: int) -> Iterator[bytes]:
        """What is kept under ``token``, in pieces of ``size`` bytes."""
        path = self.path(token)
        with open(path, "rb") as source:
            left = path.stat().st_size - _TRAILER.size
            while left and (part := source.read(min(size, left))):
                left -= len(part)
                yield part

    def remove(self, token: str) -> None:
        """Remove what is there, if anything is."""
        self.path(token).unlink(missing_ok=True)
        _checked.pop(str(self.path(token)), None)

    def _sweep(self) -> None:
        """Remove what processes that are no more left half-written; once in the life of a process."""
        if str(self._directory) in _swept:
            return
        _swept.add(str(self._directory))
        for path in self._directory.glob("*.tmp"):
            writer = re.fullmatch(r"[^.]+\.(\d+)\.[0-9a-f]+\.tmp", path.name)
            if writer is None or not _is_process(int(writer[1])):
                path.unlink(missing_ok=True)


def let_pages_go() -> None:
    """Take the pages of mapped files out of this process; what is read again comes back from the system's cache."""
    if hasattr(mmap, "MADV_DONTNEED"):  # elsewhere than on Unix, the system takes them when it needs them
        for pages in list(_mapped):
            pages.madvise(mmap.MADV_DONTNEED)


def identity(path: Path) -> Identity:
    """By what the file at ``path`` is known again."""
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


def _is_right(whole: pa.Buffer) -> bool:
    body = whole.size - _TRAILER.size
    if body < 0:
        return False
    magic, length, expected = _TRAILER.unpack(whole.slice(body))
    if magic != _MAGIC or length != body:
        return False
    found = 0
    for start in range(0, body, _READ_BYTES):
        found = zlib.crc32(whole.slice(start, min(_READ_BYTES, body - start)), found)
    return bool(found == expected)


def _is_process(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
