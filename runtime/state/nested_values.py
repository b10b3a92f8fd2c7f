"""Numbers for values of ROW, ARRAY and MAP, equal where the values are equal, because Arrow cannot compare them.

Inside a value, NULL equals NULL, 0.0 equals -0.0, and NaN equals NaN. The entries of a MAP have no order. Only numbers
from the same call can be compared.

>>> nested_numbers(pa.array([[1, None], [1], None, [1, None]])).to_pylist()
[0, 1, None, 0]
"""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.runtime.state.layout import Int64s


def nested_numbers(column: pa.Array) -> pa.Array:
    """Return the number of each value of a nested column, NULL for NULL."""
    column = column.take(pa.array(np.arange(len(column))))  # removes gaps between and before its values
    kind = column.type
    if pa.types.is_struct(kind):
        codes = _together([_inside(child) for child in column.flatten()], len(column))
    elif pa.types.is_map(kind):
        codes = _of_lists(_in_order(column), _lengths(column))
    elif pa.types.is_list(kind):
        codes = _of_lists(_inside(column.flatten()), _lengths(column))
    else:
        raise TypeError(f"values of type {kind} are not compared")
    return pa.array(codes, mask=np.asarray(column.is_null()))


def _inside(column: pa.Array) -> Int64s:
    """Return a number for each value; NULL is a value."""
    if pa.types.is_nested(column.type):
        column = nested_numbers(column)
    elif pa.types.is_floating(column.type):
        column = pc.add(column, pa.scalar(0, pa.int8()).cast(column.type))  # -0.0 + 0.0 is 0.0
        column = pc.if_else(pc.is_nan(column), pa.scalar(math.nan, column.type), column)
    return _codes(column)


def _codes(column: pa.Array) -> Int64s:
    encoded = pc.dictionary_encode(column, null_encoding="encode")
    return np.asarray(encoded.indices).astype(np.int64)


def _together(parts: list[Int64s], size: int) -> Int64s:
    """Return one number for the numbers of all ``parts`` of a value."""
    whole = np.zeros(size, np.int64)
    for part in parts:
        whole = _codes(pa.array(whole * (int(part.max(initial=0)) + 1) + part))
    return whole


def _lengths(column: pa.Array) -> Int64s:
    """Return the number of elements of each value; NULL has none."""
    offsets: Int64s = np.asarray(column.offsets).astype(np.int64)
    return offsets[1:] - offsets[:-1]


def _in_order(column: pa.Array) -> Int64s:
    """Return the numbers of the entries of each MAP, in order."""
    entries = _together([_inside(column.keys), _inside(column.items)], len(column.keys))
    owners = np.repeat(np.arange(len(column)), _lengths(column))
    return entries[np.lexsort((entries, owners))]


def _of_lists(elements: Int64s, lengths: Int64s) -> Int64s:
    """Return a number for each run of elements: its bytes, which Arrow encodes as a dictionary."""
    ends = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths))) * elements.itemsize
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(np.ascontiguousarray(elements))]
    return _codes(pa.Array.from_buffers(pa.large_binary(), len(lengths), buffers))
