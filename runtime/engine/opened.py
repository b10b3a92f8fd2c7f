"""Segments that a worker has opened and keeps mapped for the batches to come.

What a batch touched of a segment is then still in the page table of the process at the next one. A file is known again
by its inode, size and time, so a table is never of another file than the one that lies there now. What is removed, by
whichever process, is let go at the end of the next batch at the latest: the disk gives its room back only then.

>>> opened = Opened(limit=100)
>>> opened.find(Path("nowhere")) is None
True
"""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path

import pyarrow as pa

from runtime.engine.local_files import Identity, identity

_KEPT_BYTES = 1 << 30
"""Of mapped files, which count as memory of the worker while the system leaves their pages in place."""
_KEPT_FILES = 256
"""Each takes a file descriptor, of which a process often has 1,024."""


class Opened:
    """Tables by the files that they are mapped from, the last used ones: ``files`` at most, of ``limit`` bytes."""

    def __init__(self, limit: int = _KEPT_BYTES, files: int = _KEPT_FILES) -> None:
        self._limit = limit
        self._files = files
        self._tables: OrderedDict[Path, tuple[Identity, pa.Table]] = OrderedDict()

    def find(self, path: Path) -> pa.Table | None:
        """The table of the file that lies at ``path``, if it is kept."""
        found = self._tables.get(path)
        if found is None:
            return None
        if _lying(path) != found[0]:
            self.forget(path)
            return None
        self._tables.move_to_end(path)
        return found[1]

    def keep(self, path: Path, table: pa.Table) -> None:
        """Keep ``table``, which was just mapped from ``path``; those that were not used for longest give way."""
        lying = _lying(path)
        if lying is None:
            return
        self._tables[path] = lying, table
        size = sum(size for (_, size, _), _ in self._tables.values())
        while size > self._limit or len(self._tables) > self._files:
            _, ((_, less, _), _) = self._tables.popitem(last=False)
            size -= less

    def forget(self, path: Path) -> None:
        """Let go of what is kept of ``path``, if anything is."""
        self._tables.pop(path, None)

    def forget_removed(self) -> None:
        """Let go of what lies on disk no more."""
        for path, (known, _) in list(self._tables.items()):
            if _lying(path) != known:
                self.forget(path)


def _lying(path: Path) -> Identity | None:
    try:
        return identity(path)
    except FileNotFoundError:
        return None
