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
    places: Int64s = np.lexsort([ties, *reversed(keys)])
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
