"""Runs: rows in ascending order of their hashes, as in segments. Functions that sort them and find rows in them.

>>> run = np.array([1, 3, 3, 7])
>>> [part.tolist() for part in matching_ranges(run, np.array([2, 3, 7]), np.array([2, 3, 7]))]
[[1, 2], [1, 3], [3, 4]]
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from hintplan.runtime.state.identity import equal_rows
from hintplan.runtime.state.layout import HASH, Int64s, int64s


def hash_order(hashes: Int64s) -> Int64s:
    """Return the places of ``hashes`` in ascending order; equal hashes keep their order.

    On evenly distributed hashes, a stable sort takes three to six times as long as numpy's default. On sorted hashes,
    or a few sorted runs, it takes no time.
    """
    if len(hashes) < 2 or not (hashes[1:] < hashes[:-1]).any():
        return np.arange(len(hashes))
    order = np.argsort(hashes)
    sorted_hashes = hashes[order]
    again = sorted_hashes[1:] == sorted_hashes[:-1]
    if again.any():
        run = np.cumsum(np.concatenate(([False], ~again)))
        order = np.sort(run << 32 | order) & 0xFFFFFFFF
    return order


def matching_ranges(run: Int64s, first: Int64s, last: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """Return the places i for which ``run`` has hashes from ``first[i]`` to ``last[i]``, and their begin and end in it.

    ``first`` and ``last`` should be in ascending order, so that neighbours lie on the same pages of the run.
    """
    if not len(run) or not len(first):
        none = np.empty(0, np.int64)
        return none, none, none
    begin = np.searchsorted(run, first)
    last_place = len(run) - 1
    places = np.flatnonzero((begin <= last_place) & (run[np.minimum(begin, last_place)] <= last))
    begin, last = begin[places], last[places]
    end = begin + 1
    more = np.flatnonzero((end <= last_place) & (run[np.minimum(end, last_place)] <= last))
    if more.size:
        end[more] = np.searchsorted(run, last[more], "right")
    return places, begin, end


def spread(places: Int64s, begin: Int64s, end: Int64s) -> tuple[Int64s, Int64s]:
    """Pair each place with every row from its ``begin`` to before its ``end``."""
    counts = end - begin
    if not len(counts) or int(counts.max()) == 1:
        return places, begin
    place = np.repeat(places, counts)
    starts = np.cumsum(counts) - counts
    row = np.arange(len(place), dtype=np.int64) - np.repeat(starts - begin, counts)
    return place, row


def newest_in(tables: Sequence[pa.Table], rows: pa.Table, hashes: Int64s) -> tuple[Int64s, Int64s]:
    """Return, for each of ``rows``, the last of ``tables`` with an equal row, -1 for none, and the row's place there.

    ``tables`` are runs from old to new with the columns of ``rows``. No run has the same row twice.
    """
    table_of, row_of = np.full(len(hashes), -1, np.int64), np.zeros(len(hashes), np.int64)
    open_ = hash_order(hashes)
    needles = hashes[open_]
    for index in range(len(tables) - 1, -1, -1):
        if not open_.size:
            break
        place, row = spread(*matching_ranges(int64s(tables[index], HASH), needles, needles))
        if not place.size:
            continue
        candidates = open_[place]
        same = equal_rows(rows, candidates, tables[index], row)
        if not same.all():
            place, candidates, row = place[same], candidates[same], row[same]
        table_of[candidates], row_of[candidates] = index, row
        if index:
            is_open = np.ones(len(open_), np.bool_)
            is_open[place] = False
            open_, needles = open_[is_open], needles[is_open]
    return table_of, row_of
