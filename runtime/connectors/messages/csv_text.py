"""CSV messages of one line each: an empty field is NULL, and an empty quoted field is the empty text.

>>> split('1,"a ""b"", c",,""', CsvStyle())
['1', 'a "b", c', None, '']
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from hintplan.plans.connectors.messages.formats import Part
from hintplan.plans.declarations.types import parse_type
from hintplan.runtime.connectors.messages.json_in import text_decoder
from hintplan.runtime.connectors.messages.texts_out import plain_text

_UNQUOTED = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL", "BOOLEAN")


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvStyle:
    """The delimiter, quote and escape characters of CSV, and the text for NULL."""

    delimiter: str = ","
    quote: str = '"'
    escape: str = ""
    null: str | None = None


def csv_style_of(part: Part) -> CsvStyle:
    """Return the style in the options of ``part``."""
    return CsvStyle(
        delimiter=(part.option("field-delimiter") or ",").replace("\\t", "\t"),
        quote="" if part.option("disable-quote-character") == "true" else part.option("quote-character") or "",
        escape=part.option("escape-character") or "",
        null=part.option("null-literal"),
    )


def csv_decoder(part: Part, wanted: Collection[str]) -> Callable[[bytes], Sequence[Any] | None]:
    """Return a function that decodes a message to the columns of ``part``; only columns in ``wanted`` get values."""
    style, lenient = csv_style_of(part), part.option("ignore-parse-errors") == "true"
    decoders = [
        (field, text_decoder(column.type) if column.name in wanted else None)
        for field, column in zip(part.fields, part.columns, strict=True)
    ]

    def decode(message: bytes) -> Sequence[Any] | None:
        try:
            texts = split(message.decode().rstrip("\r\n"), style)
            if len(texts) != len(decoders):
                raise ValueError(f"it has {len(texts)} fields, expected {len(decoders)}")
        except ValueError:
            if lenient:
                return None
            raise
        values = []
        for (field, convert), text in zip(decoders, texts, strict=True):
            try:
                values.append(None if text is None or convert is None else convert(text))
            except ValueError as error:
                if not lenient:
                    raise ValueError(f"field {field!r}: {error}") from None
                values.append(None)
        return values

    return decode


def csv_encoder(part: Part) -> Callable[[Sequence[Any]], bytes]:
    """Return a function that encodes values, in the order of the fields of ``part``, as a message."""
    style = csv_style_of(part)
    safe = end_of_special(style)
    writers = [(plain_text(column.type), is_bare(column.type)) for column in part.columns]

    def encode(values: Sequence[Any]) -> bytes:
        texts = []
        for (write, bare), value in zip(writers, values, strict=True):
            if value is None:
                texts.append(style.null or "")
                continue
            text = write(value)
            texts.append(text if bare or (text and text != style.null and min(text) >= safe) else quoted(text, style))
        return style.delimiter.join(texts).encode()

    return encode


def is_bare(type_text: str) -> bool:
    """Return true for a type whose values need no quotes."""
    return parse_type(type_text).root in _UNQUOTED


def end_of_special(style: CsvStyle) -> str:
    """Return the character after the highest special one. Like in Flink, a text with a lower character is quoted."""
    return chr(max(map(ord, (style.delimiter, style.quote or "\0", style.escape or "\0", "\r"))) + 1)


def split(line: str, style: CsvStyle) -> list[str | None]:
    """Return the fields of a line; raise ValueError if a quote is not closed."""
    fields: list[str | None] = []
    text: list[str] = []
    quoted = inside = False
    position = 0
    while position <= len(line):
        char = line[position : position + 1]
        if style.escape and char == style.escape and position + 1 < len(line):
            text.append(line[position + 1])
            position += 1
        elif inside:
            if not char:
                raise ValueError("a quote has no end")
            if char != style.quote:
                text.append(char)
            elif line[position + 1 : position + 2] == style.quote:
                text.append(char)
                position += 1
            else:
                inside = False
        elif char == style.quote and style.quote and not text and not quoted:
            quoted = inside = True
        elif not char or char == style.delimiter:
            field = "".join(text)
            fields.append(None if not quoted and field in ("", style.null) else field)
            text, quoted = [], False
        else:
            text.append(char)
        position += 1
    return fields


def quoted(text: str, style: CsvStyle) -> str:
    """Return a text as a field in quotes; raise ValueError if there are no quotes and it has the delimiter."""
    if style.escape:
        text = text.replace(style.escape, style.escape * 2)
    if not style.quote:
        if style.delimiter in text:
            raise ValueError(f"{text[:40]!r} has a {style.delimiter!r} in it, and there is no quoting")
        return text
    return style.quote + text.replace(style.quote, (style.escape or style.quote) + style.quote) + style.quote
