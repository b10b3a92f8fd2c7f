"""Reads and writes CSV messages in batches with Arrow, if the result is the same as row by row.

A batch is read if quotes are only around fields, or doubled in them, and if Arrow converts each value that is read as
Python does. All other batches, and all errors, go to :mod:`hintplan.runtime.connectors.messages.csv_text`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from hintplan.plans.connectors.messages.formats import Part
from hintplan.plans.declarations.types import parse_type
from hintplan.runtime.connectors.csv_quotes import are_within_lines, regular_quotes
from hintplan.runtime.connectors.messages.csv_text import (
    CsvStyle,
    csv_style_of,
    end_of_special,
    is_bare,
    quoted,
)
from hintplan.runtime.connectors.messages.json_columns import ReadColumns
from hintplan.runtime.connectors.messages.text_columns_in import as_declared, is_in_bulk, is_utf8, layout_of
from hintplan.runtime.connectors.messages.text_columns_out import WriteTexts, texts_writer, with_others
from hintplan.runtime.connectors.messages.texts_out import plain_text
from hintplan.runtime.types import to_arrow

_BOM = b"\xef\xbb\xbf"
_LINE_ENDS = "\r\n"
_LARGEST = 1 << 30
"""Arrow's texts have offsets of 32 bits."""


def csv_columns_reader(part: Part, wanted: Collection[str]) -> ReadColumns | None:
    """Return a function that decodes batches of messages; None if ``part`` must be read row by row."""
    if part.format != "csv" or not part.columns or not _are_readable(style := csv_style_of(part)):
        return None
    types = {place: parse_type(column.type) for place, column in enumerate(part.columns) if column.name in wanted}
    if not all(map(is_in_bulk, types.values())):
        return None

    def read(messages: pa.Array) -> list[pa.Array] | None:
        try:
            texts = _fields(messages, style, len(part.columns), [*types]) if len(messages) else None
            columns = {} if texts is None else {place: as_declared(texts[place], types[place]) for place in types}
        except pa.ArrowInvalid:
            return None
        if len(messages) and (texts is None or None in columns.values()):
            return None
        return [
            columns[place] if place in columns else pa.nulls(len(messages), to_arrow(column.type))
            for place, column in enumerate(part.columns)
        ]

    return read


def csv_columns_writer(part: Part) -> Callable[[pa.RecordBatch], pa.Array] | None:
    """Return a function that encodes batches as CSV; None if ``part`` must be written row by row."""
    if part.format != "csv" or not part.columns:
        return None
    style = csv_style_of(part)
    if not (style.quote and f"{style.delimiter}{style.quote}{style.escape}".isascii()):
        return None
    writers = [(column.name, _writer(column.type, style)) for column in part.columns]

    def write(batch: pa.RecordBatch) -> pa.Array:
        texts = [text_of(batch.column(name)).fill_null(style.null or "") for name, text_of in writers]
        return pc.binary_join_element_wise(*texts, style.delimiter).cast(pa.binary())

    return write


def _are_readable(style: CsvStyle) -> bool:
    """Return true if Arrow's parser has a form for the characters of ``style``."""
    marks = style.delimiter + style.quote + style.escape
    return marks.isascii() and len(set(marks)) == len(marks) and not set(marks) & set("\r\n\0")


def _fields(messages: pa.Array, style: CsvStyle, count: int, wanted: list[int]) -> dict[int, pa.Array] | None:
    """Return the ``wanted`` ones of ``count`` fields as texts, by their place; None if Arrow might read them otherwise.

    No message has a line end, so there are as many records as messages, unless a message is empty.
    """
    data = _lines(messages)
    if data is None or len(data) > _LARGEST or b"\0" in data or data.startswith(_BOM) or not is_utf8(data):
        return None
    if style.escape and style.escape.encode() in data:
        return None
    if style.quote and style.quote.encode() in data:
        marks = np.frombuffer(data, np.uint8)
        quotes = regular_quotes(marks, style.delimiter, style.quote)
        if quotes is None or not are_within_lines(quotes, marks):
            return None
    names = [str(place) for place in range(count)]
    read = [str(place) for place in wanted] or names[:1]
    table = pa.csv.read_csv(
        pa.BufferReader(data),
        read_options=pa.csv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=names),
        parse_options=pa.csv.ParseOptions(
            delimiter=style.delimiter, quote_char=style.quote or False, double_quote=style.quote != ""
        ),
        convert_options=pa.csv.ConvertOptions(
            column_types=dict.fromkeys(read, pa.string()),
            null_values=["", *([style.null] if style.null else [])],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            include_columns=read,
        ),
    )
    if table.num_rows != len(messages):
        return None
    return {place: table.column(str(place)).combine_chunks() for place in wanted}


def _lines(messages: pa.Array) -> bytes | None:
    """Return the messages, each followed by a line end; None if a message has a line end in it."""
    for lines in (messages, pc.ascii_rtrim(messages.cast(pa.string()), _LINE_ENDS)):
        ended = pc.binary_join_element_wise(lines, *(pa.scalar(text, lines.type) for text in ("", "\n")))
        data = bytes(ended.buffers()[2].to_pybytes())
        if b"\r" not in data and data.count(b"\n") == len(messages):
            return data
    return None


def _writer(type_text: str, style: CsvStyle) -> WriteTexts:
    """Return a function that encodes a column as fields; NULL stays NULL."""
    data_type, one = parse_type(type_text), plain_text(type_text)
    texts = texts_writer(data_type, one) if not data_type.is_text else None
    if is_bare(type_text):
        assert texts is not None
        return texts
    special = f"[\\x00-\\x{ord(end_of_special(style)) - 1:02x}]"

    def write(column: pa.Array) -> pa.Array:
        return _quoted_where_needed(column if texts is None else texts(column), style, special)

    return write


def _quoted_where_needed(texts: pa.Array, style: CsvStyle, special: str) -> pa.Array:
    """Return ``texts`` in quotes if they are empty, look like NULL, or have a character of the pattern ``special``."""
    offsets, data = layout_of(texts)
    data = data[offsets[0] : offsets[-1]]
    plain = pc.greater(pc.binary_length(texts), 0)
    if (data < ord(end_of_special(style))).any():
        plain = pc.and_(plain, pc.invert(pc.match_substring_regex(texts, special)))
    if style.null:
        plain = pc.and_(plain, pc.not_equal(texts, style.null))
    if pc.all(plain).as_py() is not False:
        return texts
    if re.search(f"[{re.escape(style.quote + style.escape)}]".encode(), data.tobytes()):
        return with_others(texts, texts, plain, lambda text: quoted(text, style))
    return pc.if_else(plain, texts, pc.binary_join_element_wise(style.quote, texts, style.quote, ""))
