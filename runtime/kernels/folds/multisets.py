"""Multisets of the values of a group, for COLLECT: maps from value to count, which are added up.

A value with count 0 is not in the map. As in Flink, a value that is retracted before its insert has count -1.

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
    """Return a map of ``kind`` for each of ``values``, with the value as its only key and its count; NULL for NULL."""
    is_valid = np.asarray(values.is_valid())
    kept = values if is_valid.all() else values.take(pa.array(np.flatnonzero(is_valid)))
    return _maps(is_valid.astype(np.int64), kept, counts[is_valid], kind, ~is_valid)


def added(groups: Int64s, maps: pa.MapArray, size: int) -> pa.MapArray:
    """Add up the counts of ``maps`` for each of ``size`` groups; NULL for a group without maps."""
    valid_rows = np.flatnonzero(np.asarray(maps.is_valid()))
    by_group = valid_rows[np.argsort(groups[valid_rows], kind="stable")]
    in_order = maps.take(pa.array(by_group))
    offsets: Int64s = np.asarray(in_order.offsets).astype(np.int64)
    owners = np.repeat(groups[by_group], offsets[1:] - offsets[:-1])
    keys, items = in_order.keys, in_order.items
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
