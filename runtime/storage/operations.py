"""Counts file operations: reads, writes, lists and deletes. On an object store, each is a paid request.

>>> operations = FileOperations()
>>> before = operations.counts()
>>> operations.writes += 2
>>> operations.since(before)
(0, 2, 0, 0)
"""

from __future__ import annotations

from dataclasses import dataclass

OPERATIONS = ("reads", "writes", "lists", "deletes")

Counts = tuple[int, int, int, int]
"""The number of each of :data:`OPERATIONS`."""


@dataclass(slots=True)
class FileOperations:
    """The operations on a file system. Reading a local copy does not count; an existence check counts as a read.

    A large file counts once, even if it is uploaded to an object store in several parts.
    """

    reads: int = 0
    writes: int = 0
    lists: int = 0
    deletes: int = 0

    def counts(self) -> Counts:
        """Return the counts so far."""
        return self.reads, self.writes, self.lists, self.deletes

    def since(self, before: Counts) -> Counts:
        """Return the counts since ``before``."""
        reads, writes, lists, deletes = (now - then for now, then in zip(self.counts(), before, strict=True))
        return reads, writes, lists, deletes
