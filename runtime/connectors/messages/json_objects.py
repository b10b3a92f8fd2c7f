"""The format json: a message is an object whose fields are columns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from hintplan.plans.connectors.messages.formats import Part
from hintplan.runtime.connectors.messages.json_in import Decoder, json_decoder, parse
from hintplan.runtime.connectors.messages.texts_out import JsonStyle, json_encoder, object_encoder

Fields = Sequence[tuple[str, Decoder | None]]


def object_fields(part: Part, wanted: Collection[str]) -> Fields:
    """Return the decoder of each field of ``part``, or None for a column that is not ``wanted``."""
    iso, lenient = part.option("timestamp-format.standard") == "iso-8601", part.option("ignore-parse-errors") == "true"
    return [
        (field, json_decoder(column.type, iso=iso, lenient=lenient) if column.name in wanted else None)
        for field, column in zip(part.fields, part.columns, strict=True)
    ]


def values_of(found: Mapping[str, Any], fields: Fields) -> list[Any]:
    """Return the values of ``fields`` in an object; raise ValueError with the name of a field that does not fit."""
    values = []
    for name, decode in fields:
        try:
            values.append(None if decode is None else decode(found.get(name)))
        except ValueError as error:
            raise ValueError(f"field {name!r}: {error}") from None
    return values


def json_row_decoder(part: Part, wanted: Collection[str]) -> Callable[[bytes], Sequence[Any] | None]:
    """Return a function that decodes a message to the columns of ``part``; only columns in ``wanted`` get values."""
    fields, lenient = object_fields(part, wanted), part.option("ignore-parse-errors") == "true"
    complete = part.option("fail-on-missing-field") == "true"

    def decode(message: bytes) -> Sequence[Any] | None:
        try:
            document = parse(message)
            if document is None:
                return None
            if not isinstance(document, dict):
                raise ValueError("it is no object of JSON")
        except ValueError:
            if lenient:
                return None
            raise
        if complete and (missing := [name for name, _ in fields if name not in document]):
            raise ValueError(f"field {missing[0]!r} is missing")
        return values_of(document, fields)

    return decode


def json_style_of(part: Part) -> JsonStyle:
    """Return the style in which objects of ``part`` are written."""
    changes = part.format != "json"
    return JsonStyle(
        iso=part.option("timestamp-format.standard") == "iso-8601",
        plain_decimals=not changes and part.option("encode.decimal-as-plain-number") == "true",
        without_nulls=not changes and part.option("encode.ignore-null-fields") == "true",
    )


def json_row_encoder(part: Part) -> Callable[[Sequence[Any]], str]:
    """Return a function that encodes values, in the order of the fields of ``part``, as an object."""
    style = json_style_of(part)
    columns = zip(part.fields, part.columns, strict=True)
    return object_encoder([(field, json_encoder(column.type, style)) for field, column in columns], style)
