"""Values of every type, for columns of tables in data lakes."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

TYPES: tuple[tuple[str, str, Any, Any], ...] = (
    ("b", "BOOLEAN", True, False),
    ("i1", "TINYINT", -128, 127),
    ("i2", "SMALLINT", -32768, 32767),
    ("i4", "INT", -(2**31), 2**31 - 1),
    ("i8", "BIGINT", -(2**63), 2**63 - 1),
    ("f4", "FLOAT", 1.5, -3.25),
    ("f8", "DOUBLE", 0.1, -1e300),
    ("n", "DECIMAL(38, 10)", Decimal("1234567890123456789012345678.0123456789"), Decimal("-0.0000000001")),
    ("n2", "DECIMAL(10, 2)", Decimal("99999999.99"), Decimal("-0.01")),
    ("s", "STRING", "ü'\"\\%s\n\t%", ""),
    ("c", "CHAR(2)", "ab", "é "),
    ("v", "VARCHAR(99)", "a" * 99, "é"),
    ("d", "DATE", dt.date(2024, 2, 29), dt.date(1583, 1, 1)),
    ("t3", "TIMESTAMP(3)", dt.datetime(2024, 2, 29, 23, 59, 59, 123000), dt.datetime(1900, 1, 1)),
    ("t6", "TIMESTAMP(6)", dt.datetime(2024, 2, 29, 23, 59, 59, 123456), dt.datetime(9999, 12, 31, 23, 59, 59)),
    ("z", "TIMESTAMP_LTZ(6)", dt.datetime(2024, 2, 29, 12, 0, 0, 1, dt.UTC), dt.datetime(1971, 1, 1, tzinfo=dt.UTC)),
    ("y", "BYTES", b"\x00\xff'\\%", b""),
    ("a", "ARRAY<INT>", [1, None], []),
    ("m", "MAP<STRING, INT>", {"k": 1}, {}),
    ("r", "ROW<x STRING, y ARRAY<INT>>", {"x": "ü", "y": [2]}, {"x": None, "y": None}),
)
"""A column, its type, and two values."""
DIVIDING = ("b", "i1", "i2", "i4", "i8", "c", "v", "d")
