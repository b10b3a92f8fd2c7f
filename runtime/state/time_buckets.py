"""A state table that is divided by time: a table for each bucket of time, which goes as a whole.

Segments are sorted by hash, so rows of one time are not together in a segment. Rows that the watermark passes should
not have to be searched for. So the rows of each bucket are in a table of their own, which is called ``name@end`` after
the layout and the bucket's end in ms, or another time that identifies it. It has segments and merges of its own.

- A batch opens only the buckets of its rows.
- A bucket is read as a whole when it is due, and removed without reading it when the watermark has passed it.
- The operator decides how wide a bucket is. If all rows of a bucket have the same time, rows need not have it.

>>> import numpy as np
>>> from hintplan.runtime.state.memory import MemoryStore
>>> layout = StateLayout(name="rows", identity=pa.schema([("k", pa.int64())]), payload=pa.schema([]), by_time=True)
>>> store = MemoryStore()
>>> buckets = TimeBuckets(layout, {}, store, now=0)
>>> row = pa.table([[1], [1], [1], [0]], schema=layout.schema)
>>> buckets.at(5000).put(row, np.array([False]))
>>> buckets.at(9000).put(row, np.array([False]))
>>> tables = buckets.commit()
>>> sorted(tables), sorted(store.segments)
(['rows@5000', 'rows@9000'], ['rows@5000/1', 'rows@9000/1'])
>>> buckets = TimeBuckets(layout, tables, store, now=1)
>>> buckets.drop(5000)
>>> buckets.ends(), sorted(buckets.commit()), sorted(store.segments)
([9000], ['rows@9000'], ['rows@9000/1'])
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from hintplan.runtime.operator import SegmentStore
from hintplan.runtime.state.keyed import KeyedState
from hintplan.runtime.state.layout import StateLayout, bucket_end, layout_of
from hintplan.runtime.state.manifest import StateTable


class TimeBuckets:
    """The buckets of one layout by time, during one micro-batch."""

    def __init__(self, layout: StateLayout, tables: Mapping[str, StateTable], store: SegmentStore, *, now: int) -> None:
        """Open the buckets among ``tables``, which may also have tables of other layouts."""
        self.layout = layout
        self._store = store
        self._now = now
        self._stored = {bucket_end(name): table for name, table in tables.items() if layout_of(name, [layout])}
        self._open: dict[int, KeyedState] = {}

    def ends(self) -> list[int]:
        """Return the ends of all buckets that have, or had before the batch, rows; in ascending order."""
        return sorted(self._stored.keys() | self._open.keys())

    def is_stored(self, end: int) -> bool:
        """Return True if the bucket had rows before the batch."""
        return end in self._stored

    def at(self, end: int) -> KeyedState:
        """Return the bucket that ends at ``end``, which may be new. Its rows never expire."""
        state = self._open.get(end)
        if state is None:
            layout = self.layout.at(end)
            table = self._stored.get(end) or StateTable(fingerprint=layout.fingerprint)
            state = self._open[end] = KeyedState(layout, table, self._store, ttl=0, now=self._now)
        return state

    def rows(self, end: int) -> pa.Table:
        """Return all rows of a bucket, including rows of this batch, in order of hash."""
        return self.at(end).rows()

    def gathered(self, end: int) -> pa.Table:
        """Return :meth:`rows` of a bucket that will be read again, and store them as one segment."""
        state = self.at(end)
        rows = state.rows()
        if state.segments > 1:
            state.replace(rows)
        return rows

    def drop(self, end: int) -> None:
        """Remove a bucket with all of its rows, without reading them."""
        self.at(end).clear()
        self._open.pop(end)
        self._stored.pop(end, None)

    def commit(self) -> dict[str, StateTable]:
        """Write the changes, and return the tables of buckets with rows, by name, for the manifest."""
        tables = {**self._stored, **{end: state.commit() for end, state in self._open.items()}}
        return {self.layout.at(end).name: table for end, table in sorted(tables.items()) if table.segments}
