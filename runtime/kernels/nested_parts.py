"""Parts of nested values: fields of a ROW, elements of an ARRAY by position, values of a MAP by key, and how many.

NULL where the whole is NULL, and where there is no such element or key, as in Spark. Arrow's own functions for elements
and keys fail for a position beyond the end, and read past the slice that an array is.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.runtime.kernels.conversion import Value
from hintplan.runtime.state.layout import Int64s


def field_of(rows: Value, *, place: int) -> Value:
    """The field at ``place`` of each ROW."""
    return pc.struct_field(rows, [place])


def element_of(lists: pa.Array, position: Value) -> pa.Array:
    """The element at ``position``, counted from 0, of each ARRAY; a position is an integer of at most 32 bits."""
    start, count = _ranges(lists)
    if isinstance(position, pa.Scalar):
        at = np.full(len(lists), -1 if position.as_py() is None else position.as_py(), np.int64)
    else:
        at = np.asarray(pc.fill_null(position, -1)).astype(np.int64)
    lacking = (at < 0) | (at >= count)
    return lists.values.take(pa.array(np.where(lacking, 0, start + at), mask=lacking))


def value_of(maps: pa.Array, *, key: pa.Scalar) -> pa.Array:
    """The value of ``key`` in each MAP: of a key that is there twice, the first."""
    start, count = _ranges(maps)
    hits = np.flatnonzero(pc.equal(maps.keys, key))
    first = np.searchsorted(hits, start)
    lacking = first == len(hits)
    at = np.append(hits, 0)[first].astype(np.int64)
    lacking |= at >= start + count
    return maps.items.take(pa.array(np.where(lacking, 0, at), mask=lacking))


def size_of(lists: pa.Array) -> pa.Array:
    """How many elements an ARRAY or entries a MAP has."""
    return pa.array(_ranges(lists)[1].astype(np.int32), mask=_absent(lists))


def _ranges(lists: pa.Array) -> tuple[Int64s, Int64s]:
    """Where the elements of each begin among the values of all, and how many there are; none of a NULL."""
    offsets = np.asarray(lists.offsets).astype(np.int64)
    count = np.diff(offsets)
    if lists.null_count:
        count[_absent(lists)] = 0
    return offsets[:-1], count


def _absent(lists: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.asarray(pc.is_null(lists))
