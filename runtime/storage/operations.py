"""How often files were read, written, listed and removed: on an object store each of these is a request that is paid.

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
"""As many of each of :data:`OPERATIONS`."""


@dataclass(slots=True)
class FileOperations:
    """What was asked of a file system; reading a copy on this machine is not, asking whether a file is there is a read.

    A large file counts as one, in however many parts it goes to an object store.
    """

    reads: int = 0
    writes: int = 0
    lists: int = 0
    deletes: int = 0

    def counts(self) -> Counts:
        """What was counted so far."""
        return self.reads, self.writes, self.lists, self.deletes

    def since(self, before: Counts) -> Counts:
        """What was counted since there was ``before``."""
        reads, writes, lists, deletes = (now - then for now, then in zip(self.counts(), before, strict=True))
        return reads, writes, lists, deletes
