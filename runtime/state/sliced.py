"""The buckets of a layout by time as one table, whose rows have the end of their slice in the column ``END``.

Kernels see a table whose identity and key have ``END`` as a column. If a bucket is one slice, its stored rows do not
have it, because all have the same. Rows of a batch should be in order of ``END``, so that they need not be sorted.

>>> BucketWidth(step=1000, slices=64).buckets(np.array([1000, 64_000, 65_000])).tolist()
[64000, 64000, 128000]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from hintplan.runtime.state.identity import Mask
from hintplan.runtime.state.layout import HASH, Int64s, StateLayout, int64s, prefixed_hash
from hintplan.runtime.state.time_buckets import TimeBuckets

END = "__end"

_BITS = 40
"""The low bits of a code are the code of a row in its bucket, and the high bits the number of the bucket."""
_LOW = (1 << _BITS) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketWidth:
    """Buckets of ``slices`` slices, which are ``step`` ms long; the end of one bucket is ``offset``."""

    step: int
    offset: int = 0
    slices: int = 1

    @property
    def ms(self) -> int:
        return self.step * self.slices

    @property
    def is_slice(self) -> bool:
        return self.slices == 1

    def buckets(self, ends: Int64s) -> Int64s:
        """Return the end of the bucket of each slice with these ``ends``."""
        return ends if self.is_slice else -((self.offset - ends) // self.ms) * self.ms + self.offset

    def numbers(self, ends: Int64s) -> Int64s:
        """Return a number that distinguishes each slice from the others of its bucket."""
        return (ends - self.offset) // self.step


def stored_layout(layout: StateLayout, width: BucketWidth) -> StateLayout:
    """Return the layout of the buckets of rows with ``layout``: without ``END`` if a bucket is one slice."""
    if not width.is_slice:
        return replace(layout, by_time=True)
    fields = [field for field in layout.identity if field.name != END]
    key = tuple(name for name in layout.key if name != END)
    return StateLayout(name=layout.name, identity=pa.schema(fields), payload=layout.payload, key=key, by_time=True)


class SlicedState:
    """A table of many buckets during one micro-batch. Its rows are addressed by codes and never expire.

    A wide bucket has many slices of a key, so the sort hash of its rows also depends on their slice.
    """

    def __init__(self, layout: StateLayout, buckets: TimeBuckets, width: BucketWidth) -> None:
        """Show ``buckets``, whose layout is :func:`stored_layout` of ``layout``; wide ones have no ``key``."""
        assert width.is_slice or not layout.key
        self.layout = layout
        self.buckets = buckets
        self._width = width
        self._numbers: dict[int, int] = {}

    def find(self, identity: pa.Table, hashes: Int64s) -> Int64s:
        """Return the code of each row's newest version, -1 if there is none or it was deleted."""
        codes = np.full(len(hashes), -1, np.int64)
        hashes = self._stored_hashes(identity, hashes)
        for end, part in _parts(self._bucket_ends(identity), self.buckets.ends()):
            found = self.buckets.at(end).find(self._stored(_picked(identity, part)), hashes[part])
            codes[part] = np.where(found >= 0, self._code(end, found), -1)
        return codes

    def live(self, codes: Int64s) -> Mask:
        """Return True for each code of a row; -1 is no row."""
        return codes >= 0

    def use(self, codes: Int64s) -> None:
        """Observe nothing: the watermark decides how long these rows live, not their age."""

    def scan(self, keys: pa.Table, key_hashes: Int64s) -> Iterator[tuple[Int64s, Int64s]]:
        """Yield all live rows under each key, as pairs (position in ``keys``, code), in portions."""
        places = np.arange(len(key_hashes))
        for end, part in _parts(self._bucket_ends(keys), self.buckets.ends()):
            for place, code in self.buckets.at(end).scan(self._stored(_picked(keys, part)), key_hashes[part]):
                yield places[part][place], self._code(end, code)

    def take(self, codes: Int64s, names: list[str]) -> pa.Table:
        """Return the columns ``names`` of the rows with these codes, in that order."""
        stored = [name for name in names if name != END or not self._width.is_slice]
        tables, parts = [], []
        for end, places in self._buckets_of(codes):
            rows = self.buckets.at(end).take(codes[places] & _LOW, stored)
            if END in names and self._width.is_slice:
                rows = rows.append_column(END, pa.array(np.full(len(places), end))).select(names)
            tables.append(rows)
            parts.append(places)
        if not tables:
            return pa.schema([self.layout.schema.field(name) for name in names]).empty_table()
        rows, order = pa.concat_tables(tables), np.concatenate(parts)
        if (order[1:] > order[:-1]).all():
            return rows
        return rows.combine_chunks().take(pa.array(np.argsort(order)))

    def integers(self, codes: Int64s, name: str) -> Int64s:
        """Return an int64 column of the rows with these codes."""
        result = np.empty(len(codes), np.int64)
        for end, places in self._buckets_of(codes):
            result[places] = self.buckets.at(end).integers(codes[places] & _LOW, name)
        return result

    def put(self, rows: pa.Table, present: Mask) -> None:
        """Store new versions of ``rows``, whose identities are distinct; ``present`` marks rows that were found."""
        ends = self._bucket_ends(rows)
        if not self._width.is_slice:
            hashes = self._stored_hashes(rows, int64s(rows, HASH))
            rows = rows.set_column(rows.column_names.index(HASH), HASH, pa.array(hashes))
        for end, part in _parts(ends, None):
            self.buckets.at(end).put(self._stored(_picked(rows, part)), present[part])

    def _bucket_ends(self, rows: pa.Table) -> Int64s:
        return self._width.buckets(int64s(rows, END))

    def _stored(self, rows: pa.Table) -> pa.Table:
        return rows.drop_columns(END) if self._width.is_slice else rows

    def _stored_hashes(self, rows: pa.Table, hashes: Int64s) -> Int64s:
        if self._width.is_slice:
            return hashes
        return prefixed_hash(hashes, self._width.numbers(int64s(rows, END)))

    def _code(self, end: int, codes: Int64s) -> Int64s:
        number = self._numbers.setdefault(end, len(self._numbers))
        return codes | (number << _BITS)

    def _buckets_of(self, codes: Int64s) -> Iterator[tuple[int, Int64s]]:
        """Yield the end of each bucket that has some of ``codes``, with their places."""
        numbers, ends = codes >> _BITS, [*self._numbers]
        if len(numbers) and (numbers == numbers[0]).all():
            yield ends[int(numbers[0])], np.arange(len(codes))
            return
        order = np.argsort(numbers, kind="stable")
        for number, part in runs_of(numbers[order]):
            yield ends[number], order[part]


