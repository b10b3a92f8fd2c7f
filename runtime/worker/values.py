"""Python values from user code as values of declared types: converted if they are exact, or refused with the reason.

Arrow is too lenient. It turns 1.5 into an integer, True into a number, 1e300 into an infinite FLOAT and bytes into
text. It drops the zone of a timestamp and the time of a day, and ignores lengths. Here a value is accepted only if it
is the same value in the declared type, at any depth:

| declared | accepted |
|---|---|
| BOOLEAN | bool |
| TINYINT, SMALLINT, INT, BIGINT | int; float and Decimal without a fraction |
| FLOAT, DOUBLE | float; int if it is exact. FLOAT rounds, but never to infinity, and to 0 only from 0 |
| DECIMAL | Decimal, int |
| CHAR(n), VARCHAR(n), STRING | str of n characters, at most n, or any number |
| BINARY(n), VARBINARY(n), BYTES | bytes, bytearray, memoryview, with the same rule for n |
| DATE | date, but no datetime |
| TIMESTAMP(p) | datetime without a zone, with at most p digits of a second |
| TIMESTAMP_LTZ(p) | datetime with a zone, with at most p digits; it is the same moment in any zone |
| ARRAY | list, tuple, numpy array with one dimension |
| MAP | dict, or pairs |
| ROW | tuple or list in the order of the fields, or dict by their names |

A numpy scalar is accepted like the Python value that it represents. None is NULL.

>>> from hintplan.plans.declarations.types import parse_type
>>> fit(parse_type("ARRAY<ROW<a INT, b STRING>>")).column([[{"b": "x", "a": 1}, (2, "y")], None])
[[(1, 'x'), (2, 'y')], None]
>>> fit(parse_type("DOUBLE")).column([0.5, True])
Traceback (most recent call last):
  ...
TypeError: True is no number
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Context, Decimal
from functools import partial
from typing import Any, TypeGuard, TypeVar

import numpy as np

from hintplan.plans.declarations.types import DataType

_Text = TypeVar("_Text", str, bytes)

MISFITS = (TypeError, ValueError, OverflowError)
"""The exceptions that a value raises if it does not fit."""

_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_EXACT = Context(prec=10_000)
_BYTES = (bytes, bytearray, memoryview)
_NO_TYPES: frozenset[type] = frozenset({type(None)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Converts values to one type: ``value`` converts a value that is not None, or raises one of ``MISFITS``.

    Values whose type is in ``plain`` need no conversion, so a column of them is checked at once.
    """

    value: Callable[[object], object]
    plain: frozenset[type] = _NO_TYPES

    def column(self, values: list[Any]) -> list[Any]:
        """Return all ``values``, converted for Arrow; None stays None."""
        if self.plain.issuperset(map(type, values)):
            return values
        return [None if value is None else self.value(value) for value in values]


def fit(kind: DataType) -> Fit:
    """Return the conversion of Python values to ``kind``.

    It ignores whether ``kind`` itself allows NULL; only types inside ``kind`` are checked for NULL.
    """
    size = kind.precision or 0
    if kind.root == "BOOLEAN":
        return Fit(value=_boolean, plain=_NO_TYPES | {bool})
    if kind.is_integer:
        # Arrow itself refuses an int in a column that is too large.
        return Fit(value=partial(_integer, bits=_BITS[kind.root]), plain=_NO_TYPES | {int})
    if kind.root == "FLOAT":
        return Fit(value=_float)
    if kind.root == "DOUBLE":
        return Fit(value=_double, plain=_NO_TYPES | {float})
    if kind.root == "DECIMAL":
        return Fit(value=partial(_decimal, digits=size, scale=kind.scale or 0))
    if kind.root == "STRING":
        return Fit(value=_text, plain=_NO_TYPES | {str})
    if kind.root in ("CHAR", "VARCHAR"):
        return Fit(value=lambda value: _sized(_text(value), size, "characters", exactly=kind.root == "CHAR"))
    if kind.root == "BYTES":
        return Fit(value=_bytes, plain=_NO_TYPES | {bytes})
    if kind.root in ("BINARY", "VARBINARY"):
        return Fit(value=lambda value: _sized(_bytes(value), size, "bytes", exactly=kind.root == "BINARY"))
    if kind.root == "DATE":
        return Fit(value=_date, plain=_NO_TYPES | {date})
    if kind.root in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        return Fit(value=partial(_timestamp, digits=size, zoned=kind.root == "TIMESTAMP_LTZ"))
    inside = [_or_null(part) for part in kind.parts]
    if kind.root == "ARRAY":
        return Fit(value=lambda value: [inside[0](item) for item in _elements(value)])
    if kind.has_entries:
        return Fit(value=lambda value: [(_key(inside[0], key), inside[1](item)) for key, item in _pairs(value)])
    return Fit(
        value=lambda value: tuple(
            convert(item) for convert, item in zip(inside, row_values(value, kind.names), strict=True)
        )
    )


def row_values(value: object, names: Sequence[str]) -> tuple[Any, ...]:
    """Return the values of a row with fields ``names``, from a tuple or list in their order, or a dict by name."""
    if isinstance(value, Mapping):
        if len(value) == len(names) and all(name in value for name in names):
            return tuple(value[name] for name in names)
        lacking = [f"it lacks {name!r}" for name in names if name not in value]
        unknown = [f"{name!r} is no field" for name in value if name not in names]
        raise ValueError(", ".join(lacking + unknown))
    if not isinstance(value, tuple | list):
        raise TypeError("it is neither a tuple, nor a list, nor a dict")
    if len(value) != len(names):
        raise ValueError(f"it has {len(value)} {'value' if len(value) == 1 else 'values'}, not {len(names)}")
    return tuple(value)


