"""Parts of nested values: fields of a ROW, elements of an ARRAY by position, values of a MAP by key, and sizes.

As in Spark, the part is NULL if the whole is NULL, or if there is no such element or key. Arrow's own functions for
elements and keys fail for a position beyond the end, and ignore the bounds of sliced arrays.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.runtime.kernels.conversion import Value
from hintplan.runtime.state.layout import Int64s


def field_of(rows: Value, *, place: int) -> Value:
    """Return the field at ``place`` of each ROW."""
    return pc.struct_field(rows, [place])


def element_of(lists: pa.Array, position: Value) -> pa.Array:
    """Return the element at ``position``, counted from 0, of each ARRAY; positions are integers of at most 32 bits."""
    start, count = _ranges(lists)
    if isinstance(position, pa.Scalar):
        at = np.full(len(lists), -1 if position.as_py() is None else position.as_py(), np.int64)
    else:
        at = np.asarray(pc.fill_null(position, -1)).astype(np.int64)
    lacking = (at < 0) | (at >= count)
    return lists.values.take(pa.array(np.where(lacking, 0, start + at), mask=lacking))


def value_of(maps: pa.Array, *, key: pa.Scalar) -> pa.Array:
    """Return the value of ``key`` in each MAP; the first one, if the map has the key twice."""
    start, count = _ranges(maps)
    hits = np.flatnonzero(pc.equal(maps.keys, key))
    first = np.searchsorted(hits, start)
    lacking = first == len(hits)
    at = np.append(hits, 0)[first].astype(np.int64)
    lacking |= at >= start + count
    return maps.items.take(pa.array(np.where(lacking, 0, at), mask=lacking))


def size_of(lists: pa.Array) -> pa.Array:
    """Return the number of elements of each ARRAY, or of entries of each MAP."""
    return pa.array(_ranges(lists)[1].astype(np.int32), mask=_absent(lists))


def _ranges(lists: pa.Array) -> tuple[Int64s, Int64s]:
    """Return the offset of each list's first element among all elements, and the list's length; 0 for NULL."""
    offsets = np.asarray(lists.offsets).astype(np.int64)
    count = np.diff(offsets)
    if lists.null_count:
        count[_absent(lists)] = 0
    return offsets[:-1], count


def _absent(lists: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.asarray(pc.is_null(lists))
