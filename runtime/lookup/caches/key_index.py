"""An index of distinct keys, which finds the places of many keys at once; full caches are probed through it.

An integer key whose values lie close together, as most ids do, is found by address, without hashing. Other keys of one
column are found by value. Keys of several columns are found by tuple; in a large dict this costs several times as much.

>>> find = key_index([(7,), (9,), (8,)])
>>> find([(8,), (10,), (7,)]).tolist()
[2, -1, 0]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from operator import itemgetter

import numpy as np

from hintplan.runtime.lookup.api import Key
from hintplan.runtime.state.layout import Int64s

ABSENT_PLACE = -1
_SPARSEST = 8
"""The most addresses per key in an index by address; with more, a dict is the better index."""

_first = itemgetter(0)


def key_index(keys: Sequence[Key]) -> Callable[[Sequence[Key]], Int64s]:
    """Return a function from keys to their places in the distinct ``keys``; ``ABSENT_PLACE`` for any other key."""
    if not keys or len(keys[0]) != 1:
        places = dict(zip(keys, range(len(keys)), strict=True))
        return lambda wanted: np.fromiter(map(places.get, wanted, repeat(ABSENT_PLACE)), np.int64, len(wanted))
    values = list(map(_first, keys))
    if all(type(value) is int for value in values):
        low, high = min(values), max(values)
        if high - low < _SPARSEST * len(values):
            return _by_address(np.array(values, np.int64), low, high)
    bare = dict(zip(values, range(len(values)), strict=True))
    return lambda wanted: np.fromiter(map(bare.get, map(_first, wanted), repeat(ABSENT_PLACE)), np.int64, len(wanted))


def _by_address(values: Int64s, low: int, high: int) -> Callable[[Sequence[Key]], Int64s]:
    # One more address than there are numbers: the last one, at -1, serves all absent keys.
    places = np.full(high - low + 2, ABSENT_PLACE, np.int64)
    places[values - low] = np.arange(len(values))

    def find(wanted: Sequence[Key]) -> Int64s:
        numbers = np.fromiter(map(_first, wanted), np.int64, len(wanted))
        in_range = (numbers >= low) & (numbers <= high)
        matches: Int64s = places[np.where(in_range, numbers - low, -1)]
        return matches

    return find
