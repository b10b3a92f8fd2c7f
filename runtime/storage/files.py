"""The files below a directory, on whatever file system: listed, read, published whole or not at all, removed.

files = files_at("/data/checkpoints/revenue")
files.publish("state/1.1.manifest", b"...")
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Protocol

import pyarrow as pa

from hintplan.runtime.storage.local_files import LocalFiles
from hintplan.runtime.storage.mounts import is_shared
from hintplan.runtime.storage.operations import FileOperations


class Sink(Protocol):
    """Where the bytes of a file go."""

    def write(self, data: bytes | memoryview) -> int: ...


class Files(Protocol):
    """Paths are relative to a root. A file that is published never changes; the first of its name stays."""

    @property
    def root(self) -> str: ...

    @property
    def operations(self) -> FileOperations:
        """What was asked of the file system by this object."""
        ...

    def names(self, folder: str) -> list[str]:
        """The names in ``folder``, none if it is not there."""
        ...

    def read(self, path: str) -> pa.Buffer:
        """What is in a file; FileNotFoundError if it is not there."""
        ...

    def writing(self, path: str) -> AbstractContextManager[Sink]:
        """A file to write to, published under ``path`` when the block has ended, and gone if that fails."""
        ...

    def publish(self, path: str, data: bytes) -> bool:
        """Write a file as a whole, unless one of that name is there: whether it was not."""
        ...

    def mark(self, path: str) -> None:
        """Make an empty file, where that costs next to nothing."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file, if it is there."""
        ...

    def take(self, path: str, source: Files, *, link: bool) -> bool:
        """Have a file of ``source`` under the same path, without its bytes coming through here, if that can be; if not.

        Only with ``link`` may it be the same file under two names, which must then never change.
        """
        ...

    def refresh(self, folder: str) -> None:
        """See to it that what any machine has published in ``folder`` so far is listed from now on, and can be read."""
        ...

    def settle(self, path: str) -> None:
        """See that a file, or the names in a folder, outlive a loss of power."""
        ...

    def distrust(self, path: str) -> bool:
        """What was read of ``path`` is damaged: whether reading it again may find better."""
        ...


@cache
def files_at(root: str) -> Files:
    """The files below ``root``, a path or a URL; one object a process. RunError for an unknown scheme."""
    if "://" in root and not root.startswith("file://"):
        from hintplan.runtime.storage.remote_files import remote_files

        return remote_files(root)
    path = root.removeprefix("file://").removeprefix("file:")
    return LocalFiles(path, shared=is_shared(path))
