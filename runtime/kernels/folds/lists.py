"""Growing lists, for ARRAY_AGG: the contributions of rows to their groups, and the concatenation of lists.

>>> ones = one_each(pa.array(["x", None, "y"]), np.array([True, True, False]))
>>> ones.to_pylist()
[['x'], [None], None]
>>> concatenated(np.array([1, 1, 0]), ones, 3).to_pylist()
[None, ['x', None], None]
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.runtime.state.identity import Mask
from hintplan.runtime.state.layout import Int64s


def one_each(values: pa.Array, used: Mask) -> pa.ListArray:
    """Return a list of one element for each of ``values``, also for NULL; NULL for values that are not ``used``."""
    kept = values if used.all() else values.take(pa.array(np.flatnonzero(used)))
    return _lists(used.astype(np.int64), kept, used)


def concatenated(groups: Int64s, lists: pa.ListArray, size: int) -> pa.ListArray:
    """Concatenate the ``lists`` of each of ``size`` groups, in their order; NULL for a group without lists."""
    valid_rows = np.flatnonzero(np.asarray(lists.is_valid()))
    by_group = valid_rows[np.argsort(groups[valid_rows], kind="stable")]
    in_order = lists.take(pa.array(by_group))
    lengths, has_list = np.zeros(size, np.int64), np.zeros(size, np.bool_)
    np.add.at(lengths, groups[by_group], np.asarray(pc.list_value_length(in_order)))
    has_list[groups[by_group]] = True
    return _lists(lengths, in_order.flatten(), has_list)


def _lists(lengths: Int64s, values: pa.Array, found: Mask) -> pa.ListArray:
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), values, mask=pa.array(~found))
