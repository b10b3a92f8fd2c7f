"""The format json: a message is an object, whose fields are columns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from hintplan.plans.connectors.messages.formats import Part
from hintplan.runtime.connectors.messages.json_in import Decoder, json_decoder, parse
from hintplan.runtime.connectors.messages.texts_out import JsonStyle, json_encoder, object_encoder

Fields = Sequence[tuple[str, Decoder | None]]


def fields_of(part: Part, wanted: Collection[str]) -> Fields:
    """How each field of ``part`` is read; None for the columns that are not ``wanted``."""
    iso, lenient = part.option("timestamp-format.standard") == "iso-8601", part.option("ignore-parse-errors") == "true"
    return [
        (field, json_decoder(column.type, iso=iso, lenient=lenient) if column.name in wanted else None)
        for field, column in zip(part.fields, part.columns, strict=True)
    ]


def values_of(found: Mapping[str, Any], fields: Fields) -> list[Any]:
    """The values of ``fields`` in an object; ValueError naming the field that does not fit."""
    values = []
    for name, decode in fields:
        try:
            values.append(None if decode is None else decode(found.get(name)))
        except ValueError as error:
            raise ValueError(f"field {name!r}: {error}") from None
    return values


def json_row_decoder(part: Part, wanted: Collection[str]) -> Callable[[bytes], Sequence[Any] | None]:
    """What reads a message as the columns of ``part``, of which only those ``wanted`` count."""
    fields, lenient = fields_of(part, wanted), part.option("ignore-parse-errors") == "true"
    complete = part.option("fail-on-missing-field") == "true"

    def decode(message: bytes) -> Sequence[Any] | None:
        try:
            found = parse(message)
            if found is None:
                return None
            if not isinstance(found, dict):
                raise ValueError("it is no object of JSON")
        except ValueError:
            if lenient:
                return None
            raise
        if complete and (missing := [name for name, _ in fields if name not in found]):
            raise ValueError(f"field {missing[0]!r} is not there")
        return values_of(found, fields)

    return decode


def style_of(part: Part) -> JsonStyle:
    """How objects of ``part`` are written."""
    changes = part.format != "json"
    return JsonStyle(
        iso=part.option("timestamp-format.standard") == "iso-8601",
        plain_decimals=not changes and part.option("encode.decimal-as-plain-number") == "true",
        without_nulls=not changes and part.option("encode.ignore-null-fields") == "true",
    )


def json_row_encoder(part: Part) -> Callable[[Sequence[Any]], str]:
    """What writes values in the order of the fields of ``part`` as an object."""
    style = style_of(part)
    columns = zip(part.fields, part.columns, strict=True)
    return object_encoder([(field, json_encoder(column.type, style)) for field, column in columns], style)
