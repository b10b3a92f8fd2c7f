"""Rows of state that wait for the watermark to reach their time. They come out in the order of their arrival.

They lie in time buckets. A bucket is at most a quarter as wide as its rows are ahead of the watermark, so even rows of
years need few buckets. When the watermark enters a bucket, its remaining rows move to narrower ones. Thus a row is
written a few times at most, and each batch reads only rows that are due, or nearly due.

The time in the name of a bucket is its middle. The width of a bucket is a power of two, so the lowest bit of the middle
is half the width.

>>> middles(np.array([0, 999, 70_000]), 0).tolist()
[512, 512, 73728]
>>> bounds_of(73728)
(65536, 81920)
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from hintplan.runtime.operator import NEVER, SegmentStore
from hintplan.runtime.state.layout import COUNT, HASH, WRITE, Int64s, StateLayout, int64s, prefixed_hash
from hintplan.runtime.state.manifest import StateTable
from hintplan.runtime.state.time_buckets import TimeBuckets

TIME, ARRIVAL = "__time", "__arrival"
"""The time of a row in ms, and its place in the order of arrival."""
_NARROWEST, _WIDEST, _UNKNOWN = 10, 40, 25
"""The logarithms of the widths of buckets in ms: about a second, 35 years, and 9 hours without a watermark."""
_ROWS = 20
"""The low bits of an arrival, which number the rows of a batch. The high bits are the time of the batch."""


def waiting_layout(name: str, columns: pa.Schema, key: tuple[str, ...]) -> StateLayout:
    """Return the layout of waiting rows with these ``columns``, of which ``key`` are the key."""
    payload = pa.schema([*columns, (TIME, pa.int64())])
    return StateLayout(name=name, identity=pa.schema([(ARRIVAL, pa.int64())]), payload=payload, key=key, by_time=True)


def middles(times: Int64s, watermark: int) -> Int64s:
    """Return the middle of the bucket of rows with these ``times``, given the watermark."""
    if watermark == NEVER:
        level = np.full(len(times), _UNKNOWN)
    else:
        ahead = np.maximum(times - watermark, 1)
        level = np.clip(np.log2(ahead).astype(np.int64) - 2, _NARROWEST, _WIDEST)
    result: Int64s = (times >> level << level) + (np.int64(1) << (level - 1))
    return result


def bounds_of(middle: int) -> tuple[int, int]:
    """Return the first time of the bucket with this middle, and the first time after it."""
    half = middle & -middle
    return middle - half, middle + half


class WaitingRows:
    """The waiting rows of one layout during one micro-batch. ``tables`` are all tables of the operator."""

    def __init__(self, layout: StateLayout, tables: Mapping[str, StateTable], store: SegmentStore, *, now: int) -> None:
        self.buckets = TimeBuckets(layout, tables, store, now=now)
        # A row keeps its arrival in another table. The clock of the driver may stand still, or go back.
        stored = (segment for table in tables.values() for segment in table.segments)
        newest = max((segment.last_write for segment in stored), default=now - 1)
        self._next = max(now, newest + 1) << _ROWS

    @property
    def layout(self) -> StateLayout:
        return self.buckets.layout

    def arrived(self, rows: pa.Table, times: Int64s, hashes: Int64s) -> pa.Table:
        """Return ``rows``, whose keys have these ``hashes``, in the form in which they wait, after all rows so far."""
        arrivals = np.arange(len(times), dtype=np.int64) + self._next
        self._next += len(times)
        columns = {
            HASH: pa.array(prefixed_hash(hashes, arrivals)),
            ARRIVAL: pa.array(arrivals),
            **dict(zip(rows.column_names, rows.columns, strict=True)),
            TIME: pa.array(times),
            COUNT: pa.array(np.ones(len(times), np.int64)),
            WRITE: pa.array(arrivals >> _ROWS),
        }
        return pa.table([columns[name] for name in self.layout.schema.names], schema=self.layout.schema)

    def wait(self, rows: pa.Table, watermark: int) -> None:
        """Store ``rows``, which have the columns of the layout."""
        places = middles(int64s(rows, TIME), watermark)
        for middle in np.unique(places).tolist():
            here = rows.filter(pa.array(places == middle))
            self.buckets.at(middle).put(here, np.zeros(here.num_rows, np.bool_))

    def take_due(self, watermark: int) -> pa.Table:
        """Remove the rows that the watermark has reached, and return them."""
        pieces = [self.layout.schema.empty_table()]
        for middle in self.buckets.ends():
            first, end = bounds_of(middle)
            if first > watermark:
                continue
            rows = self.buckets.rows(middle)
            self.buckets.drop(middle)
            if end - 1 > watermark:
                is_due = int64s(rows, TIME) <= watermark
                self.wait(rows.filter(pa.array(~is_due)), watermark)
                rows = rows.filter(pa.array(is_due))
            pieces.append(rows)
        return pa.concat_tables(pieces)


def in_order(rows: pa.Table) -> pa.Table:
    """Return waiting ``rows`` in the order of their arrival."""
    arrivals = int64s(rows, ARRIVAL)
    if (arrivals[1:] > arrivals[:-1]).all():
        return rows
    return rows.combine_chunks().take(pa.array(np.argsort(arrivals)))
