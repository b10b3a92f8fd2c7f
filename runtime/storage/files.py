"""Files below a directory on any file system: list, read, publish atomically, remove.

files = files_at("/data/checkpoints/revenue")
files.publish("state/1.1.manifest", b"...")
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from functools import cache
from typing import Protocol

import pyarrow as pa

from hintplan.runtime.storage.local_files import LocalFiles
from hintplan.runtime.storage.mounts import is_shared
from hintplan.runtime.storage.operations import FileOperations

NAMES = pa.schema([("name", pa.string())])


class ByteSink(Protocol):
    """A destination for the bytes of a file."""

    def write(self, data: bytes | memoryview) -> int: ...


class Files(Protocol):
    """Files with paths relative to a root. A published file never changes, and the first file of a name stays."""

    @property
    def root(self) -> str: ...

    @property
    def operations(self) -> FileOperations:
        """The file system operations of this object."""
        ...

    def names(self, folder: str) -> list[str]:
        """Return the names in ``folder``; none if it does not exist."""
        ...

    def read(self, path: str) -> pa.Buffer:
        """Return the content of a file; FileNotFoundError if it does not exist."""
        ...

    def writing(self, path: str) -> AbstractContextManager[ByteSink]:
        """Provide a file to write to, and publish it under ``path`` after the block; discard it after an error."""
        ...

    def publish(self, path: str, data: bytes) -> bool:
        """Write a whole file unless a file of that name exists; return whether it was written."""
        ...

    def mark(self, path: str) -> None:
        """Create an empty file if that costs next to nothing."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file, if it is there."""
        ...

    def take(self, path: str, source: Files, *, link: bool) -> bool:
        """Copy a file of ``source`` to the same path without transferring its bytes here; return False if not possible.

        With ``link``, it may be a hard link; then the file must never change.
        """
        ...

    def refresh(self, folder: str) -> None:
        """Ensure that later calls list and read everything that any machine has published in ``folder`` so far."""
        ...

    def settle(self, path: str) -> None:
        """Ensure that a file, or the names in a folder, survive a power failure."""
        ...

    def distrust(self, path: str) -> bool:
        """Handle damaged content of ``path``, and return whether reading it again may succeed."""
        ...


@cache
def files_at(root: str) -> Files:
    """Return the files below ``root``, a path or a URL; one object per process. RunError for an unknown scheme."""
    if "://" in root and not root.startswith("file://"):
        from hintplan.runtime.storage.remote_files import remote_files

        return remote_files(root)
    path = root.removeprefix("file://").removeprefix("file:")
    return LocalFiles(path, shared=is_shared(path))


def names_in(directory: str) -> tuple[str, ...]:
    """Return the names of the entries of ``directory``, a path or a URL; none if it does not exist."""
    if "://" in directory and not directory.startswith("file://"):
        from hintplan.runtime.storage.remote_files import remote_files

        root, _, folder = directory.rpartition("/")
        return tuple(remote_files(root).names(folder))
    with suppress(FileNotFoundError):
        return tuple(os.listdir(directory.removeprefix("file://").removeprefix("file:")))
    return ()


def names_by_task(batches: Iterable[pa.RecordBatch], *, directory: str) -> Iterator[pa.RecordBatch]:
    """Yield the same names as rows of ``NAMES``, in the task that has an input row."""
    if any(batch.num_rows for batch in list(batches)):
        yield pa.record_batch([pa.array(names_in(directory), pa.string())], schema=NAMES)


def publish_each(root: str, contents: Mapping[str, bytes]) -> None:
    """Publish files below ``root``, by path; a file that exists stays."""
    files = files_at(root)
    for path, content in contents.items():
        files.publish(path, content)
        files.settle(path.rpartition("/")[0])


def published_by_task(
    batches: Iterable[pa.RecordBatch], *, root: str, contents: Mapping[str, bytes]
) -> Iterator[pa.RecordBatch]:
    """Publish the files in the task that has an input row, since only the server of Spark Connect reaches them."""
    if any(batch.num_rows for batch in list(batches)):
        publish_each(root, contents)
        yield pa.record_batch([pa.array(contents, pa.string())], schema=NAMES)
