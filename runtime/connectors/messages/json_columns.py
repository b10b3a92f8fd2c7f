"""JSON read and written a batch at a time in Arrow, where that comes to the same as row by row.

Most messages are plain: an object with numbers where columns are numbers and text where they are text. Arrow's parser
reads these ten times as fast as Python does. Whatever it does not take, or would take otherwise than
:mod:`hintplan.runtime.connectors.messages.json_in`, sends the whole batch there, and so does every error: what a
message means, and what is said of a wrong one, is never decided here. Written are all values; those whose text is not
plain in Arrow (DECIMAL as 1E+2, DOUBLE below a thousandth) are written one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from hintplan.plans.connectors.messages.formats import Part
from hintplan.plans.declarations.types import DataType, parse_type
from hintplan.runtime.connectors.messages.json_objects import style_of
from hintplan.runtime.connectors.messages.texts_out import JsonStyle, json_encoder, json_text
from hintplan.runtime.types import to_arrow

ReadColumns = Callable[[pa.Array], list[pa.Array] | None]
"""The columns of a part in messages of which none is without a value; None if these are not plain."""

_WHOLE = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_FLOATING = ("FLOAT", "DOUBLE")
_TIMES = ("TIMESTAMP", "TIMESTAMP_LTZ")
_DAY = "[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}"
_CLOCK = r"[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?"
# Two objects in a message would be two rows; and numbers that Arrow reads otherwise, or are none in JSON.
_NOT_PLAIN = r"\}\s*\{|[:\[,]\s*-?(NaN|Inf(inity)?)\s*[,\]}]|:\s*-0\s*[,}]"
_NOT_PLAIN_DECIMALS = "[0-9]{20}|[0-9][eE][-+]?[0-9]"
"""With no more digits than that, and a scale of at most 18, no DECIMAL is beyond what Arrow counts with."""
_MOST_SCALE = 18
_MOST_BRACKETS = 500
"""More of them may be nested more deeply than Python reads."""


def columns_reader(part: Part, wanted: Collection[str]) -> ReadColumns | None:
    """What reads whole batches of messages; None if ``part`` has columns or options that only rows are read with."""
    if part.format != "json" or part.option("fail-on-missing-field") == "true":
        return None
    listed = zip(part.columns, part.fields, strict=True)
    types = {column.name: (field, parse_type(column.type)) for column, field in listed if column.name in wanted}
    if not types or not all(_is_plain(data_type) for _, data_type in types.values()):
        return None
    decimals = any(data_type.root == "DECIMAL" for _, data_type in types.values())
    pattern = f"{_NOT_PLAIN}|{_NOT_PLAIN_DECIMALS}" if decimals else _NOT_PLAIN
    iso = part.option("timestamp-format.standard") == "iso-8601"
    schema = pa.schema([(field, _read_as(data_type)) for field, data_type in types.values()])
    options = pa.json.ParseOptions(explicit_schema=schema, newlines_in_values=True, unexpected_field_behavior="ignore")

    def read(messages: pa.Array) -> list[pa.Array] | None:
        joined = pa.py_buffer(b"\n".join(messages.to_pylist()))
        whole = pa.json.ReadOptions(use_threads=False, block_size=joined.size + 1)
        try:
            if not _are_plain(messages, pattern):
                return None
            table = pa.json.read_json(pa.BufferReader(joined), read_options=whole, parse_options=options)
            if table.num_rows != len(messages):
                return None
            found = {}
            for name, (field, data_type) in types.items():
                column = _as_declared(table.column(field).combine_chunks(), data_type, iso)
                if column is None:
                    return None
                column.validate(full=True)
                found[name] = column
        except pa.ArrowInvalid:
            return None
        return [
            found[column.name] if column.name in found else pa.nulls(len(messages), to_arrow(column.type))
            for column in part.columns
        ]

    return read


def _is_plain(data_type: DataType) -> bool:
    if data_type.root == "DECIMAL":
        return (data_type.scale or 0) <= _MOST_SCALE
    return data_type.is_text or data_type.root in (*_WHOLE, *_FLOATING, *_TIMES, "BOOLEAN", "DATE")


def _read_as(data_type: DataType) -> pa.DataType:
    if data_type.root == "FLOAT":
        return pa.float64()  # and rounded from that, as row by row
    return pa.string() if data_type.root in ("DATE", *_TIMES) else to_arrow(str(data_type))


def _are_plain(messages: pa.Array, not_plain: str) -> bool:
    """Whether each message is one object or an error, so that as many rows as messages are one of each."""
    texts = messages.cast(pa.string())  # ArrowInvalid for what is not in UTF-8
    if not pc.all(pc.starts_with(texts, "{")).as_py():
        return False
    if pc.any(pc.match_substring_regex(texts, not_plain)).as_py():
        return False
    # Counting takes as long as all the rest of this, and shorter ones need none.
    long = texts.filter(pc.greater_equal(pc.binary_length(texts), _MOST_BRACKETS))
    return all((pc.max(pc.count_substring(long, bracket)).as_py() or 0) < _MOST_BRACKETS for bracket in "[{")


def _as_declared(column: pa.Array, data_type: DataType, iso: bool) -> pa.Array | None:
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
    """What writes whole batches as objects of JSON; None if ``part`` has options that only rows are written with."""
    if part.format != "json" or (style := style_of(part)).without_nulls:
        return None
    writers = [(column.name, _writer(column.type, style)) for column in part.columns]
    before = [f"{'{' if not number else ','}{json_text(field)}:" for number, field in enumerate(part.fields)]

    def write(batch: pa.RecordBatch) -> pa.Array:
        if not writers:
            return pa.array([b"{}"] * batch.num_rows, pa.binary())
        texts: list[Any] = []
        for start, (name, text_of) in zip(before, writers, strict=True):
            texts += (start, text_of(batch.column(name)).fill_null("null"))
        return pc.binary_join_element_wise(*texts, "}", "").cast(pa.binary())

    return write


def _writer(type_text: str, style: JsonStyle) -> Callable[[pa.Array], pa.Array]:
    """What writes a column as JSON; NULL stays NULL."""
    data_type, one = parse_type(type_text), json_encoder(type_text, style)
    root = data_type.root
    if root in (*_WHOLE, "BOOLEAN"):
        return lambda column: column.cast(pa.string())
    if data_type.is_text:
        return _written_texts
    if root == "DATE":
        return lambda column: _quoted(column.cast(pa.string()))
    if root == "DOUBLE":
        return lambda column: _written_doubles(column, one)
    if root == "DECIMAL":
        return lambda column: _written_decimals(column, one)
    return lambda column: pa.array(list(map(one, column.to_pylist())), pa.string())


def _quoted(column: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise('"', column, '"', "")


def _written_texts(column: pa.Array) -> pa.Array:
    if pc.any(pc.match_substring_regex(column, r'["\\\x00-\x1f]')).as_py():
        return pa.array([None if text is None else json_text(text) for text in column.to_pylist()], pa.string())
    return _quoted(column)


def _written_doubles(column: pa.Array, one: Callable[[Any], str]) -> pa.Array:
    """As Java writes them: with a point, from a thousandth to ten million without an exponent."""
    size = pc.abs(column)
    plain = pc.or_(pc.and_(pc.greater_equal(size, 1e-3), pc.less(size, 1e7)), pc.equal(column, 0.0))
    texts = column.cast(pa.string())
    texts = pc.if_else(pc.match_substring(texts, "."), texts, pc.binary_join_element_wise(texts, ".0", ""))
    return _with_others(texts, column, plain, one)


def _written_decimals(column: pa.Array, one: Callable[[Any], str]) -> pa.Array:
    """Without zeros at the end, which need an exponent where they stand before the point."""
    texts = column.cast(pa.string())
    short = pc.replace_substring_regex(texts, r"(\.[0-9]*?)0+$", r"\1")
    short = pc.replace_substring_regex(short, r"\.$", "")
    plain = pc.match_substring_regex(short, r"^-?([0-9]*[1-9]|[0-9]+\.0{0,5}[1-9][0-9]*|0)$")
    return _with_others(short, column, plain, one)


def _with_others(texts: pa.Array, column: pa.Array, plain: pa.Array, one: Callable[[Any], str]) -> pa.Array:
    """``texts`` where they are ``plain``, and what ``one`` writes of the others; NULL stays NULL."""
    others = pc.and_(pc.invert(plain), column.is_valid()).fill_null(False)
    if not pc.any(others).as_py():
        return pc.if_else(column.is_valid(), texts, None)
    written = pa.array(list(map(one, column.filter(others).to_pylist())), pa.string())
    return pc.replace_with_mask(pc.if_else(column.is_valid(), texts, None), others, written)
