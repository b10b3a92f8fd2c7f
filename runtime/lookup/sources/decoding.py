"""Decoders of text and JSON into values of Flink's types, as pyarrow's ``to_pylist`` returns them; keys as text.

A value that does not fit its type raises a ValueError; it never becomes NULL or a rounded number. JSON is as lenient as
in Flink: numbers and booleans may be in quotes, and a STRING accepts any value. In JSON, BYTES are Base64.

>>> json_decoder("DECIMAL(10, 2)")("1.1"), json_decoder("ARRAY<INT>")([1, None])
(Decimal('1.10'), [1, None])
>>> key_text("TIMESTAMP_LTZ(3)", datetime(2020, 1, 1, 12, tzinfo=UTC))
'2020-01-01T12:00:00.000Z'
"""

from __future__ import annotations

import base64
import json
import re
import struct
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Context, Decimal, InvalidOperation
from typing import Any, TypeVar

from hintplan.plans.declarations.types import DataType, parse_type

Decoder = Callable[[Any], Any]
Kind = TypeVar("Kind")

_BITS = {"TINYINT": 7, "SMALLINT": 15, "INT": 31, "BIGINT": 63}
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|NaN|[+-]?Infinity", re.ASCII)
_BYTES = ("BYTES", "BINARY", "VARBINARY")
_WIDE = Context(prec=100)


def parse_json(text: str | bytes) -> Any:
    """Parse JSON and keep all digits of its numbers; ValueError if the text is not JSON."""
    try:
        return json.loads(text, parse_float=Decimal)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


def text_decoder(type_text: str) -> Decoder:
    """Return a decoder of texts into values of the type; arrays, maps and rows are JSON, bytes are Base64."""
    return _text_decoder(parse_type(type_text))


def json_decoder(type_text: str) -> Decoder:
    """Return a decoder of values of :func:`parse_json` into values of the type; null becomes None for every type."""
    return _json_decoder(parse_type(type_text))


def decimal_decoder(type_text: str) -> Callable[[Decimal], Decimal]:
    """Return a conversion of Decimals to exactly the type's scale; ValueError for more digits than the type has."""
    return _decimal(parse_type(type_text))


def integer_decoder(type_text: str) -> Callable[[int], int]:
    """Return a decoder of ints into values of the type; ValueError for a number outside its range."""
    return _range(parse_type(type_text))


def key_text(type_text: str, value: object) -> str:
    """Return a key value as text: numbers in digits, times in ISO 8601 with the type's digits, bytes in hexadecimal."""
    data_type = parse_type(type_text)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime):
        text = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
        digits = data_type.precision or 0
        fraction = f".{text.microsecond:06d}"[: 1 + digits] if digits else ""
        return f"{text:%Y-%m-%dT%H:%M:%S}".rjust(19, "0") + fraction + ("Z" if value.tzinfo else "")
    if isinstance(value, date):
        return value.isoformat()
    return str(value)


def _text_decoder(data_type: DataType) -> Decoder:
    root = data_type.root
    if data_type.is_text:
        return str
    if root in _BITS:
        return _checked(data_type, _integer_text, _range(data_type))
    if root in ("FLOAT", "DOUBLE"):
        return _checked(data_type, _number_text, _floating(data_type))
    if root == "DECIMAL":
        return _checked(data_type, _decimal_text, _decimal(data_type))
    if root == "BOOLEAN":
        return _boolean_text
    if root == "DATE":
        return _date_text
    if root in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        return _local_time if root == "TIMESTAMP" else _instant
    if root in _BYTES:
        return _base64
    nested = _json_decoder(data_type)
    return lambda text: nested(parse_json(text))


def _json_decoder(data_type: DataType) -> Decoder:
    convert = _plain_json_decoder(data_type)
    return lambda value: None if value is None else convert(value)


def _plain_json_decoder(data_type: DataType) -> Decoder:
    root = data_type.root
    if data_type.is_text:
        return lambda value: value if isinstance(value, str) else _json_text(value)
    if root == "ARRAY":
        element = _json_decoder(data_type.children[0])
        return lambda value: [element(item) for item in _as(list, value, data_type)]
    if data_type.has_entries:
        key, item = _text_decoder(data_type.parts[0]), _json_decoder(data_type.parts[1])
        return lambda value: [(key(k), item(v)) for k, v in _as(dict, value, data_type).items()]
    if root == "ROW":
        fields = [(n, _json_decoder(c)) for n, c in zip(data_type.names, data_type.children, strict=True)]
        return lambda value: {n: decode(_as(dict, value, data_type).get(n)) for n, decode in fields}
    from_text = _text_decoder(data_type)
    if root == "BOOLEAN":
        return lambda value: value if isinstance(value, bool) else from_text(_as(str, value, data_type))
    if not data_type.is_numeric:
        return lambda value: from_text(_as(str, value, data_type))
    fit = {"FLOAT": _floating, "DOUBLE": _floating, "DECIMAL": _decimal}.get(root, _range)(data_type)

    def number(value: object) -> object:
        if isinstance(value, str):
            return from_text(value)
        if isinstance(value, bool) or not isinstance(value, int | Decimal | float):
            raise ValueError(f"{_shown(value)} is not {data_type.as_nullable()}")
        if root in _BITS and not isinstance(value, int):
            raise ValueError(f"{value} is not {data_type.as_nullable()}")
        return fit(Decimal(str(value)) if root == "DECIMAL" else value)

    return number


