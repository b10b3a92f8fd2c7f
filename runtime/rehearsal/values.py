"""Values of a test, as files and programs give them, converted to the values of their columns.

>>> from hintplan.plans.declarations.types import parse_type
>>> value_of("12:59", parse_type("TIME"), "UTC"), value_of("NO", parse_type("STRING"), "UTC")
('12:59:00', 'NO')
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time
from decimal import Context, Decimal, InvalidOperation
from typing import Any
from zoneinfo import ZoneInfo

from hintplan.plans.declarations.types import DataType

_EXACT = Context(prec=40)
_BITS = {"TINYINT": 7, "SMALLINT": 15, "INT": 31, "BIGINT": 63}
_DATE, _TIME = r"\d{4}-\d\d?-\d\d?", r"(\d\d?):(\d\d)(?::(\d\d)(\.\d{1,9})?)?"
_TIMESTAMP = re.compile(rf"({_DATE})(?:[ T]+{_TIME})?\s*(Z|UTC|[+-]\d\d:?\d\d)?")
_TIME_OF_DAY = re.compile(_TIME)


def value_of(value: Any, kind: DataType, zone: str) -> Any:
    """Return ``value`` as Arrow takes it for a column of type ``kind``; ValueError if it does not fit.

    A TIMESTAMP_LTZ without an offset is in ``zone``. NULL is accepted here, also for NOT NULL.
    """
    if value is None:
        return None
    if kind.is_nested:
        return _nested(value, kind, zone)
    if isinstance(value, (list, tuple, Mapping)):
        raise ValueError(f"expected {_A[kind.root]}, found {'a mapping' if isinstance(value, Mapping) else 'a list'}")
    match kind.root:
        case "BOOLEAN":
            return _boolean(value)
        case "TINYINT" | "SMALLINT" | "INT" | "BIGINT":
            return _integer(value, kind)
        case "FLOAT" | "DOUBLE":
            return _float(value, kind)
        case "DECIMAL":
            return _decimal(value, kind)
        case "DATE":
            return _date(value)
        case "TIME":
            return _time(value, kind.precision or 0)
        case "TIMESTAMP" | "TIMESTAMP_LTZ":
            return _timestamp(value, kind, zone)
        case "BYTES" | "BINARY" | "VARBINARY":
            return _bytes(value)
    return value if isinstance(value, str) else str(value)


_A = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL"), "a number"),
    **dict.fromkeys(("STRING", "CHAR", "VARCHAR"), "a text"),
    **dict.fromkeys(("BYTES", "BINARY", "VARBINARY"), "bytes"),
    "BOOLEAN": "true or false",
    "DATE": "a date",
    "TIME": "a time of day",
    "TIMESTAMP": "a time",
    "TIMESTAMP_LTZ": "a time",
}


def _nested(value: Any, kind: DataType, zone: str) -> Any:
    parts = kind.parts
    if kind.root == "ARRAY":
        if not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
            raise ValueError(f"{_shown(value)} is no ARRAY: write a list")
        return [value_of(item, parts[0], zone) for item in value]
    if kind.has_entries:
        entries = value.items() if isinstance(value, Mapping) else value
        if isinstance(entries, (str, bytes)) or not all(_is_pair(entry) for entry in entries):
            raise ValueError(f"{_shown(value)} is no {kind.root}: write a mapping, or a list of pairs")
        return [(value_of(key, parts[0], zone), value_of(item, parts[1], zone)) for key, item in entries]
    if not isinstance(value, Mapping):
        raise ValueError(f"{_shown(value)} is no ROW: write a mapping with {', '.join(kind.names)}")
    if unknown := [name for name in value if name not in kind.names]:
        raise ValueError(f"there is no field '{unknown[0]}': the ROW has {', '.join(kind.names)}")
    return {name: value_of(value.get(name), part, zone) for name, part in zip(kind.names, parts, strict=True)}


def _is_pair(entry: Any) -> bool:
    return isinstance(entry, (list, tuple)) and len(entry) == 2


def _boolean(value: Any) -> bool:
    text = str(value).lower()
    if text not in ("true", "false"):
        raise ValueError(f"{_shown(value)} is no BOOLEAN: write true or false")
    return text == "true"


def _integer(value: Any, kind: DataType) -> int:
    text = str(value).strip()
    if isinstance(value, bool) or not re.fullmatch(r"[+-]?\d{1,40}", text):
        raise ValueError(f"{_shown(value)} is no {kind.root}")
    number = int(text)
    if not -(1 << _BITS[kind.root]) <= number < 1 << _BITS[kind.root]:
        raise ValueError(f"{text} is out of the range of {kind.root}")
    return number


def _float(value: Any, kind: DataType) -> float:
    if isinstance(value, bool):
        raise ValueError(f"{_shown(value)} is no {kind.root}")
    try:
        return float(str(value).strip())
    except ValueError as error:
        raise ValueError(f"{_shown(value)} is no {kind.root}") from error


def _decimal(value: Any, kind: DataType) -> Decimal:
    try:
        number = Decimal(str(value).strip())
    except InvalidOperation as error:
        raise ValueError(f"{_shown(value)} is no {_type(kind)}") from error
    if isinstance(value, bool) or not number.is_finite():
        raise ValueError(f"{_shown(value)} is no {_type(kind)}")
    precision, scale = kind.precision or 0, kind.scale or 0
    _, digits, exponent = number.normalize().as_tuple()
    places = max(-int(exponent), 0)
    if places > scale:
        raise ValueError(f"{value} has more than {scale} digits behind the point, as {_type(kind)} allows")
    if len(digits) + int(exponent) > precision - scale:
        raise ValueError(f"{value} has more than {precision - scale} digits before the point, as {_type(kind)} allows")
    return number.quantize(Decimal(1).scaleb(-scale), context=_EXACT)


def _date(value: Any) -> date:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    text = str(value).strip()
    try:
        if not re.fullmatch(_DATE, text):
            raise ValueError
        return _day(text)
    except ValueError as error:
        raise ValueError(f"{_shown(value)} is no DATE: write 2026-03-01") from error


def _day(text: str) -> date:
    year, month, day = map(int, text.split("-"))
    return date(year, month, day)


def _time(value: Any, precision: int) -> str:
    """Return a time of day as its text, without trailing zeros in the fraction."""
    match = _TIME_OF_DAY.fullmatch(value.isoformat() if isinstance(value, time) else str(value).strip())
    if match is None or int(match[1]) > 23 or int(match[2]) > 59 or int(match[3] or 0) > 59:
        raise ValueError(f"{_shown(value)} is no TIME: write 10:30:00")
    fraction = (match[4] or "").rstrip("0").rstrip(".")
    if len(fraction) > precision + 1:
        raise ValueError(f"{_shown(value)} has more than {precision} digits of a second, as TIME({precision}) allows")
    return f"{int(match[1]):02}:{match[2]}:{match[3] or '00'}{fraction}"


def _timestamp(value: Any, kind: DataType, zone: str) -> datetime:
    is_instant = kind.root == "TIMESTAMP_LTZ"
    moment = value if isinstance(value, datetime) else time_of(str(value), str(kind))
    precision = 6 if kind.precision is None else kind.precision
    if moment.microsecond % 10 ** (6 - precision):
        raise ValueError(f"{_shown(value)} has more than {precision} digits of a second, as {_type(kind)} allows")
    if not is_instant:
        if moment.tzinfo is not None:
            raise ValueError(f"{_shown(value)} has an offset, and {_type(kind)} has none: write the wall clock")
        return moment
    return (moment if moment.tzinfo else moment.replace(tzinfo=ZoneInfo(zone))).astimezone(UTC)


def time_of(text: str, what: str) -> datetime:
    """Return the time in ``text``, with a zone if it has an offset; ValueError if it is none."""
    match = _TIMESTAMP.fullmatch(text.strip())
    wrong = f"'{text}' is no {what}: write 2026-03-01 10:00:00"
    if match is None or len(match[5] or "") > 7:
        raise ValueError(wrong)
    try:
        hours, minutes, seconds = (int(part or 0) for part in match.group(2, 3, 4))
        micros = int((match[5] or ".0")[1:].ljust(6, "0"))
        moment = datetime.combine(_day(match[1]), time(hours, minutes, seconds, micros))
        if match[6] is None:
            return moment
        offset = "+00:00" if match[6] in ("Z", "UTC") else match[6]
        return moment.replace(tzinfo=datetime.strptime(offset, "%z").tzinfo)
    except ValueError as error:
        raise ValueError(wrong) from error


def _bytes(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    text = str(value)
    if not text.startswith("0x"):
        return text.encode()
    try:
        return bytes.fromhex(text[2:])
    except ValueError as error:
        raise ValueError(f"{_shown(value)} are no bytes: write 0x and two hexadecimal digits for each") from error


def _type(kind: DataType) -> str:
    return str(kind).removesuffix(" NOT NULL")


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else str(value)
    return f"'{text if len(text) <= 60 else text[:57] + '...'}'"
