"""Reads and writes JSON in batches with Arrow, if the result is the same as row by row.

Most messages are plain objects, with numbers for numeric columns and texts for text columns. Arrow's parser reads these
ten times as fast as Python. If Arrow rejects messages or might read them differently, they go to
:mod:`hintplan.runtime.connectors.messages.json_in`, and so does every error. So only that module defines the meaning of
a message, and its errors.

All values are written here. A value whose text differs in Arrow, such as DECIMAL 1E+2 or a DOUBLE below 0.001, is
written separately.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from hintplan.plans.connectors.messages.formats import Part
from hintplan.plans.declarations.types import DataType, parse_type
from hintplan.runtime.connectors.messages.json_objects import json_style_of
from hintplan.runtime.connectors.messages.texts_out import JsonStyle, json_encoder, json_text
from hintplan.runtime.types import to_arrow

Int32s = npt.NDArray[np.int32]

ReadColumns = Callable[[pa.Array], list[pa.Array] | None]
"""Returns the columns of a part for messages without NULL, or None if the messages are not plain."""

Types = dict[str, tuple[str, DataType]]
"""The field and the type of each column, by its name."""

_WHOLE = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_FLOATING = ("FLOAT", "DOUBLE")
_TIMES = ("TIMESTAMP", "TIMESTAMP_LTZ")
_DAY = "[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}"
_CLOCK = r"[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?"
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
_MOST_SCALE = 18
_FIRST_TIME, _LAST_TIME = datetime(1000, 1, 1), datetime(9999, 12, 31, 23, 59, 59)
"""Between these, years have four digits in Arrow, too."""
_MOST_BRACKETS = 500
"""A message with more brackets may be nested too deeply for Python."""
_FIRST_BYTES = 1 << 16
_IN_QUOTES = {
    "DECIMAL": r"^-?[0-9]{1,18}(\.[0-9]{0,%d})?$",
    "FLOAT": r"^-?[0-9]{1,15}(\.[0-9]{1,15})?$",
    "DOUBLE": r"^-?[0-9]{1,15}(\.[0-9]{1,15})?$",
}
"""Patterns of numbers in quotes that Arrow reads as Python does, with the scale of a DECIMAL."""
_WHOLE_IN_QUOTES = r"^-?[0-9]{1,18}$"
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

    def read(messages: pa.Array) -> list[pa.Array] | None:
        if not len(messages):
            return [pa.nulls(0, to_arrow(column.type)) for column in part.columns]
        try:
            found = parse(messages)
            return None if found is None else declared(found)
        except pa.ArrowInvalid:
            return None

    return read


def types_in_bulk(part: Part, wanted: Collection[str]) -> Types | None:
    """Return the columns of ``part`` that are ``wanted``; None if there are none, or if Arrow cannot read them all."""
    described = zip(part.columns, part.fields, strict=True)
    types = {column.name: (field, parse_type(column.type)) for column, field in described if column.name in wanted}
    return types if types and all(_is_plain(data_type) for _, data_type in types.values()) else None


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
    iso = part.option("timestamp-format.standard") == "iso-8601"

    def declared(table: pa.Table) -> list[pa.Array] | None:
        columns = {}
        for name, (field, data_type) in types.items():
            column = _as_declared(table.column(field).combine_chunks(), data_type, iso)
            if column is None:
                return None
            if not data_type.is_text:
                column.validate(full=True)
            columns[name] = column
        return [
            columns[column.name] if column.name in columns else pa.nulls(table.num_rows, to_arrow(column.type))
            for column in part.columns
        ]

    return declared


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


def _is_plain(data_type: DataType) -> bool:
    if data_type.root == "DECIMAL":
        return (data_type.scale or 0) <= _MOST_SCALE
    return data_type.is_text or data_type.root in (*_WHOLE, *_FLOATING, *_TIMES, "BOOLEAN", "DATE")


def _read_as(data_type: DataType) -> pa.DataType:
    if data_type.root == "FLOAT":
        return pa.float64()  # and then rounded, as in the code for rows
    return pa.string() if data_type.root in ("DATE", *_TIMES) else to_arrow(str(data_type))


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


def layout_of(column: pa.Array) -> tuple[Int32s, npt.NDArray[np.uint8]]:
    """Return the offsets of the values of a binary or text column, and the bytes to which they point."""
    if not len(column):
        return np.zeros(1, np.int32), np.empty(0, np.uint8)
    _, offsets, data = column.buffers()
    values = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1], values


def _are_flat(messages: pa.Array) -> bool:
    """Return true if no message has so many brackets that it may be nested deeply."""
    long = messages.filter(pc.greater_equal(pc.binary_length(messages), _MOST_BRACKETS))
    return all((pc.max(pc.count_substring(long, bracket)).as_py() or 0) < _MOST_BRACKETS for bracket in "[{")


def _are_plain(text: bytes, not_plain: Sequence[tuple[bytes, str]]) -> bool:
    """Return true if ``text`` is UTF-8, and has nothing that Arrow might read differently."""
    if not text.isascii() and not _is_utf8(text):
        return False
    patterns = [pattern for found, pattern in not_plain if found[:1] in text and found in text]
    if not patterns:
        return True
    size = np.array([0, len(text)], np.int32)
    whole = pa.Array.from_buffers(pa.binary(), 1, [None, pa.py_buffer(size), pa.py_buffer(text)])
    return not pc.match_substring_regex(whole, "|".join(patterns))[0].as_py()


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _as_declared(column: pa.Array, data_type: DataType, iso: bool) -> pa.Array | None:
    if data_type.is_numeric and pa.types.is_string(column.type):
        pattern = _IN_QUOTES.get(data_type.root, _WHOLE_IN_QUOTES)
        if not _all_match(column, pattern % data_type.scale if data_type.root == "DECIMAL" else pattern):
            return None
        column = column.cast(_read_as(data_type))
    if data_type.root == "FLOAT":
        return column.cast(pa.float32(), safe=False)
    if data_type.root == "DATE":
        return column.cast(pa.date32()) if _all_match(column, f"^{_DAY}$") else None
    if data_type.root in _TIMES:
        zoned = data_type.root == "TIMESTAMP_LTZ"
        if not _all_match(column, f"^{_DAY}{'T' if iso else ' '}{_CLOCK}{'Z' if zoned else ''}$"):
            return None
        moments = (pc.utf8_rtrim(column, "Z") if zoned else column).cast(pa.timestamp("us"))
        return (pc.assume_timezone(moments, "UTC") if zoned else moments).cast(to_arrow(str(data_type)))
    return column


def _all_match(column: pa.Array, pattern: str) -> bool:
    return pc.all(pc.match_substring_regex(column, pattern)).as_py() is not False


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
    data_type, encode = parse_type(type_text), json_encoder(type_text, style)
    root = data_type.root
    if root in (*_WHOLE, "BOOLEAN"):
        return lambda column: column.cast(pa.string())
    if data_type.is_text:
        return _written_texts
    if root == "DATE":
        return lambda column: _quoted(column.cast(pa.string()))
    if root == "DOUBLE":
        return lambda column: _written_doubles(column, encode)
    if root == "DECIMAL":
        return lambda column: _written_decimals(column, encode)
    if root in _TIMES:
        return lambda column: _written_times(column, encode, style.iso)
    return lambda column: pa.array(list(map(encode, column.to_pylist())), pa.string())


def _quoted(column: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise('"', column, '"', "")


def _written_texts(column: pa.Array) -> pa.Array:
    offsets, data = layout_of(column)
    data = data[offsets[0] : offsets[-1]]
    if not ((data < ord(" ")) | (data == ord('"')) | (data == ord("\\"))).any():
        return _quoted(column)
    return _with_others(_quoted(column), column, pc.invert(pc.match_substring_regex(column, _ESCAPED)), json_text)


def _written_doubles(column: pa.Array, one: Callable[[Any], str]) -> pa.Array:
    """Return the texts of doubles as in Java: with a point, and without exponent from 0.001 to 10 million."""
    size = pc.abs(column)
    plain = pc.or_(pc.and_(pc.greater_equal(size, 1e-3), pc.less(size, 1e7)), pc.equal(column, 0.0))
    texts = column.cast(pa.string())
    texts = pc.if_else(pc.match_substring(texts, "."), texts, pc.binary_join_element_wise(texts, ".0", ""))
    return _with_others(texts, column, plain, one)


def _written_decimals(column: pa.Array, one: Callable[[Any], str]) -> pa.Array:
    """Return the texts of decimals without trailing zeros; for 100, ``one`` writes 1E+2."""
    texts = column.cast(pa.string())
    short = pc.replace_substring_regex(texts, r"(\.[0-9]*?)0+$", r"\1")
    short = pc.replace_substring_regex(short, r"\.$", "")
    plain = pc.match_substring_regex(short, r"^-?([0-9]*[1-9]|[0-9]+\.0{0,5}[1-9][0-9]*|0)$")
    return _with_others(short, column, plain, one)


def _written_times(column: pa.Array, one: Callable[[Any], str], iso: bool) -> pa.Array:
    """Return the texts of times, with microseconds without trailing zeros; those with a zone in UTC, with ``Z``."""
    times = column.cast(pa.timestamp("us", column.type.tz)).view(pa.timestamp("us"))
    in_range = pc.and_(pc.greater_equal(times, _FIRST_TIME), pc.less_equal(times, _LAST_TIME))
    texts = pc.ascii_rtrim(pc.ascii_rtrim(pc.if_else(in_range, times, None).cast(pa.string()), "0"), ".")
    if iso:
        texts = pc.binary_replace_slice(texts, 10, 11, "T")
    written = pc.binary_join_element_wise('"', texts, '"' if column.type.tz is None else 'Z"', "")
    return _with_others(written, column, in_range, one)


def _with_others(texts: pa.Array, column: pa.Array, plain: pa.Array, one: Callable[[Any], str]) -> pa.Array:
    """Return ``texts`` where they are ``plain``, and elsewhere the text that ``one`` returns; NULL stays NULL."""
    is_other = pc.and_(pc.invert(plain), column.is_valid()).fill_null(False)
    if not pc.any(is_other).as_py():
        return pc.if_else(column.is_valid(), texts, None)
    written = pa.array(list(map(one, column.filter(is_other).to_pylist())), pa.string())
    return pc.replace_with_mask(pc.if_else(column.is_valid(), texts, None), is_other, written)
