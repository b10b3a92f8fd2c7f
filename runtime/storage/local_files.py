"""Files of a directory that is mounted here: read in place, as mapped memory.

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
"""What file systems say that have no second name for a file."""

_mapped: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()
"""Files that this process has in memory."""


@dataclass(frozen=True, slots=True)
class LocalFiles:
    """The files below the directory ``root``; ``sync`` brings each to the disk before it has its name.

    ``shared`` says that other machines write there, too.
    """

    root: str
    sync: bool = True
    operations: FileOperations = field(default_factory=FileOperations, compare=False)
    shared: bool = False
    _made: set[str] = field(default_factory=set, compare=False)
    """Folders that are not made again: whoever writes to one that has gone without having looked, misses it."""

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
            named(draft, os.path.join(self.root, path))

    def publish(self, path: str, data: bytes) -> bool:
        with self._drafted(path) as draft:
            with open(draft, "wb") as file:
                file.write(data)
                self._settle(file)
            return named(draft, os.path.join(self.root, path))

    def _settle(self, file: BinaryIO) -> None:
        file.flush()
        if self.sync:
            os.fsync(file.fileno())

    @contextmanager
    def _drafted(self, path: str) -> Iterator[str]:
        """A name for a file until it is whole: attempts of one task may write the same file at once."""
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
        """A mounted file system may answer a listing, or that a name is not there, with what it was half a minute ago.

        NFS forgets what it remembers of a directory when this machine changes it and finds that others have, too. So a
        file is made and removed there; on a disk of this machine nothing is needed.
        """
        if self.shared and not self._touched(folder):
            above = folder
            while above and not self._touched(above):
                above = os.path.dirname(above)
            self._touched(folder)  # it may have been made since, elsewhere

    def _touched(self, folder: str) -> bool:
        """Whether the folder is there, and was changed."""
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
    """A file as mapped memory."""
    try:
        pages = mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_READ)
    except ValueError:  # an empty file cannot be mapped
        return pa.py_buffer(b"")
    _mapped.add(pages)
    return pa.py_buffer(pages)


def named(draft: str, target: str) -> bool:
    """Give a file its name, unless another has it; whether none had."""
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
    """Take the pages of mapped files out of this process; what is read again comes back from the system's cache."""
    if hasattr(mmap, "MADV_DONTNEED"):  # elsewhere than on Unix, the system takes them when it needs them
        for pages in list(_mapped):
            pages.madvise(mmap.MADV_DONTNEED)