def _or_null(kind: DataType) -> Callable[[object], object]:
    """Return the conversion of a value inside another value to ``kind``, with a check for NULL."""
    value_of = fit(kind).value

    def converted(value: object) -> object:
        if value is not None:
            return value_of(value)
        if not kind.nullable:
            raise ValueError(f"NULL is no {kind}")
        return None

    return converted


def _is_whole(value: object) -> TypeGuard[int | np.integer[Any]]:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _boolean(value: object) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{_shown(value)} is neither True nor False")
    return bool(value)


def _integer(value: object, *, bits: int) -> int:
    if isinstance(value, float | np.floating | Decimal):
        if not (math.isfinite(value) and value == int(value)):
            raise ValueError(f"{_shown(value)} is no whole number")
        whole = int(value)
    elif _is_whole(value):
        whole = int(value)
    else:
        raise TypeError(f"{_shown(value)} is no number")
    if not -(1 << bits - 1) <= whole < 1 << bits - 1:
        raise ValueError(f"{_shown(value)} is too large")
    return whole


def _double(value: object) -> float:
    if isinstance(value, float | np.floating):
        return float(value)
    if not _is_whole(value):
        advice = " would be rounded: use float(...)" if isinstance(value, Decimal) else " is no number"
        raise TypeError(_shown(value) + advice)
    number = float(value)
    if number != int(value):
        raise ValueError(f"{_shown(value)} has more digits than it can hold")
    return number


def _float(value: object) -> float:
    number = _double(value)
    with np.errstate(over="ignore"):
        rounded = float(np.float32(number))
    if math.isinf(rounded) and not math.isinf(number):
        raise ValueError(f"{_shown(value)} is too large")
    if not rounded and number:
        raise ValueError(f"{_shown(value)} is too small, and would be 0")
    if rounded != number and _is_whole(value):
        raise ValueError(f"{_shown(value)} has more digits than it can hold")
    return rounded


def _decimal(value: object, *, digits: int, scale: int) -> Decimal:
    if _is_whole(value):
        value = Decimal(int(value))
    if not isinstance(value, Decimal):
        exact = "is not exact: use Decimal('...')" if isinstance(value, float | np.floating) else "is no number"
        raise TypeError(f"{_shown(value)} {exact}")
    if not value.is_finite():
        raise ValueError(f"{value} is no number")
    if not value:
        return Decimal(0)
    behind = -int(value.normalize(_EXACT).as_tuple().exponent)  # trailing zeros do not count
    if behind > scale:
        raise ValueError(f"it has {behind} digits behind the point, not {scale}")
    if value.adjusted() + 1 > digits - scale:
        raise ValueError(f"it has {value.adjusted() + 1} digits before the point, not {digits - scale}")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{_shown(value)} is no str")
    value.encode()  # UnicodeEncodeError, which is a ValueError, for half a character
    return value


def _bytes(value: object) -> bytes:
    if not isinstance(value, _BYTES):
        raise TypeError(f"{_shown(value)} is no bytes")
    return bytes(value)


def _sized(value: _Text, size: int, what: str, *, exactly: bool) -> _Text:
    if len(value) > size or (exactly and len(value) < size):
        raise ValueError(f"it has {len(value)} {what}, not {size}")
    return value


def _date(value: object) -> date:
    if isinstance(value, datetime):
        raise TypeError(f"{_shown(value)} has a time: use .date()")
    if not isinstance(value, date):
        raise TypeError(f"{_shown(value)} is no date")
    return value


def _timestamp(value: object, *, digits: int, zoned: bool) -> datetime:
    if not isinstance(value, datetime):
        raise TypeError(f"{_shown(value)} is no datetime")
    if zoned and value.utcoffset() is None:
        raise ValueError(f"{_shown(value)} has no zone: use .replace(tzinfo=...)")
    if not zoned and value.utcoffset() is not None:
        raise ValueError(f"{_shown(value)} has a zone: use .replace(tzinfo=None)")
    # A pandas timestamp also has nanoseconds.
    if value.microsecond % 10 ** (6 - digits) or getattr(value, "nanosecond", 0):
        raise ValueError(f"{_shown(value)} has more than {digits} digits of a second")
    return value


def _elements(value: object) -> Sequence[Any]:
    if isinstance(value, np.ndarray) and value.ndim == 1:
        return list(value)
    if not isinstance(value, list | tuple):
        raise TypeError(f"{_shown(value)} is neither a list nor a tuple")
    return value


def _key(of: Callable[[object], object], key: object) -> object:
    if key is None:
        raise ValueError("a key is None")
    return of(key)


def _pairs(value: object) -> list[Any]:
    if isinstance(value, Mapping):
        return list(value.items())
    if not isinstance(value, list | tuple) or not all(isinstance(e, tuple | list) and len(e) == 2 for e in value):
        raise TypeError(f"{_shown(value)} is neither a dict nor pairs")
    return list(value)


def _shown(value: object) -> str:
    return reprlib.repr(value)
