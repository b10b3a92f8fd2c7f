"""Converts columns of files to the types of a table, if these can hold each value; also inside of nested columns.

Fields of a ROW are matched by their names. A field that the file lacks is NULL. Names of list elements and of map
entries have no meaning.

>>> is_fitting(pa.list_(pa.int16()), pa.list_(pa.int64())), is_fitting(pa.list_(pa.int64()), pa.list_(pa.int16()))
(True, False)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import repeat
from typing import Any

import pyarrow as pa

_AS_IN_ARROW = repeat(None)


def logical_type(kind: pa.DataType, stored: Iterator[pa.DataType | None] = _AS_IN_ARROW) -> pa.DataType:
    """Return the logical type of ``kind``: a file written from Arrow keeps the writer's in-memory layout.

    ``stored`` yields the logical type of each value inside of ``kind``, or None if the type in ``kind`` is right.
    """
    kinds = pa.types
    if kinds.is_struct(kind):
        return pa.struct([pa.field(field.name, logical_type(field.type, stored)) for field in kind])
    if kinds.is_map(kind):
        key_type = logical_type(kind.key_type, stored)
        return pa.map_(key_type, logical_type(kind.item_type, stored))
    if _is_list(kind):
        return pa.list_(logical_type(kind.value_type, stored))
    if kinds.is_dictionary(kind):
        return logical_type(kind.value_type, stored)
    if isinstance(kind, pa.BaseExtensionType):
        logical_type(kind.storage_type, stored)
        return kind
    if (known := next(stored, None)) is not None:
        return known
    if kinds.is_large_string(kind) or kinds.is_string_view(kind):
        return pa.string()
    return pa.binary() if kinds.is_large_binary(kind) or kinds.is_binary_view(kind) else kind


def is_fitting(found: pa.DataType, wanted: pa.DataType, *, texts_are_bytes: bool = True) -> bool:
    """Return true if each value of type ``found`` is one of type ``wanted``; times may be truncated to microseconds.

    ``found`` is a logical type. With ``texts_are_bytes``, a text has the same value as its bytes.
    """
    kinds = pa.types
    fits = partial(is_fitting, texts_are_bytes=texts_are_bytes)
    if kinds.is_null(found):
        return True
    if kinds.is_struct(wanted):
        if not kinds.is_struct(found):
            return False
        names = [field.name for field in found]
        fields = [field for field in wanted if field.name in names]
        return all(names.count(f.name) == 1 and fits(found.field(f.name).type, f.type) for f in fields)
    if kinds.is_map(wanted):
        is_map = kinds.is_map(found)
        return is_map and fits(found.key_type, wanted.key_type) and fits(found.item_type, wanted.item_type)
    if kinds.is_list(wanted):
        return kinds.is_list(found) and fits(found.value_type, wanted.value_type)
    if not texts_are_bytes and (kinds.is_string(wanted) or kinds.is_binary(wanted)):
        return bool(found == wanted)
    return _is_fitting_scalar(found, wanted)


def converted(
    column: pa.ChunkedArray, found: pa.DataType, wanted: pa.DataType, *, null_rows: bool = False
) -> pa.ChunkedArray:
    """Return ``column``, whose logical type ``found`` is fitting, as ``wanted``.

    With ``null_rows``, a ROW is NULL if the file has none of its fields, as is an array of such rows.
    """
    if not pa.types.is_nested(wanted):
        return column if column.type == wanted else pa.chunked_array(_scalars(column, found, wanted), wanted)
    chunks = [_nested(chunk, found, wanted, null_rows=null_rows) for chunk in column.chunks]
    return pa.chunked_array(chunks, wanted)


def leaves(column: pa.ChunkedArray) -> Iterator[pa.ChunkedArray]:
    """Yield ``column``, or the columns of all values inside of a nested one."""
    for_each = [chunk for chunk in column.chunks if len(chunk)]
    kind = column.type
    if pa.types.is_struct(kind):
        parts = [[chunk.field(index) for chunk in for_each] for index in range(kind.num_fields)]
        types = [field.type for field in kind]
    elif pa.types.is_map(kind):
        parts, types = [[c.keys for c in for_each], [c.items for c in for_each]], [kind.key_type, kind.item_type]
    elif pa.types.is_list(kind):
        parts, types = [[chunk.values for chunk in for_each]], [kind.value_type]
    else:
        yield column
        return
    for chunks, part in zip(parts, types, strict=True):
        yield from leaves(pa.chunked_array(chunks, part))


def _is_list(kind: pa.DataType) -> bool:
    kinds = pa.types
    return bool(
        kinds.is_list(kind)
        or kinds.is_large_list(kind)
        or kinds.is_fixed_size_list(kind)
        or kinds.is_list_view(kind)
        or kinds.is_large_list_view(kind)
    )


def _is_fitting_scalar(found: Any, wanted: Any) -> bool:
    kinds = pa.types
    fits = found == wanted
    if kinds.is_timestamp(wanted):
        same = kinds.is_timestamp(found) and (found.tz is None) == (wanted.tz is None)
        fits = same or (wanted.tz is None and kinds.is_date32(found))
    elif kinds.is_signed_integer(wanted) and kinds.is_integer(found):
        fits = found.bit_width + kinds.is_unsigned_integer(found) <= wanted.bit_width
    elif kinds.is_floating(wanted) and kinds.is_floating(found):
        fits = found.bit_width <= wanted.bit_width
    elif kinds.is_floating(wanted) and kinds.is_integer(found):
        fits = found.bit_width <= (24 if wanted.bit_width == 32 else 53)
    elif kinds.is_decimal(wanted) and kinds.is_integer(found):
        fits = wanted.precision - wanted.scale >= (10 if found.bit_width <= 32 else 20)
    elif kinds.is_decimal(wanted) and kinds.is_decimal(found):
        extra_scale = wanted.scale - found.scale
        fits = extra_scale >= 0 and found.precision + extra_scale <= wanted.precision
    elif kinds.is_string(wanted) or kinds.is_binary(wanted):
        fits = kinds.is_string(found) or kinds.is_binary(found)
        fits = fits or (kinds.is_binary(wanted) and kinds.is_fixed_size_binary(found))
    return bool(fits)


def _scalars(values: Any, found: pa.DataType, wanted: pa.DataType) -> Any:
    if values.type == wanted:
        return values
    if found != values.type:
        values = values.cast(found)
    return values.cast(wanted, safe=not pa.types.is_timestamp(wanted))  # nanoseconds are truncated to microseconds


def _nested(values: pa.Array, found: pa.DataType, wanted: pa.DataType, *, null_rows: bool) -> pa.Array:
    kinds = pa.types
    if kinds.is_null(found) or (null_rows and _lacks_all(found, wanted)):
        return pa.nulls(len(values), wanted)
    if kinds.is_struct(wanted):
        parts = [
            _nested(values.field(field.name), found.field(field.name).type, field.type, null_rows=null_rows)
            if found.get_field_index(field.name) >= 0
            else pa.nulls(len(values), field.type)
            for field in wanted
        ]
        return pa.StructArray.from_arrays(parts, fields=list(wanted), mask=values.is_null())
    if kinds.is_map(wanted):
        keys = _nested(values.keys, found.key_type, wanted.key_type, null_rows=null_rows)
        items = _nested(values.items, found.item_type, wanted.item_type, null_rows=null_rows)
        if keys.null_count:
            raise pa.ArrowInvalid("a map has NULL as a key")
        entries = pa.StructArray.from_arrays([keys, items], fields=[wanted.key_field, wanted.item_field])
        return _with_child(values, wanted, entries)
    if kinds.is_list(wanted):
        if not kinds.is_list(values.type):
            values = values.cast(pa.list_(values.type.value_type))
        return _with_child(
            values, wanted, _nested(values.values, found.value_type, wanted.value_type, null_rows=null_rows)
        )
    return _scalars(values, found, wanted)


def _with_child(values: pa.Array, kind: pa.DataType, child: pa.Array) -> pa.Array:
    """Return a list or a map with the ranges and NULLs of ``values``."""
    return pa.Array.from_buffers(kind, len(values), values.buffers()[:2], values.null_count, values.offset, [child])


def _lacks_all(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Return true if ``found`` has no value at all of the nested type ``wanted``."""
    if pa.types.is_struct(wanted):
        return all(found.get_field_index(f.name) < 0 or _lacks_all(found.field(f.name).type, f.type) for f in wanted)
    if pa.types.is_map(wanted):
        return _lacks_all(found.key_type, wanted.key_type) and _lacks_all(found.item_type, wanted.item_type)
    return pa.types.is_list(wanted) and _lacks_all(found.value_type, wanted.value_type)
