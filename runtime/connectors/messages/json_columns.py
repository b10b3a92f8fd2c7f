"""Reads and writes JSON in batches with Arrow, if the result is the same as row by row.

Most messages are plain objects, with numbers for numeric columns and texts for text columns. Arrow's parser reads these
ten times as fast as Python, and messages that are alike are read faster still
(:mod:`hintplan.runtime.connectors.json_alike`). If Arrow rejects messages or might read them differently, they go to
:mod:`hintplan.runtime.connectors.messages.json_in`, and so does every error. So only that module defines the meaning of
a message, and its errors.

All values are written here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from hintplan.plans.connectors.messages.formats import Part
from hintplan.plans.declarations.types import DataType, parse_type
from hintplan.runtime.connectors.json_alike import Columns, columns_alike
from hintplan.runtime.connectors.messages.json_objects import json_style_of
from hintplan.runtime.connectors.messages.text_columns_in import (
    Int32s,
    as_declared,
    is_in_bulk,
    is_utf8,
    layout_of,
    number_as,
)
from hintplan.runtime.connectors.messages.text_columns_out import texts_writer, with_others
from hintplan.runtime.connectors.messages.texts_out import JsonStyle, json_encoder, json_text
from hintplan.runtime.connectors.text_values import column_of
from hintplan.runtime.types import to_arrow

ReadColumns = Callable[[pa.Array], list[pa.Array] | None]
"""Returns the columns of a part for messages without NULL, or None if the messages are not plain."""

Types = dict[str, tuple[str, DataType]]
"""The field and the type of each column, by its name."""

_NOT_PLAIN = (
    (b"NaN", r"[:\[,]\s*-?NaN\s*[,\]}]"),
    (b"Inf", r"[:\[,]\s*-?Inf(inity)?\s*[,\]}]"),
    (b"-0", r":\s*-0\s*[,}]"),
    (b"\0", r"\x00"),
)
"""Patterns of what Arrow reads differently, each with a text that it contains, which is faster to find.

The first byte is the fastest to find, so it is searched for first.
"""
_NOT_PLAIN_DECIMALS = (b"", "[0-9]{20}|[0-9][eE][-+]?[0-9]")
"""With fewer digits and a scale of at most 18, every DECIMAL is within Arrow's range."""
_MOST_BRACKETS = 500
"""A message with more brackets may be nested too deeply for Python."""
_FIRST_BYTES = 1 << 16
_DOUBLE = DataType(root="DOUBLE")
_BLANKS = " \t\r\n"
_ESCAPED = r'["\\\x00-\x1f]'


def columns_reader(part: Part, wanted: Collection[str]) -> ReadColumns | None:
    """Return a function that decodes batches of messages; None if ``part`` must be read row by row."""
    if part.format != "json" or part.option("fail-on-missing-field") == "true":
        return None
    types = types_in_bulk(part, wanted)
    if types is None:
        return None
    parse, declared = objects_reader(partial(fields_of, types), types), columns_of(part, types)
    read_alike, are_alike = _alike_reader(part, types), True

    def read(messages: pa.Array) -> list[pa.Array] | None:
        nonlocal are_alike
        if not len(messages):
            return [pa.nulls(0, to_arrow(column.type)) for column in part.columns]
        try:
            if are_alike and (alike := read_alike(messages)) is not None:
                return _in_order(part, alike, len(messages))
            found = parse(messages)
            columns = None if found is None else declared(found)
        except pa.ArrowInvalid:
            return None
        are_alike = are_alike and columns is None  # otherwise the parser alone is faster, also for the next batches
        return columns

    return read


def _alike_reader(part: Part, types: Types) -> Callable[[pa.Array], Columns | None]:
    """Return a function that reads messages, of which most are alike, faster than Arrow's parser.

    The function returns None if few are alike, or if a value may be another one in rows.
    """
    iso, not_plain, of_fields = _has_iso_times(part), _not_plain(types), dict(types.values())

    def convert(texts: pa.Array, data_type: DataType) -> pa.Array | None:
        if not data_type.is_numeric:
            return as_declared(texts, data_type, iso=iso)
        numbers = column_of(texts, _DOUBLE if data_type.root == "FLOAT" else data_type)
        return None if numbers is None else as_declared(numbers, data_type)

    def parse(lines: bytes, count: int) -> Columns | None:
        table = _parsed(lines, fields_of(types))
        table.validate(full=True)
        columns: Columns = {}
        for field, data_type in of_fields.items():
            column = as_declared(table.column(field).combine_chunks(), data_type, iso=iso)
            if column is None:
                return None
            columns[field] = column
        return columns if table.num_rows == count else None

    def read(messages: pa.Array) -> Columns | None:
        text = _lines(messages)
        if text is None or not _are_plain(text, not_plain):
            return None
        ends = np.flatnonzero(np.frombuffer(text, np.uint8) < ord(" ")).astype(np.int32)
        if ends.size != len(messages) or text.count(b"\n") != ends.size:
            return None
        starts = np.concatenate((np.zeros(1, np.int32), ends[:-1] + 1))
        try:
            columns = columns_alike(text, starts, ends, of_fields, parse, convert)
        except pa.ArrowInvalid:
            return None
        return None if columns is None else {name: columns[field] for name, (field, _) in types.items()}

    return read


