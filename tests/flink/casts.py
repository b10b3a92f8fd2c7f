"""Values of each type and the types they are cast to: what Flink is asked, and what is asked of the planner."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

_NAN, _INFINITE = float("nan"), float("inf")
_MOMENTS = [
    datetime(2024, 2, 29, 13, 14, 15, 678901), datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(2000, 1, 1),
    datetime(9999, 12, 31, 23, 59, 59, 999500), datetime(1600, 2, 29),
]  # fmt: skip

COLUMNS: dict[str, tuple[str, list[Any]]] = {
    "flag": ("BOOLEAN", [True, False]),
    "tiny": ("TINYINT", [0, 7, -7, 127, -128]),
    "small": ("SMALLINT", [0, 300, -300, 32767, -32768]),
    "whole": ("INT", [0, 1, 65, 70000, 2**31 - 1, -(2**31)]),
    "large": ("BIGINT", [0, -1, 2**31, 2**53 + 1, 2**63 - 1, -(2**63)]),
    "single": ("FLOAT", [0.0, -0.0, 1.5, -2.5, 0.1, 1e10, -1e38, 1e-10, 16777216.0, _NAN, _INFINITE, -_INFINITE]),
    "double": ("DOUBLE", [0.0, 0.1, 2.5, -3.5, 1e7, 1.0e-5, 123456789.125, 1e19, 1e300, _NAN, _INFINITE, -_INFINITE]),
    "money": ("DECIMAL(10, 2)", [Decimal(n) for n in ("0.00", "1.50", "-2.50", "0.05", "12345678.90", "99999999.99")]),
    "long": ("DECIMAL(38, 0)", [Decimal(n) for n in ("0", "1", "-255", "4294967297", "9" * 38, "-" + "9" * 38)]),
    "fine": ("DECIMAL(38, 18)", [Decimal(n) for n in ("0.000000000000000001", "-0.5", "1.999999999999999999")]),
    "day": ("DATE", [date(2024, 2, 29), date(1969, 12, 31), date(1600, 2, 29), date(9999, 12, 31)]),
    "second": ("TIMESTAMP(0)", [moment.replace(microsecond=0) for moment in _MOMENTS]),
    "milli": ("TIMESTAMP(3)", [moment.replace(microsecond=moment.microsecond // 1000 * 1000) for moment in _MOMENTS]),
    "micro": ("TIMESTAMP(6)", _MOMENTS),
    "zoned": ("TIMESTAMP_LTZ(3)", [m.replace(microsecond=m.microsecond // 1000 * 1000) for m in _MOMENTS]),
    "octets": ("BYTES", [b"", b"ab", b"12", "ö".encode(), b"\xff"]),
}  # fmt: skip
"""The columns, each with its type and its values; NULL is one more."""

TARGETS = (
    "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(10, 2)", "DECIMAL(38, 0)",
    "DECIMAL(5, 3)", "STRING", "VARCHAR(4)", "CHAR(4)", "DATE", "TIMESTAMP(0)", "TIMESTAMP(3)", "TIMESTAMP(6)",
    "TIMESTAMP_LTZ(3)", "TIMESTAMP_LTZ(6)", "BYTES",
)  # fmt: skip

FAILS = {"fails": True}
"""What is recorded where a cast of this value fails; a cast that Flink does not take is None instead of a list."""
