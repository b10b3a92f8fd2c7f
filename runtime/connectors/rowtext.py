"""Rows as text in the format of Flink's ``Row.toString``: ``+I[1, DE, 5.0]``.

- NULL is ``null``, and texts are unchanged.
- DOUBLE and FLOAT follow Java: ``5.0``, ``1.0E10``.
- TIMESTAMP omits zero seconds: ``2020-01-01T00:00``. TIMESTAMP_LTZ is an instant in UTC: ``2020-01-01T00:00:00Z``.
  Fractions of a second have 3 or 6 digits.
- Bytes are signed numbers: ``[1, -1]``.
- Arrays are ``[a, b]``, maps ``{k=v}``, rows ``+I[a, b]``.

>>> list(lines(pa.table({"a": [1, None], "b": [1e10, 0.5]}), [0, 3]))
['+I[1, 1.0E10]', '-D[null, 0.5]']
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from hintplan.plans.declarations.row_kinds import ALL_KINDS

_Format = Callable[[Any], str]


def lines(table: pa.Table, kinds: Sequence[int] | None) -> Iterator[str]:
    """Yield the rows of ``table`` as text; ``kinds`` are their row kinds as numbers, or None if all are ``+I``."""
    columns = [
        [format_value(value) for value in column.to_pylist()]
        for column, format_value in zip(table.columns, map(formatter, table.schema.types), strict=True)
    ]
    for index, fields in enumerate(zip(*columns, strict=True)):
        yield f"{ALL_KINDS[kinds[index] if kinds else 0]}[{', '.join(fields)}]"


def formatter(data_type: pa.DataType) -> _Format:
    """Return a function that converts a value of the type, in the form of ``to_pylist``, to text."""
    plain = _plain_formatter(data_type)

    def format_value(value: object) -> str:
        return "null" if value is None else plain(value)

    return format_value


def _plain_formatter(data_type: pa.DataType) -> _Format:
    types = pa.types
    if types.is_boolean(data_type):
        return lambda value: "true" if value else "false"
    if types.is_float32(data_type):
        return lambda value: floating(np.float32(value))
    if types.is_float64(data_type):
        return lambda value: floating(np.float64(value))
    if types.is_timestamp(data_type):
        return _instant if data_type.tz else _local_time
    if types.is_binary(data_type):
        return lambda value: f"[{', '.join(str(byte - 256 if byte > 127 else byte) for byte in value)}]"
    if types.is_list(data_type):
        element = formatter(data_type.value_type)
        return lambda value: f"[{', '.join(map(element, value))}]"
    if types.is_map(data_type):
        key, item = formatter(data_type.key_type), formatter(data_type.item_type)
        return lambda value: "{" + ", ".join(f"{key(k)}={item(v)}" for k, v in value) + "}"
    if types.is_struct(data_type):
        fields = [(field.name, formatter(field.type)) for field in data_type]
        return lambda value: f"+I[{', '.join(format_field(value[name]) for name, format_field in fields)}]"
    return str  # integers, DECIMAL, DATE and text: Python and Java agree


def floating(value: np.floating[Any]) -> str:
    """Return Java's ``Double.toString`` or ``Float.toString``: the fewest digits that identify the number."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return np.format_float_positional(value, unique=True, trim="0")
    mantissa, exponent = np.format_float_scientific(value, unique=True, trim="0").split("e")
    return f"{mantissa}E{int(exponent)}"


def _fraction(value: datetime) -> str:
    if not value.microsecond:
        return ""
    digits = f"{value.microsecond:06d}"
    return "." + (digits[:3] if digits.endswith("000") else digits)


def _local_time(value: datetime) -> str:
    seconds = f":{value.second:02d}{_fraction(value)}" if value.second or value.microsecond else ""
    return f"{value.year:04d}-{value:%m-%dT%H:%M}{seconds}"


def _instant(value: datetime) -> str:
    value = value.astimezone(UTC)
    return f"{value.year:04d}-{value:%m-%dT%H:%M:%S}{_fraction(value)}Z"
