"""Converts JSON to values of Flink's types by the lenient rules of Flink's JSON format.

- A number may be in quotes, with blanks around it.
- For an integer, a number with a fraction is truncated.
- A DECIMAL is rounded; it is NULL if it does not fit.
- For BOOLEAN, any text except ``true`` is FALSE.
- Any value can be a STRING, in its original spelling.
- Everything else raises ValueError.

>>> decode = json_decoder("DECIMAL(10, 2)", iso=False, lenient=False)
>>> decode(parse(b'1.239')), decode("7"), decode(parse(b'123456789012.1'))
(Decimal('1.24'), Decimal('7.00'), None)
"""

from __future__ import annotations

import base64
import json
import re
import struct
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any, TypeVar

from hintplan.plans.declarations.types import DataType, parse_type

Decoder = Callable[[Any], Any]
Kind = TypeVar("Kind")

_BITS = {"TINYINT": 7, "SMALLINT": 15, "INT": 31, "BIGINT": 63}
_INTEGER = re.compile(r"[+-]?[0-9]{1,40}", re.ASCII)
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(NaN|Infinity)", re.ASCII)
_BYTES = ("BYTES", "BINARY", "VARBINARY")
_WIDE = Context(prec=100, rounding=ROUND_HALF_UP)
_MOST_DIGITS = 400
_CLOCK = r"([0-9]{4}-[0-9]{2}-[0-9]{2}){between}([0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,9}))?"
_SQL, _ISO = re.compile(_CLOCK.replace("{between}", " ")), re.compile(_CLOCK.replace("{between}", "T"))


class Digits(str):
    """A number with a point or an exponent, in its original spelling."""

    __slots__ = ()


def parse(document: str | bytes) -> Any:
    """Return the content of a JSON document, with non-integers as :class:`Digits`; raise ValueError if invalid."""
    try:
        return json.loads(document, parse_float=Digits, parse_constant=Digits)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeDecodeError:
        raise ValueError("it is not in UTF-8") from None
    except ValueError as error:
        raise ValueError(f"it is not JSON: {error}") from None


def json_decoder(type_text: str, *, iso: bool, lenient: bool) -> Decoder:
    """Return a function that converts a value of :func:`parse` to the type.

    Times are in ISO 8601 with ``iso``, otherwise in SQL's form. With ``lenient``, an invalid value becomes None.
    """
    return _nullable(parse_type(type_text), iso, lenient)


def text_decoder(type_text: str) -> Decoder:
    """Return a function that converts a text to a type that is not nested, with times in SQL's form."""
    return _of_text(parse_type(type_text), iso=False)


def _nullable(data_type: DataType, iso: bool, lenient: bool) -> Decoder:
    convert = _converter(data_type, iso, lenient)

    def decode(value: object) -> Any:
        return None if value is None else convert(value)

    def decode_if_possible(value: object) -> Any:
        try:
            return None if value is None else convert(value)
        except ValueError:
            return None

    return decode_if_possible if lenient else decode


def _converter(data_type: DataType, iso: bool, lenient: bool) -> Decoder:
    root = data_type.root
    if root == "ARRAY":
        element = _nullable(data_type.children[0], iso, lenient)
        return lambda value: [element(item) for item in _as(list, value, data_type)]
    if data_type.has_entries:
        item_decoder = _nullable(data_type.parts[1], iso, lenient)
        return lambda value: [(key, item_decoder(item)) for key, item in _as(dict, value, data_type).items()]
    if root == "ROW":
        fields = [(n, _nullable(c, iso, lenient)) for n, c in zip(data_type.names, data_type.children, strict=True)]
        return lambda value: {n: decode(_as(dict, value, data_type).get(n)) for n, decode in fields}
    from_text = _of_text(data_type, iso)
    if root in _BITS:
        return lambda value: _whole(value, data_type, from_text)
    if data_type.is_text:
        return _text
    if root == "BOOLEAN":
        return lambda value: value if isinstance(value, bool) else from_text(_text(value))
    if data_type.is_numeric:
        return lambda value: from_text(_text(value))
    return lambda value: from_text(_as(str, value, data_type))


