"""The buckets of a layout by time as one table, whose rows have the end of their bucket in the column ``END``.

Kernels see a table whose identity and key have ``END`` as a column. The stored rows do not have it, because all rows of
a bucket have the same. Rows of a batch should be in order of ``END``, so that they need not be sorted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from hintplan.runtime.state.identity import Mask
from hintplan.runtime.state.layout import Int64s, StateLayout
from hintplan.runtime.state.time_buckets import TimeBuckets

END = "__end"

_BITS = 40
"""The low bits of a code are the code of a row in its bucket, and the high bits the number of the bucket."""
_LOW = (1 << _BITS) - 1


def stored_layout(layout: StateLayout) -> StateLayout:
    """Return the layout of the buckets of rows with ``layout``: without ``END``."""
    fields = [field for field in layout.identity if field.name != END]
    key = tuple(name for name in layout.key if name != END)
    return StateLayout(name=layout.name, identity=pa.schema(fields), payload=layout.payload, key=key, by_time=True)


class SlicedState:
    """A table of many buckets during one micro-batch. Its rows are addressed by codes and never expire."""

    def __init__(self, layout: StateLayout, buckets: TimeBuckets) -> None:
        """Show ``buckets``, whose layout is :func:`stored_layout` of ``layout``."""
        self.layout = layout
        self.buckets = buckets
        self._numbers: dict[int, int] = {}

    def find(self, identity: pa.Table, hashes: Int64s) -> Int64s:
        """Return the code of each row's newest version, -1 if there is none or it was deleted."""
        codes = np.full(len(hashes), -1, np.int64)
        for end, part in _parts(identity, self.buckets.ends()):
            found = self.buckets.at(end).find(_picked(identity, part).drop_columns(END), hashes[part])
            codes[part] = np.where(found >= 0, self._code(end, found), -1)
        return codes

    def live(self, codes: Int64s) -> Mask:
        """Return True for each code of a row; -1 is no row."""
        return codes >= 0

    def scan(self, keys: pa.Table, key_hashes: Int64s) -> Iterator[tuple[Int64s, Int64s]]:
        """Yield all live rows under each key, as pairs (position in ``keys``, code), in portions."""
        places = np.arange(len(key_hashes))
        for end, part in _parts(keys, self.buckets.ends()):
            for place, code in self.buckets.at(end).scan(_picked(keys, part).drop_columns(END), key_hashes[part]):
                yield places[part][place], self._code(end, code)

    def take(self, codes: Int64s, names: list[str]) -> pa.Table:
        """Return the columns ``names`` of the rows with these codes, in that order."""
        stored = [name for name in names if name != END]
        tables, parts = [], []
        for end, places in self._buckets_of(codes):
            rows = self.buckets.at(end).take(codes[places] & _LOW, stored)
            if END in names:
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
        for end, part in _parts(rows, None):
            self.buckets.at(end).put(_picked(rows, part).drop_columns(END), present[part])

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


def _parts(rows: pa.Table, known: Sequence[int] | None) -> Iterator[tuple[int, Part]]:
    """Yield the places of the rows of each bucket with its end; only buckets that are ``known``, if that is given."""
    ends = rows[END].to_numpy()
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
