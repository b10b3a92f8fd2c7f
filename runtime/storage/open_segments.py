"""The segments that a worker keeps open and mapped for later batches.

The pages of a segment that a batch has read are then still in the page table of the process for the next batch. A
segment never changes, and its name is never reused, so a kept segment is never stale. Segments that no state names
are released, so that their disk space becomes free.

>>> OpenSegments(limit=100).find(("state/1.1.manifest", 0)) is None
True
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

import pyarrow as pa

_KEPT_BYTES = 1 << 30
"""The maximum size of mapped files, which count as memory of the worker while the system keeps their pages."""
_KEPT_SEGMENTS = (256, 4096)
"""The maximum number of segments: a quarter of the files that the process may open, between these bounds."""

Key = tuple[str, int]
"""The path of a file, with its root, and the offset of the segment in it."""


class OpenSegments:
    """The most recently used tables by location: at most ``segments`` tables, and at most ``limit`` bytes."""

    def __init__(self, limit: int = _KEPT_BYTES, segments: int | None = None) -> None:
        self._limit = limit
        self._segments = _most_segments() if segments is None else segments
        self._tables: OrderedDict[Key, pa.Table] = OrderedDict()
        self._size = 0

    def find(self, key: Key) -> pa.Table | None:
        """Return the table at ``key``, or None if it is not kept."""
        table = self._tables.get(key)
        if table is not None:
            self._tables.move_to_end(key)
        return table

    def keep(self, key: Key, table: pa.Table) -> None:
        """Keep ``table``, and drop the least recently used tables beyond the limits."""
        self._forget(key)
        self._tables[key] = table
        self._size += table.nbytes
        while self._size > self._limit or len(self._tables) > self._segments:
            self._forget(next(iter(self._tables)))

    def forget_unless(self, folder: str, is_named: Callable[[Key], bool]) -> None:
        """Drop the tables of files below ``folder`` that are no longer named."""
        for key in [key for key in self._tables if key[0].startswith(f"{folder}/") and not is_named(key)]:
            self._forget(key)

    def _forget(self, key: Key) -> None:
        table = self._tables.pop(key, None)
        if table is not None:
            self._size -= table.nbytes


def _most_segments() -> int:
    low, high = _KEPT_SEGMENTS
    try:
        import resource
    except ImportError:  # on Windows
        return low
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return high if files == resource.RLIM_INFINITY else max(low, min(high, files // 4))
