"""How often a group has each value, for COLLECT: maps of counts, added up.

A value that is counted 0 times is not there. As in Flink, one that is taken back before it was added is there -1 times.

>>> ones = counted_each(pa.array(["x", None, "y", "x"]), np.array([1, 1, -1, 1]), pa.map_(pa.string(), pa.int32()))
>>> ones.to_pylist()
[[('x', 1)], None, [('y', -1)], [('x', 1)]]
>>> added(np.array([1, 1, 0, 1]), ones, 3).to_pylist()
[[('y', -1)], [('x', 2)], None]
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from hintplan.runtime.state.identity import Mask, encode_groups
from hintplan.runtime.state.layout import Int64s


def counted_each(values: pa.Array, counts: Int64s, kind: pa.MapType) -> pa.MapArray:
    """Each of ``values`` as a map of ``kind`` in which it alone is, so many times; NULL for NULL."""
    there = np.asarray(values.is_valid())
    kept = values if there.all() else values.take(pa.array(np.flatnonzero(there)))
    return _maps(there.astype(np.int64), kept, counts[there], kind, ~there)


def added(groups: Int64s, maps: pa.MapArray, size: int) -> pa.MapArray:
    """The counts of ``maps`` added up for each of ``size`` groups; NULL if all of them are."""
    there = np.flatnonzero(np.asarray(maps.is_valid()))
    by_group = there[np.argsort(groups[there], kind="stable")]
    behind = maps.take(pa.array(by_group))
    offsets: Int64s = np.asarray(behind.offsets).astype(np.int64)
    owners = np.repeat(groups[by_group], offsets[1:] - offsets[:-1])
    keys, items = behind.keys, behind.items
    entries, first = encode_groups([pa.array(owners), keys])
    counts = np.zeros(len(first), np.int64)
    np.add.at(counts, entries, np.asarray(items).astype(np.int64))
    kept = counts != 0
    lengths = np.bincount(owners[first[kept]], minlength=size)
    missing = np.ones(size, np.bool_)
    missing[groups[by_group]] = False
    return _maps(lengths, keys.take(pa.array(first[kept])), counts[kept], maps.type, missing)


def _maps(lengths: Int64s, keys: pa.Array, counts: Int64s, kind: pa.MapType, missing: Mask) -> pa.MapArray:
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    items = pa.array(counts, pa.int64()).cast(kind.item_type)
    return pa.MapArray.from_arrays(pa.array(offsets), keys, items, kind, mask=pa.array(missing))
