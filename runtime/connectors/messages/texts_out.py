"""Converts values of Flink's types to text as its text formats do: numbers without trailing zeros, times as in SQL.

>>> write = json_encoder("ROW<a DECIMAL(10, 2), t TIMESTAMP(3)>", JsonStyle())
>>> write({"a": Decimal("12.50"), "t": datetime(2020, 1, 1)})
'{"a":12.5,"t":"2020-01-01 00:00:00"}'
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np

from hintplan.plans.declarations.types import DataType, parse_type
from hintplan.runtime.connectors.rowtext import floating

Encoder = Callable[[Any], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonStyle:
    """The style of JSON: the forms of times and DECIMAL, and whether NULL fields are omitted."""

    iso: bool = False
    plain_decimals: bool = False
    without_nulls: bool = False


def json_encoder(type_text: str, style: JsonStyle) -> Encoder:
    """Return a function that encodes a value of the type, in the form of ``to_pylist``, as JSON."""
    return _json(parse_type(type_text), style)


def plain_text(type_text: str) -> Encoder:
    """Return a function that converts a value of the type, neither NULL nor nested, to text without quotes."""
    return _plain(parse_type(type_text), JsonStyle())


def json_text(text: str) -> str:
    """Return a text as JSON."""
    return json.dumps(text, ensure_ascii=False)


def object_encoder(fields: list[tuple[str, Encoder]], style: JsonStyle) -> Callable[[Any], str]:
    """Return a function that encodes values, in the order of ``fields``, as a JSON object."""
    named = [(json_text(name) + ":", encode) for name, encode in fields]
    if style.without_nulls:
        return lambda values: (
            "{" + ",".join(n + e(v) for (n, e), v in zip(named, values, strict=True) if v is not None) + "}"
        )
    return lambda values: "{" + ",".join([n + e(v) for (n, e), v in zip(named, values, strict=True)]) + "}"


def _json(data_type: DataType, style: JsonStyle) -> Encoder:
    write = _json_value(data_type, style)
    return lambda value: "null" if value is None else write(value)


def _json_value(data_type: DataType, style: JsonStyle) -> Encoder:
    root = data_type.root
    if root == "ARRAY":
        element = _json(data_type.children[0], style)
        return lambda value: f"[{','.join(map(element, value))}]"
    if data_type.has_entries:
        item = _json(data_type.parts[1], style)
        return lambda value: "{" + ",".join(f"{json_text(k)}:{item(v)}" for k, v in value) + "}"
    if root == "ROW":
        write = object_encoder(
            [(n, _json(c, style)) for n, c in zip(data_type.names, data_type.children, strict=True)], style
        )
        field_names = data_type.names
        return lambda value: write([value[name] for name in field_names])
    plain = _plain(data_type, style)
    if root in ("FLOAT", "DOUBLE"):
        return lambda value: plain(value) if np.isfinite(value) else f'"{plain(value)}"'
    return plain if data_type.is_numeric or root == "BOOLEAN" else lambda value: json_text(plain(value))


def _plain(data_type: DataType, style: JsonStyle) -> Encoder:
    root = data_type.root
    if root == "BOOLEAN":
        return lambda value: "true" if value else "false"
    if root == "FLOAT":
        return lambda value: floating(np.float32(value))
    if root == "DOUBLE":
        return lambda value: floating(np.float64(value))
    if root == "DECIMAL":
        return _plain_decimal if style.plain_decimals else _decimal
    if root == "DATE":
        return date.isoformat
    if root in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        return lambda value: _moment(value, "T" if style.iso else " ")
    if root in ("BYTES", "BINARY", "VARBINARY"):
        return lambda value: base64.b64encode(value).decode()
    return str  # integers and text


def _decimal(value: Decimal) -> str:
    """Return Java's ``BigDecimal.toString`` without trailing zeros."""
    if not value:
        return "0"
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits)).lstrip("0")
    stripped = text.rstrip("0")
    exponent += len(text) - len(stripped)
    return ("-" if sign else "") + _java(stripped, exponent)


def _java(digits: str, exponent: int) -> str:
    adjusted = exponent + len(digits) - 1
    if exponent <= 0 and adjusted >= -6:
        if exponent == 0:
            return digits
        padded = digits.rjust(1 - exponent, "0")
        return f"{padded[:exponent]}.{padded[exponent:]}"
    mantissa = digits if len(digits) == 1 else f"{digits[0]}.{digits[1:]}"
    return f"{mantissa}E{adjusted:+d}"


def _plain_decimal(value: Decimal) -> str:
    text = format(value, "f")
    return (text.rstrip("0").rstrip(".") if "." in text else text) if value else "0"


def _moment(value: datetime, between: str) -> str:
    zone = ""
    if value.tzinfo is not None:
        value, zone = value.astimezone(UTC), "Z"
    fraction = f".{value.microsecond:06d}".rstrip("0") if value.microsecond else ""
    return f"{value.year:04d}-{value:%m-%d}{between}{value:%H:%M:%S}{fraction}{zone}"
