"""Segments that a worker has opened and keeps mapped for the batches to come.

What a batch touched of a segment is then still in the page table of the process at the next one. A segment never
changes, and its name is never used twice, so what is kept is never stale. What no state names any more is let go, so
that the disk gets its room back.

>>> Opened(limit=100).find(("state/1.1.manifest", 0)) is None
True
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

import pyarrow as pa

_KEPT_BYTES = 1 << 30
"""Of mapped files, which count as memory of the worker while the system leaves their pages in place."""
_KEPT_SEGMENTS = 256

Key = tuple[str, int]
"""The path of a file, with its root, and where in it the segment begins."""


class Opened:
    """Tables by where they are from, the last used ones: ``segments`` at most, of ``limit`` bytes."""

    def __init__(self, limit: int = _KEPT_BYTES, segments: int = _KEPT_SEGMENTS) -> None:
        self._limit = limit
        self._segments = segments
        self._tables: OrderedDict[Key, pa.Table] = OrderedDict()
        self._size = 0

    def find(self, key: Key) -> pa.Table | None:
        """The table from the place ``key``, if it is kept."""
        found = self._tables.get(key)
        if found is not None:
            self._tables.move_to_end(key)
        return found

    def keep(self, key: Key, table: pa.Table) -> None:
        """Keep ``table``; those that were not used for longest give way."""
        self._forget(key)
        self._tables[key] = table
        self._size += table.nbytes
        while self._size > self._limit or len(self._tables) > self._segments:
            self._forget(next(iter(self._tables)))

    def forget_unless(self, folder: str, is_named: Callable[[Key], bool]) -> None:
        """Let go of what is from files below ``folder`` and no longer named."""
        for key in [key for key in self._tables if key[0].startswith(f"{folder}/") and not is_named(key)]:
            self._forget(key)

    def _forget(self, key: Key) -> None:
        found = self._tables.pop(key, None)
        if found is not None:
            self._size -= found.nbytes
