"""The rows of a state table as kernels see them: found by identity or by key, and addressed by codes.

:class:`hintplan.runtime.state.keyed.KeyedState` is one table, and :class:`hintplan.runtime.state.sliced.SlicedState`
the tables of many buckets of time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import pyarrow as pa

from hintplan.runtime.state.identity import Mask
from hintplan.runtime.state.layout import Int64s, StateLayout


class StoredRows(Protocol):
    """The rows of a layout in one micro-batch."""

    layout: StateLayout

    def find(self, identity: pa.Table, hashes: Int64s) -> Int64s:
        """Return the code of each row's newest version, -1 if there is none or it was deleted."""
        ...

    def live(self, codes: Int64s) -> Mask:
        """Return True for each code of a row that has not expired; -1 is no row."""
        ...

    def use(self, codes: Int64s) -> None:
        """Observe the use of the rows with these codes, expired or not; -1 is no row."""
        ...

    def scan(self, keys: pa.Table, key_hashes: Int64s) -> Iterator[tuple[Int64s, Int64s]]:
        """Yield all live rows under each key, as pairs (position in ``keys``, code), in portions."""
        ...

    def take(self, codes: Int64s, names: list[str]) -> pa.Table:
        """Return the columns ``names`` of the rows with these codes, in that order."""
        ...

    def integers(self, codes: Int64s, name: str) -> Int64s:
        """Return an int64 column of the rows with these codes."""
        ...

    def put(self, rows: pa.Table, present: Mask) -> None:
        """Store new versions of ``rows``, whose identities are distinct; ``present`` marks rows that were found."""
        ...
