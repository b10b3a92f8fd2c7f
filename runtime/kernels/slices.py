"""The slice of each row, and the groups of rows by key and slice.

A slice is known by its end, in ms of wall clocks. The column ``END`` holds it. Rows of a slice lie next to each other
in the order of their groups, so that each slice can go to a state table of its own.

>>> slices = Slices(operator="a", window=Window(type="tumble", size="5 s"), column="ts")
>>> rows = pa.table({"ts": pa.array([1_000_000, 6_000_000, 4_999_000], pa.timestamp("us"))})
>>> slices.added_to(rows)[END].to_pylist()
[5000, 10000, 5000]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.plans.declarations.windows import Window
from hintplan.plans.errors import RunError
from hintplan.plans.text.nulls import rowtime_hint, rowtime_message
from hintplan.runtime.kernels.windows import milliseconds, slice_ends, wall_clock
from hintplan.runtime.state.identity import encode_groups, hashed_groups, without_chunks
from hintplan.runtime.state.layout import Int64s
from hintplan.runtime.state.sliced import END


@dataclass(frozen=True, slots=True, kw_only=True)
class Slices:
    """The slices of ``window`` over the rowtime ``column``; with ``are_ends``, it has the ends of the windows of rows.

    Rows of a window of processing time are in one slice, whose end only the receiver of the batch knows: it is 0 here.
    ``operator`` is the id of the operator that reads the rows.
    """

    operator: str
    window: Window
    column: str
    are_ends: bool = False

    def added_to(self, rows: pa.Table) -> pa.Table:
        """Return ``rows`` with the column ``END``; RunError if a row has NULL as its time or the end of its window."""
        if self.window.processing_time:
            return rows.append_column(END, pa.array(np.zeros(rows.num_rows, np.int64)))
        if rows[self.column].null_count:
            raise RunError(rowtime_message(self.operator, self.column), hint=rowtime_hint(self.column))
        times = milliseconds(rows[self.column])
        if not self.are_ends:
            times = slice_ends(self.window, wall_clock(times, self.window.zone))
        return rows.append_column(END, pa.array(times))


_DENSE = 4
"""The number of possible groups per row up to which a mask of all possible groups is cheaper than a hash table."""


def distinct_ends(rows: pa.Table) -> tuple[Int64s, Int64s]:
    """Return the distinct ends of ``rows`` in ascending order, and the place of each row's end among them."""
    encoded = pc.dictionary_encode(without_chunks(rows[END]))
    ends, numbers = np.asarray(encoded.dictionary), np.asarray(encoded.indices)
    order = np.argsort(ends)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return ends[order], place[numbers]


def grouped_by(rows: pa.Table, keys: Sequence[str], hashes: Int64s) -> tuple[Int64s, Int64s]:
    """Return the number of the group of each row by ``keys``, and the first row of each group.

    Groups are in order of ``hashes``, the hashes of the keys except ``END``. If ``END`` is one of the keys, they are
    first in order of ``END``.
    """
    if END in keys:
        hashes = _by_slice(hashes, *distinct_ends(rows))
    return hashed_groups([without_chunks(rows[name]) for name in keys], hashes)


def numbered_by(rows: pa.Table, keys: Sequence[str]) -> tuple[Int64s, int]:
    """Return the number of the group of each row by ``keys``, one of which is ``END``, and the number of groups.

    >>> numbered_by(pa.table({"k": ["a", "b", "a"], END: [5, 5, 0]}), ["k", END])[0].tolist()
    [1, 2, 0]
    """
    ends, places = distinct_ends(rows)
    others = [without_chunks(rows[name]) for name in keys if name != END]
    if not others:
        return places, len(ends)
    numbers, first = encode_groups(others)
    groups = places * len(first) + numbers
    size = len(first) * len(ends)
    if size > _DENSE * max(len(groups), 1):
        groups, first = encode_groups([pa.array(groups)])
        return groups, len(first)
    occurs = np.zeros(size, np.bool_)
    occurs[groups] = True
    number = np.cumsum(occurs) - 1
    return number[groups], int(number[-1]) + 1 if size else 0


def _by_slice(hashes: Int64s, ends: Int64s, places: Int64s) -> Int64s:
    """Return ``hashes`` with the place of the slice in the highest bits; the lowest bits make room for it."""
    if len(ends) < 2:
        return hashes
    bits = len(ends).bit_length()
    return places << (63 - bits) | ((hashes >> (bits + 1)) + (1 << (62 - bits)))