def _as(kind: type[Kind], value: object, data_type: DataType) -> Kind:
    if not isinstance(value, kind):
        raise ValueError(f"{_shown(value)} is not {data_type.as_nullable()}")
    return value


def _checked(data_type: DataType, parse: Decoder, fit: Decoder) -> Decoder:
    def decode(text: str) -> object:
        try:
            return fit(parse(text))
        except _NotIt:
            raise ValueError(f"{_shown(text)} is not {data_type.as_nullable()}") from None

    return decode


class _NotIt(Exception):
    pass


def _integer_text(text: str) -> int:
    if not _INTEGER.fullmatch(text) or len(text) > 40:
        raise _NotIt
    return int(text)


def _number_text(text: str) -> float:
    if not _NUMBER.fullmatch(text):
        raise _NotIt
    return float(text)


def _decimal_text(text: str) -> Decimal:
    if not _NUMBER.fullmatch(text):
        raise _NotIt
    return Decimal(text)


def _boolean_text(text: str) -> bool:
    folded = text.lower()
    if folded not in ("true", "false", "1", "0"):
        raise ValueError(f"{_shown(text)} is not BOOLEAN; expected true or false")
    return folded in ("true", "1")


def _date_text(text: str) -> date:
    if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return date.fromisoformat(text)
    raise ValueError(f"{_shown(text)} is not DATE; expected 2020-01-31")


def _moment(text: str) -> datetime:
    if not re.match(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}", text):
        raise ValueError(f"{_shown(text)} is not a timestamp; expected 2020-01-31 12:00:00")
    return datetime.fromisoformat(text)


def _local_time(text: str) -> datetime:
    timestamp = _moment(text)
    if timestamp.tzinfo is not None:
        raise ValueError(f"{_shown(text)} is not TIMESTAMP, as it has a time zone; declare TIMESTAMP_LTZ")
    return timestamp


def _instant(text: str) -> datetime:
    timestamp = _moment(text)
    if timestamp.tzinfo is None:
        raise ValueError(f"{_shown(text)} is not TIMESTAMP_LTZ, as it has no time zone; expected a Z or an offset")
    return timestamp.astimezone(UTC)


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise ValueError(f"{_shown(text)} is not Base64, which BYTES are written in") from None


def _range(data_type: DataType) -> Decoder:
    limit = 1 << _BITS[data_type.root]

    def fit(value: int) -> int:
        if not -limit <= value < limit:
            raise ValueError(f"{_shown(value)} is out of the range of {data_type.root}")
        return value

    return fit


def _floating(data_type: DataType) -> Decoder:
    if data_type.root == "DOUBLE":
        return float
    single = struct.Struct("f")

    def fit(value: float | Decimal | str) -> float:
        try:
            rounded: float = single.unpack(single.pack(float(value)))[0]
        except OverflowError:
            raise ValueError(f"{_shown(value)} is out of the range of FLOAT") from None
        return rounded

    return fit


def _decimal(data_type: DataType) -> Callable[[Decimal], Decimal]:
    precision, scale = data_type.precision or 0, data_type.scale or 0
    unit, limit = Decimal(1).scaleb(-scale), Decimal(1).scaleb(precision - scale)

    def fit(value: Decimal) -> Decimal:
        try:
            exact = value.quantize(unit, context=_WIDE)
        except InvalidOperation:
            exact = None
        if exact is None or exact != value or exact.copy_abs() >= limit:  # abs() would round to 28 digits
            raise ValueError(f"{_shown(value)} does not fit into {data_type.as_nullable()}")
        return exact

    return fit


def _json_text(value: object) -> str:
    if isinstance(value, Decimal):
        return str(value)
    return json.dumps(value, ensure_ascii=False, default=float)


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else str(value)
    return repr(text if len(text) <= 40 else text[:40] + "...")