Part = slice | Int64s


def _parts(ends: Int64s, known: Sequence[int] | None) -> Iterator[tuple[int, Part]]:
    """Yield each of ``ends``, the bucket of each row, with its places; only ``known`` buckets, if that is given."""
    wanted = None if known is None else set(known)
    if (ends[1:] >= ends[:-1]).all():
        for end, part in runs_of(ends):
            if wanted is None or end in wanted:
                yield end, part
        return
    order = np.argsort(ends, kind="stable")
    for end, part in runs_of(ends[order]):
        if wanted is None or end in wanted:
            yield end, order[part]


def _picked(rows: pa.Table, part: Part) -> pa.Table:
    return rows.slice(part.start, part.stop - part.start) if isinstance(part, slice) else rows.take(pa.array(part))


def runs_of(ends: Int64s) -> Iterator[tuple[int, slice]]:
    """Yield each of ``ends``, which are in ascending order, with the places where it is.

    >>> list(runs_of(np.array([3, 3, 5])))
    [(3, slice(0, 2, None)), (5, slice(2, 3, None))]
    """
    begins = np.flatnonzero(np.concatenate(([True], ends[1:] != ends[:-1]))) if len(ends) else ends
    for begin, end in zip(begins.tolist(), [*begins[1:].tolist(), len(ends)], strict=True) if len(ends) else ():
        yield int(ends[begin]), slice(begin, end)
