"""Files in a directory that is mounted on this machine, read in place as mapped memory.

>>> LocalFiles("/nowhere").names("state")
[]
"""

from __future__ import annotations

import errno
import mmap
import os
import uuid
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import BinaryIO

import pyarrow as pa

from hintplan.runtime.storage.operations import FileOperations

NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EINVAL)
"""The errors of file systems without hard links."""

_mapped: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()
"""The files that this process has mapped."""


@dataclass(frozen=True, slots=True)
class LocalFiles:
    """The files below the directory ``root``. With ``sync``, a file is on the disk before it gets its name.

    ``shared`` is true if other machines also write to the directory.
    """

    root: str
    sync: bool = True
    operations: FileOperations = field(default_factory=FileOperations, compare=False)
    shared: bool = False
    _made: set[str] = field(default_factory=set, compare=False)
    """Folders that are known to exist. A write fails if one of them was removed and not listed since."""

    def names(self, folder: str) -> list[str]:
        path = os.path.join(self.root, folder)
        self.operations.lists += 1
        try:
            return os.listdir(path)
        except (FileNotFoundError, NotADirectoryError):
            self._made.discard(path)
            return []

    def read(self, path: str) -> pa.Buffer:
        self.operations.reads += 1
        with open(os.path.join(self.root, path), "rb") as source:
            return mapped(source)

    @contextmanager
    def writing(self, path: str) -> Iterator[BinaryIO]:
        with self._drafted(path) as draft:
            with open(draft, "wb") as file:
                yield file
                self._settle(file)
            publish_draft(draft, os.path.join(self.root, path))

    def publish(self, path: str, data: bytes) -> bool:
        with self._drafted(path) as draft:
            with open(draft, "wb") as file:
                file.write(data)
                self._settle(file)
            return publish_draft(draft, os.path.join(self.root, path))

    def _settle(self, file: BinaryIO) -> None:
        file.flush()
        if self.sync:
            os.fsync(file.fileno())

    @contextmanager
    def _drafted(self, path: str) -> Iterator[str]:
        """Provide a temporary name for a file until it is complete.

        Several attempts of a task may write the same file at the same time.
        """
        self.operations.writes += 1
        folder, name = os.path.split(os.path.join(self.root, path))
        draft = os.path.join(folder, f".{name}.{uuid.uuid4().hex}.tmp")
        if folder not in self._made:
            os.makedirs(folder, exist_ok=True)
            self._made.add(folder)
        try:
            yield draft
        finally:
            with suppress(FileNotFoundError):
                os.unlink(draft)

    def mark(self, path: str) -> None:
        self.operations.writes += 1
        open(os.path.join(self.root, path), "wb").close()

    def remove(self, path: str) -> None:
        self.operations.deletes += 1
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(self.root, path))

    def take(self, path: str, source: object, *, link: bool) -> bool:
        if not link or not isinstance(source, LocalFiles):
            return False
        self.operations.writes += 1
        target = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        try:
            os.link(os.path.join(source.root, path), target)
        except OSError as error:
            if error.errno not in (*NO_LINKS, errno.EXDEV, errno.EACCES):
                raise
            return False
        return True

    def refresh(self, folder: str) -> None:
        """Invalidate the cached listing of a mounted file system, which may be half a minute old.

        NFS clients cache directory contents, including missing names. They drop the cache when this machine changes the
        directory and detects changes by others. So create and remove a file there. On a disk of this machine, do
        nothing.
        """
        if self.shared and not self._touched(folder):
            above = folder
            while above and not self._touched(above):
                above = os.path.dirname(above)
            self._touched(folder)  # another machine may have created it in the meantime

    def _touched(self, folder: str) -> bool:
        """Change the folder, and return whether it exists."""
        probe = os.path.join(self.root, folder, f".refresh-{uuid.uuid4().hex}")
        try:
            open(probe, "xb").close()
        except FileNotFoundError:
            return False
        os.unlink(probe)
        return True

    def settle(self, path: str) -> None:
        file = os.open(os.path.join(self.root, path), os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)

    def distrust(self, path: str) -> bool:
        return False


def mapped(source: BinaryIO) -> pa.Buffer:
    """Map a file into memory."""
    try:
        pages = mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_READ)
    except ValueError:  # an empty file cannot be mapped
        return pa.py_buffer(b"")
    _mapped.add(pages)
    return pa.py_buffer(pages)


def publish_draft(draft: str, target: str) -> bool:
    """Give a file its final name unless that name exists; return whether it did not exist."""
    try:
        os.link(draft, target)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        if os.path.exists(target):
            return False
        os.replace(draft, target)
    return True


def let_pages_go() -> None:
    """Release the pages of mapped files from this process; later reads use the cache of the system."""
    if hasattr(mmap, "MADV_DONTNEED"):  # other systems release them when they need memory
        for pages in list(_mapped):
            pages.madvise(mmap.MADV_DONTNEED)