def types_in_bulk(part: Part, wanted: Collection[str]) -> Types | None:
    """Return the columns of ``part`` that are ``wanted``; None if there are none, or if Arrow cannot read them all."""
    described = zip(part.columns, part.fields, strict=True)
    types = {column.name: (field, parse_type(column.type)) for column, field in described if column.name in wanted}
    return types if types and all(is_in_bulk(data_type) for _, data_type in types.values()) else None


def fields_of(types: Types, quoted: Collection[str] = ()) -> list[pa.Field]:
    """Return the fields of an object as Arrow's parser shall read them; ``quoted`` fields have numbers in quotes."""
    return [
        pa.field(field, pa.string() if field in quoted else _read_as(data_type)) for field, data_type in types.values()
    ]


def objects_reader(
    fields: Callable[[Collection[str]], list[pa.Field]], types: Types
) -> Callable[[pa.Array], pa.Table | None]:
    """Return a function that parses messages without NULL as objects with the fields of ``types``.

    ``fields`` returns what an object has, given the fields whose numbers are in quotes. The function returns None, or
    raises ArrowInvalid, if Arrow does not read the messages, or might read them differently.
    """
    not_plain, quoted = _not_plain(types), frozenset[str]()
    numeric = [field for field, data_type in types.values() if data_type.is_numeric]

    def parse(messages: pa.Array) -> pa.Table | None:
        nonlocal quoted
        text = _lines(messages)
        if text is None or not _are_plain(text, not_plain):
            return None
        try:
            table = _parsed(text, fields(quoted))
        except pa.ArrowInvalid:
            if (now := _in_quotes(text, numeric)) == quoted:
                raise
            quoted = now
            table = _parsed(text, fields(quoted))
        if table.num_rows != len(messages):
            return None
        if b"\\" in text:  # without escapes, a text is a part of valid UTF-8
            table.validate(full=True)
        return table.combine_chunks()

    return parse


def _parsed(text: bytes, fields: list[pa.Field]) -> pa.Table:
    options = pa.json.ParseOptions(explicit_schema=pa.schema(fields), unexpected_field_behavior="ignore")
    whole = pa.json.ReadOptions(use_threads=False, block_size=len(text) + 1)
    return pa.json.read_json(pa.BufferReader(text), read_options=whole, parse_options=options)


def _in_quotes(text: bytes, fields: Collection[str]) -> frozenset[str]:
    """Return which ``fields`` have a text in one of the first messages."""
    first = text[:_FIRST_BYTES]
    return frozenset(field for field in fields if re.search(re.escape(json_text(field).encode()) + rb'\s*:\s*"', first))


def columns_of(part: Part, types: Types) -> Callable[[pa.Table], list[pa.Array] | None]:
    """Return a function that gives the parsed fields their declared types; NULL for the columns without a type.

    It returns None, or raises ArrowInvalid, if a value has another form.
    """
    iso = _has_iso_times(part)

    def declared(table: pa.Table) -> list[pa.Array] | None:
        columns: Columns = {}
        for name, (field, data_type) in types.items():
            column = as_declared(table.column(field).combine_chunks(), data_type, iso=iso)
            if column is None:
                return None
            columns[name] = column
        return _in_order(part, columns, table.num_rows)

    return declared


def _in_order(part: Part, columns: Columns, size: int) -> list[pa.Array]:
    """Return ``columns``, by name, in the order of ``part``. Columns that are not read are NULL."""
    return [
        columns[column.name] if column.name in columns else pa.nulls(size, to_arrow(column.type))
        for column in part.columns
    ]


def _has_iso_times(part: Part) -> bool:
    return part.option("timestamp-format.standard") == "iso-8601"


def odd_messages(part: Part, wanted: Collection[str], messages: pa.Array) -> pa.Array | None:
    """Return which messages have a text that Arrow might read differently; None if ``part`` is read row by row."""
    types = types_in_bulk(part, wanted) if part.format in ("json", "debezium-json") else None
    if types is None:
        return None
    pattern = "|".join(pattern for _, pattern in _not_plain(types))
    return pc.match_substring_regex(messages, pattern).fill_null(False)


