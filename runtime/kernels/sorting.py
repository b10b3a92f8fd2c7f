"""ORDER BY for numpy: rows sorted by integers that have the order of their values.

Each sort key states whether NULLs come first or last. NaN is larger than all other numbers, as in Flink. Texts are
compared by their bytes.

>>> rows = pa.table({"v": [2, None, 1]})
>>> order = (SortKey(column="v", direction="desc", nulls="first"),)
>>> sorted_rows(rows, np.zeros(3, np.int64), order, np.arange(3)).tolist()
[1, 0, 2]
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.plans.declarations.computations import SortKey
from hintplan.runtime.state.identity import without_chunks
from hintplan.runtime.state.layout import Int64s

_BITS = 63
_NOT_SIGN = np.int64(np.iinfo(np.int64).max)


def sorted_rows(rows: pa.Table, groups: Int64s, order: Sequence[SortKey], ties: Int64s) -> Int64s:
    """Return the places of ``rows`` sorted by ``groups``, then ``order``, then ``ties``.

    The first key of ``order`` is the most significant one.
    """
    keys = [groups]
    for key in order:
        column = without_chunks(rows[key.column])
        if column.null_count:
            nulls = np.asarray(pc.is_null(column)).astype(np.int64)
            keys.append(-nulls if key.nulls == "first" else nulls)
        numbers = _numbers(column)
        keys.append(~numbers if key.direction == "desc" else numbers)
    return sorted_by([*keys, ties])


def sorted_by(keys: Sequence[Int64s]) -> Int64s:
    """Return the places sorted by ``keys``, the first of which is the most significant one; equal ones stay in order.

    Keys that fit into 63 bits together, best with the place itself, are sorted as one integer: ten times as fast.
    """
    size = len(keys[0])
    if not (keys[-1][1:] < keys[-1][:-1]).any():
        keys = keys[:-1]  # the places have the same order
    lows = [int(key.min(initial=0)) for key in keys]
    bits = [(int(key.max(initial=0)) - low).bit_length() for key, low in zip(keys, lows, strict=True)]
    of_place = size.bit_length()
    places: Int64s
    if sum(bits) > _BITS:
        places = np.lexsort(keys[::-1])
        return places
    packed = np.zeros(size, np.int64)
    for key, low, width in zip(keys, lows, bits, strict=True):
        packed <<= width
        packed |= key - low
    if sum(bits) + of_place > _BITS:
        places = np.argsort(packed, kind="stable")
    else:
        packed <<= of_place
        packed |= np.arange(size)
        packed.sort()
        places = packed & ((1 << of_place) - 1)
    return places


def _numbers(column: pa.Array) -> Int64s:
    """Return integers in the order of the values; all NULLs have the same integer."""
    kind = column.type
    if pa.types.is_floating(kind):
        bits = column.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False).view(np.int64)
        numbers: Int64s = bits ^ ((bits >> 63) & _NOT_SIGN)  # the bits of negative numbers ascend the other way
        return numbers
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return _filled(column.cast(pa.int64()))
    if pa.types.is_temporal(kind):
        return _filled(column.view(pa.int64() if kind.bit_width == 64 else pa.int32()).cast(pa.int64()))
    ranks = pc.rank(column, tiebreaker="dense")
    return _filled(ranks.cast(pa.int64()))


def _filled(numbers: pa.Array) -> Int64s:
    filled: Int64s = numbers.fill_null(0).to_numpy(zero_copy_only=False)
    return filled
