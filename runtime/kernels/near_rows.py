"""The pairs of rows of two tables whose keys are equal, and whose times are at most an interval apart.

Rows are sorted by key and time, and a binary search finds the matches of each row. So rows that are too far apart cost
nothing, however many share a key.

>>> left, right = pa.table({"k": [1, 1]}), pa.table({"k": [1, 1, 1]})
>>> times = np.array([10, 20]), np.array([9, 10, 25])
>>> near = near_rows(left, right, (("k",), ("k",)), (np.array([1, 1]), np.array([1, 1, 1])), times, (-5, 0))
>>> [[part.tolist() for part in pair] for pair in near.pairs(1000)]
[[[0, 1], [1, 2]]]
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from hintplan.runtime.kernels.matching import Matching, key_groups, without_null
from hintplan.runtime.state.identity import Mask
from hintplan.runtime.state.layout import Int64s

_FAR = 1 << 60
"""A difference that no two times have; a longer bound changes nothing."""


def partner_times(times: Int64s, side: int, bounds: tuple[int, int]) -> tuple[Int64s, Int64s]:
    """Return the first and the last time that a partner of each row of ``side`` has.

    The left time (side 0) minus the right time (side 1) is within ``bounds``.
    """
    lower, upper = (max(-_FAR, min(_FAR, bound)) for bound in bounds)
    return (times - upper, times - lower) if side == 0 else (times + lower, times + upper)


def near_rows(
    left: pa.Table,
    right: pa.Table,
    keys: tuple[tuple[str, ...], tuple[str, ...]],
    hashes: tuple[Int64s, Int64s],
    times: tuple[Int64s, Int64s],
    bounds: tuple[int, int],
) -> Matching:
    """Match the rows whose ``keys`` are equal and whose ``times`` (ms) differ by something within ``bounds``.

    Equal keys have equal ``hashes``; there may be no keys. The difference is the left time minus the right time.
    """
    left_groups, right_groups = key_groups(left, right, keys, hashes)
    size = max(left_groups.max(initial=-1), right_groups.max(initial=-1)) + 1
    # Most rows find no equal key here: only rows of keys on both sides are sorted.
    of_left = _of_groups(left_groups, right_groups, size, without_null(left, keys[0]))
    of_right = _of_groups(right_groups, left_groups, size, without_null(right, keys[1]))
    distinct, ranks = np.unique(times[1][of_right], return_inverse=True)
    base = len(distinct) + 1  # a place is a group, and within the group the rank of a time
    places = right_groups[of_right] * base + ranks
    order = np.argsort(places, kind="stable")
    places = places[order]
    first, last = partner_times(times[0][of_left], 0, bounds)
    begins = left_groups[of_left] * base
    start, count = np.zeros(left.num_rows, np.int64), np.zeros(left.num_rows, np.int64)
    start[of_left] = np.searchsorted(places, begins + np.searchsorted(distinct, first, "left"))
    end = np.searchsorted(places, begins + np.searchsorted(distinct, last, "right"))
    count[of_left] = np.maximum(end - start[of_left], 0)
    return Matching(start=start, count=count, right=of_right[order])


def _of_groups(mine: Int64s, theirs: Int64s, size: int, valid: Mask | None) -> Int64s:
    """Return the places of rows in ``mine`` whose group is also in ``theirs``, except rows that are not ``valid``."""
    has = np.zeros(size, np.bool_)
    has[theirs] = True
    found = has[mine]
    return np.flatnonzero(found if valid is None else found & valid)