def _of_text(data_type: DataType, iso: bool) -> Decoder:
    root = data_type.root
    if data_type.is_text:
        return str
    if root in _BITS:
        return lambda text: _in_range(_matched(_INTEGER, text.strip(), data_type, int), data_type)
    if root in ("FLOAT", "DOUBLE"):
        number = _single if root == "FLOAT" else float
        return lambda text: _matched(_NUMBER, text.strip(), data_type, number)
    if root == "DECIMAL":
        fit = fitting(data_type)
        return lambda text: fit(_matched(_NUMBER, text.strip(), data_type, Decimal))
    if root == "BOOLEAN":
        return lambda text: text.strip().lower() == "true"
    if root == "DATE":
        return lambda text: _matched(_DATE, text, data_type, date.fromisoformat)
    if root in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        return lambda text: _moment(text, data_type, _ISO if iso else _SQL)
    assert root in _BYTES, root
    return _base64


_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)


def _whole(value: object, data_type: DataType, from_text: Decoder) -> Any:
    if isinstance(value, bool):
        raise _misfit(value, data_type)
    if isinstance(value, int):
        return _in_range(value, data_type)
    if isinstance(value, Digits):
        number = _matched(_NUMBER, value, data_type, Decimal)
        if not number.is_finite() or number.adjusted() > 20:
            raise _misfit(value, data_type)
        return _in_range(int(number), data_type)
    return from_text(_as(str, value, data_type))


def _matched(pattern: re.Pattern[str], text: str, data_type: DataType, made: Callable[[str], Any]) -> Any:
    if pattern.fullmatch(text) is None or len(text) > _MOST_DIGITS:
        raise _misfit(text, data_type)
    return made(text)


def _in_range(value: int, data_type: DataType) -> int:
    limit = 1 << _BITS[data_type.root]
    if not -limit <= value < limit:
        raise ValueError(f"{_shown(value)} is out of the range of {data_type.root}")
    return value


def _single(text: str) -> float:
    number = float(text)
    try:
        rounded: float = struct.unpack("f", struct.pack("f", number))[0]
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")
    return rounded


def fitting(data_type: DataType) -> Callable[[Decimal], Decimal | None]:
    """Return a function that rounds a Decimal to a DECIMAL type.

    It returns None if the value does not fit, and raises ValueError for NaN or infinity.
    """
    precision, scale = data_type.precision or 0, data_type.scale or 0
    unit, limit = Decimal(1).scaleb(-scale), Decimal(1).scaleb(precision - scale)

    def fit(value: Decimal) -> Decimal | None:
        if not value.is_finite():
            raise _misfit(value, data_type)
        try:
            rounded = value.quantize(unit, context=_WIDE)
        except InvalidOperation:
            return None
        return rounded if rounded.copy_abs() < limit else None  # abs() would round to 28 digits

    return fit


def _moment(text: str, data_type: DataType, pattern: re.Pattern[str]) -> datetime:
    zoned = data_type.root == "TIMESTAMP_LTZ"
    match = pattern.fullmatch(text.removesuffix("Z") if zoned else text)
    if match is None or zoned != text.endswith("Z"):
        example = f"2020-01-31{'T' if pattern is _ISO else ' '}12:00:00{'Z' if zoned else ''}"
        raise ValueError(f"{_shown(text)} is not {data_type.as_nullable()}; expected {example}")
    fraction = (match[3] or "").ljust(6, "0")[:6]
    return datetime.fromisoformat(f"{match[1]}T{match[2]}.{fraction}").replace(tzinfo=UTC if zoned else None)


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise ValueError(f"{_shown(text)} is not Base64, which BYTES are written in") from None


def _as(kind: type[Kind], value: object, data_type: DataType) -> Kind:
    if not isinstance(value, kind) or isinstance(value, Digits):
        raise _misfit(value, data_type)
    return value


def _misfit(value: object, data_type: DataType) -> ValueError:
    return ValueError(f"{_shown(value)} is not {data_type.as_nullable()}")


def _text(value: object) -> str:
    return str(value) if isinstance(value, str) else _written(value)


def _written(value: object) -> str:
    """Return ``value`` as JSON, without blanks and with its numbers in their original spelling."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(k, ensure_ascii=False)}:{_written(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return f"[{','.join(map(_written, value))}]"
    return str(value) if isinstance(value, Digits) else json.dumps(value, ensure_ascii=False)


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else str(value)
    return repr(str(text) if len(text) <= 40 else f"{text[:40]}...")
