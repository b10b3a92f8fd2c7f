"""Values as text, as Flink's SQL client shows them and ``CAST(x AS STRING)`` returns them.

    TRUE    5.0    1.0E10    2020-01-01 00:00:00.000    [1, 2]    {a=1}    (1, x)    x'01ff'

Timestamps have the number of digits in their type, and TIMESTAMP_LTZ is in the time zone of the session. A NULL cell is
None; a NULL inside a value is the text NULL.

>>> cell("BOOLEAN", "UTC")(True), cell("ARRAY<DOUBLE>", "UTC")([1.5, None])
('TRUE', '[1.5, NULL]')
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from hintplan.plans.declarations.types import DataType, parse_type
from hintplan.runtime.connectors.rowtext import floating

_Cell = Callable[[Any], str]


def cell(type_text: str, time_zone: str) -> Callable[[Any], str | None]:
    """Return a function that writes an Arrow value of the type as text; ValueError if ``type_text`` is no type."""
    plain = _plain(parse_type(type_text), ZoneInfo(time_zone))
    return lambda value: None if value is None else plain(value)


def _plain(data_type: DataType, zone: ZoneInfo) -> _Cell:
    root = data_type.root
    inside = [_or_null(_plain(part, zone)) for part in data_type.parts]
    if root == "BOOLEAN":
        return lambda value: "TRUE" if value else "FALSE"
    if root in ("FLOAT", "DOUBLE"):
        width = np.float32 if root == "FLOAT" else np.float64
        return lambda value: floating(width(value))
    if root in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        digits = 6 if data_type.precision is None else data_type.precision
        local = root == "TIMESTAMP_LTZ"
        return lambda value: moment(value.astimezone(zone) if local else value, digits)
    if root in ("BYTES", "BINARY", "VARBINARY"):
        return lambda value: f"x'{value.hex()}'"
    if root == "ARRAY":
        return lambda value: f"[{', '.join(map(inside[0], value))}]"
    if data_type.has_entries:
        return lambda value: "{" + ", ".join(f"{inside[0](k)}={inside[1](v)}" for k, v in value) + "}"
    if root == "ROW":
        return lambda value: f"({', '.join(convert(v) for convert, v in zip(inside, value.values(), strict=True))})"
    return str  # integers, DECIMAL, DATE and text


def _or_null(plain: _Cell) -> _Cell:
    return lambda value: "NULL" if value is None else plain(value)


def moment(value: datetime, digits: int) -> str:
    """Return a time as text, with ``digits`` digits of the second's fraction.

    >>> moment(datetime(2020, 1, 1, 12, 30, 0, 5000), 3)
    '2020-01-01 12:30:00.005'
    """
    fraction = f".{value.microsecond:06d}"[: digits + 1] if digits else ""
    return f"{value.year:04d}-{value:%m-%d %H:%M:%S}{fraction}"
