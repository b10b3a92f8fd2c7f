"""A segment store in memory, for kernels that run outside Spark (tests, benchmarks).

>>> store = MemoryStore()
>>> store.write("s1", pa.table({"k": [1, 2]})) > 0
True
>>> store.read("s1").num_rows
2
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa


class MemoryStore:
    """Segments in a dictionary; reading an unknown segment raises KeyError."""

    def __init__(self) -> None:
        self.segments: dict[str, pa.Table] = {}

    def read(self, segment: str) -> pa.Table:
        return self.segments[segment]

    def write(self, segment: str, table: pa.Table) -> int:
        self.segments[segment] = table
        return int(table.nbytes)

    def write_pieces(self, segment: str, pieces: Iterable[pa.Table]) -> int:
        return self.write(segment, pa.concat_tables(pieces))

    def settle(self) -> None:
        pass

    def delete(self, segment: str) -> None:
        del self.segments[segment]
