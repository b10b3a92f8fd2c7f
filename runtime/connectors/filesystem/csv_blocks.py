r"""Reads a block of CSV records with Arrow, if Spark's reader reads the same values from it.

Both readers agree on fields without quotes, and on fields in quotes of RFC 4180. If a quote, an escape character or a
line end is elsewhere, if a record has too few or too many fields, or if a value is in another form than Arrow's and
Spark's common one, the answer for the block is None.

Spark reads an empty field as NULL, and the null literal, even in quotes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from hintplan.plans.declarations.types import DataType
from hintplan.runtime.connectors.csv_quotes import are_within_lines, regular_quotes
from hintplan.runtime.connectors.text_values import column_of, plain_form
from hintplan.runtime.types import to_arrow

LARGEST_BLOCK = 1 << 30
"""Arrow's texts have offsets of 32 bits."""

_BOM = b"\xef\xbb\xbf"
_UNASSIGNED = "\uffff".encode()
"""A character of the text that stands for NULL if the table declares none."""
_BLANK_LINE = re.compile(rb"^[\x00-\x09\x0b-\x20]+$", re.MULTILINE)
_COMMENT_LINE = re.compile(rb"^#[^\n]*\n?", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvForm:
    """The fields of each record, and the characters between and around them.

    ``types`` are the types of ``fields``. ``read`` are the fields with values that are converted, and ``wanted`` the
    fields to return. ``quote`` is empty if no field is in quotes, and ``escape`` is the quote itself by default.
    ``breaks_lines`` is true if a field in quotes may contain line breaks.
    """

    fields: tuple[str, ...]
    types: tuple[DataType, ...]
    read: tuple[str, ...]
    wanted: tuple[str, ...]
    delimiter: str
    quote: str
    escape: str
    comments: bool
    null_literal: str | None
    breaks_lines: bool


def is_readable(form: CsvForm) -> bool:
    """Return true if blocks of this form can be read at all.

    With line breaks in fields, the ends of records are sure only if quotes are doubled and the delimiter is no blank.
    """
    if form.breaks_lines and (form.delimiter <= " " or form.escape != form.quote):
        return False
    marks = form.delimiter + form.quote + form.escape
    return (
        marks.isascii()
        and len(form.delimiter) == 1
        and form.delimiter not in ("\r", "\n", "\0", "#", form.quote, form.escape)
        and (not form.quote or form.quote > " ")
        and form.quote != "#"
        and len(form.escape) <= 1
    )


def read_csv_block(data: bytes | memoryview, form: CsvForm) -> pa.Table | None:
    """Return the records of ``data``, or None if Spark might read one of them differently."""
    data = bytes(data)
    plain = _plain(data, form)
    if plain is None:
        return None
    data, quotes = plain
    types = dict(zip(form.fields, form.types, strict=True))
    columns: dict[str, pa.Array] = {}
    if data:
        texts = _texts(data, form)
        if texts is None:
            return None
        for field in form.read:
            text = _whole(texts.column(field))
            if quotes and form.null_literal is not None:
                text = pc.if_else(pc.equal(text, form.null_literal), None, text)
            column = column_of(text, types[field])
            if column is None:
                return None
            columns[field] = column
    schema = pa.schema([(field, to_arrow(str(types[field]))) for field in form.read])
    table = pa.table(columns, schema=schema) if data else schema.empty_table()
    return table.select(list(form.wanted))


def plain_record(form: CsvForm) -> str:
    """Return a regular expression for records that :func:`read_csv_block` reads, but not for all of them."""
    delimiter, quote = re.escape(form.delimiter), re.escape(form.quote)
    odd = rf"\x00\r{quote}{re.escape(form.escape)}"
    first = "" if form.null_literal is None else f"{re.escape(form.null_literal)}|"
    inner = odd if form.breaks_lines else rf"{odd}\n"
    doubled = f"|{quote}{quote}" if form.escape == form.quote else ""
    fields = []
    for name, data_type in zip(form.fields, form.types, strict=True):
        value = plain_form(data_type) if name in form.read else None
        plain = rf"[^{odd}\n{delimiter}]*" if value is None else f"{first}{value}|"
        in_quotes = f"(?:[^{inner}]{doubled})*" if value is None else value
        fields.append(f"(?:{plain}|{quote}{in_quotes}{quote})" if quote else f"(?:{plain})")
    return delimiter.join(fields) + r"\r?\n?"


def quotes_of(
    data: bytes, marks: np.ndarray[Any, Any], form: CsvForm, *, cut: bool = False
) -> np.ndarray[Any, Any] | None:
    """Return the positions of the quotes in ``marks``, the bytes of ``data``; None if one of them is in an odd place.

    ``cut`` allows that the data end in a field.
    """
    is_doubled = form.escape == form.quote
    quotes = regular_quotes(marks, form.delimiter, form.quote, doubled=is_doubled, cut=cut)
    if quotes is not None and quotes.size and not is_doubled and form.escape and form.escape.encode() in data:
        return None
    return quotes


def _plain(data: bytes, form: CsvForm) -> tuple[bytes, bool] | None:
    r"""Return ``data`` without comments and with ``\n`` as the line end, and whether it has quotes; None if odd."""
    if len(data) > LARGEST_BLOCK or b"\0" in data or data.startswith(_BOM) or _UNASSIGNED in data:
        return None
    marks = np.frombuffer(data, np.uint8)
    quotes = form.quote != "" and form.quote.encode() in data
    if b"\r" in data:
        if quotes or b"\n\r" in data or data.startswith(b"\r"):
            return None
        data = data.replace(b"\r\n", b"\n")
        if b"\r" in data:
            return None
    if form.comments and (data.startswith(b"#") or b"\n#" in data):
        if quotes:
            return None
        data = _COMMENT_LINE.sub(b"", data)
    if quotes:
        positions = quotes_of(data, marks, form)
        if positions is None or not (form.breaks_lines or are_within_lines(positions, marks)):
            return None
    if (len(form.fields) == 1 or form.delimiter <= " ") and _BLANK_LINE.search(data):
        return None
    return (data if data.count(b"\n") < len(data) else b""), quotes


def _texts(data: bytes, form: CsvForm) -> pa.Table | None:
    """Return the fields to read, as texts; an empty field without quotes is NULL."""
    nulls = [""] if form.null_literal is None else ["", form.null_literal]
    try:
        return pa.csv.read_csv(
            pa.BufferReader(data),
            read_options=pa.csv.ReadOptions(
                use_threads=False, block_size=len(data) + 1, column_names=list(form.fields)
            ),
            parse_options=pa.csv.ParseOptions(
                delimiter=form.delimiter,
                quote_char=form.quote or False,
                double_quote=form.escape == form.quote != "",
                newlines_in_values=form.breaks_lines,
            ),
            convert_options=pa.csv.ConvertOptions(
                column_types=dict.fromkeys(form.read, pa.string()),
                null_values=nulls,
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                include_columns=list(form.read),
            ),
        )
    except pa.ArrowInvalid:
        return None


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