def _not_plain(types: Types) -> tuple[tuple[bytes, str], ...]:
    decimals = any(data_type.root == "DECIMAL" for _, data_type in types.values())
    return (*_NOT_PLAIN, _NOT_PLAIN_DECIMALS) if decimals else _NOT_PLAIN


def _read_as(data_type: DataType) -> pa.DataType:
    return number_as(data_type) if data_type.is_numeric or data_type.root == "BOOLEAN" else pa.string()


def _lines(messages: pa.Array) -> bytes | None:
    """Return the messages, each followed by a line end; None unless each begins with ``{`` and ends with ``}``.

    No text of JSON contains a line end, and no value contains ``}``, blanks and ``{``. So if all lines together are
    valid, no object spans two messages, and if there are as many objects as messages, each message is one object.
    """
    ends = _ends(messages)
    if ends is None:
        messages = pc.ascii_rtrim(messages.cast(pa.string()), _BLANKS)  # ArrowInvalid for invalid UTF-8
        if (ends := _ends(messages)) is None:
            return None
    if int(np.diff(ends).max()) >= _MOST_BRACKETS and not _are_flat(messages):
        return None
    lines = pc.binary_join_element_wise(messages, *(pa.scalar(text, messages.type) for text in ("", "\n")))
    return bytes(lines.buffers()[2].to_pybytes())


def _ends(messages: pa.Array) -> Int32s | None:
    """Return the offsets of messages that all begin with ``{`` and end with ``}``, otherwise None."""
    offsets, data = layout_of(messages)
    if (np.diff(offsets) < len("{}")).any():
        return None
    if (data[offsets[:-1]] != ord("{")).any() or (data[offsets[1:] - 1] != ord("}")).any():
        return None
    return offsets


def _are_flat(messages: pa.Array) -> bool:
    """Return true if no message has so many brackets that it may be nested deeply."""
    long = messages.filter(pc.greater_equal(pc.binary_length(messages), _MOST_BRACKETS))
    return all((pc.max(pc.count_substring(long, bracket)).as_py() or 0) < _MOST_BRACKETS for bracket in "[{")


def _are_plain(text: bytes, not_plain: Sequence[tuple[bytes, str]]) -> bool:
    """Return true if ``text`` is UTF-8, and has nothing that Arrow might read differently."""
    if not is_utf8(text):
        return False
    patterns = [pattern for found, pattern in not_plain if found[:1] in text and found in text]
    if not patterns:
        return True
    size = np.array([0, len(text)], np.int32)
    whole = pa.Array.from_buffers(pa.binary(), 1, [None, pa.py_buffer(size), pa.py_buffer(text)])
    return not pc.match_substring_regex(whole, "|".join(patterns))[0].as_py()


def columns_writer(part: Part) -> Callable[[pa.RecordBatch], pa.Array] | None:
    """Return a function that encodes batches as JSON objects; None if ``part`` must be written row by row."""
    if part.format != "json" or (objects := objects_writer(part)) is None:
        return None
    return lambda batch: objects(batch).cast(pa.binary())


def objects_writer(part: Part) -> Callable[[pa.RecordBatch], pa.Array] | None:
    """Return a function that encodes batches as texts of objects; None if ``part`` must be written row by row."""
    if (style := json_style_of(part)).without_nulls:
        return None
    writers = [(column.name, _writer(column.type, style)) for column in part.columns]
    before = [f"{'{' if not number else ','}{json_text(field)}:" for number, field in enumerate(part.fields)]

    def write(batch: pa.RecordBatch) -> pa.Array:
        if not writers:
            return pa.array(["{}"] * batch.num_rows, pa.string())
        texts: list[Any] = []
        for start, (name, text_of) in zip(before, writers, strict=True):
            texts += (start, text_of(batch.column(name)).fill_null("null"))
        return pc.binary_join_element_wise(*texts, "}", "")

    return write


def _writer(type_text: str, style: JsonStyle) -> Callable[[pa.Array], pa.Array]:
    """Return a function that encodes a column as JSON; NULL stays NULL."""
    data_type = parse_type(type_text)
    if data_type.is_text:
        return _written_texts
    return texts_writer(data_type, json_encoder(type_text, style), iso=style.iso, quote='"')


def _quoted(column: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise('"', column, '"', "")


def _written_texts(column: pa.Array) -> pa.Array:
    offsets, data = layout_of(column)
    data = data[offsets[0] : offsets[-1]]
    if not ((data < ord(" ")) | (data == ord('"')) | (data == ord("\\"))).any():
        return _quoted(column)
    return with_others(_quoted(column), column, pc.invert(pc.match_substring_regex(column, _ESCAPED)), json_text)
