"""Values for scripts: JSON numbers and booleans where they are exact, text otherwise.

DECIMAL is text, and so are times (``2020-01-01 00:00:00.000``, TIMESTAMP_LTZ in UTC with a ``Z``), dates and numbers
that JSON lacks (``NaN``, ``Infinity``). Bytes are base64. A map is a JSON object if its keys are text, else a list of
pairs. A multiset is a map from each element to its number of occurrences.

>>> json_value_of("DECIMAL(5, 2)")(Decimal("1.50")), json_value_of("MAP<STRING, INT>")([("a", 1)])
('1.50', {'a': 1})
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from datetime import UTC
from decimal import Decimal
from typing import Any

import numpy as np

from hintplan.plans.declarations.types import DataType, parse_type
from hintplan.runtime.results.text import moment

__all__ = ["Decimal", "json_value_of"]

_Value = Callable[[Any], Any]


def json_value_of(type_text: str) -> _Value:
    """Return a function that converts an Arrow value of the type to a value that ``json`` can write."""
    return _value(parse_type(type_text))


def _value(data_type: DataType) -> _Value:
    plain = _plain(data_type)
    return lambda value: None if value is None else plain(value)


def _plain(data_type: DataType) -> _Value:
    root = data_type.root
    inside = [_value(part) for part in data_type.parts]
    if root in ("DECIMAL", "DATE"):
        return str
    if root == "FLOAT":
        return lambda value: _number(float(str(np.float32(value))))
    if root == "DOUBLE":
        return _number
    if root in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        digits = 6 if data_type.precision is None else data_type.precision
        if root == "TIMESTAMP":
            return lambda value: moment(value, digits)
        return lambda value: moment(value.astimezone(UTC), digits) + "Z"
    if root in ("BYTES", "BINARY", "VARBINARY"):
        return lambda value: base64.b64encode(value).decode("ascii")
    if root == "ARRAY":
        return lambda value: [inside[0](item) for item in value]
    if data_type.has_entries and data_type.parts[0].is_text:
        return lambda value: {key: inside[1](item) for key, item in value}
    if data_type.has_entries:
        return lambda value: [[inside[0](key), inside[1](item)] for key, item in value]
    if root == "ROW":
        return lambda value: {n: convert(v) for convert, (n, v) in zip(inside, value.items(), strict=True)}
    return lambda value: value


def _number(value: float) -> float | str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value
