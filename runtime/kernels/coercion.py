"""The common type of two values and the result type of arithmetic, by Spark's rules (ANSI), over Arrow types.

- BIGINT with DOUBLE, any integer with FLOAT, and DECIMAL with either have the common type DOUBLE.
- Two DECIMALs have a common DECIMAL that holds both. Beyond 38 digits, it has fewer digits after the point.

Where Flink's rules differ, the planner writes a CAST. This module knows no expressions.

>>> str(common_type(pa.int64(), pa.decimal128(12, 2)))
'decimal128(22, 2)'
"""

from __future__ import annotations

import pyarrow as pa

MOST_DIGITS = 38
_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}
_LEAST_SCALE = 6
"""The least scale to which the result of arithmetic is cut; a smaller scale stays as it is."""


def digits_of(kind: pa.DataType) -> tuple[int, int] | None:
    """Return precision and scale of the DECIMAL that holds all values of an exact number; None for other types."""
    if pa.types.is_decimal(kind):
        return kind.precision, kind.scale
    return (_DIGITS[kind], 0) if kind in _DIGITS else None


def decimal_type(precision: int, scale: int) -> pa.DataType:
    """Return the DECIMAL of these digits; beyond 38, it has fewer digits after the point."""
    if precision > MOST_DIGITS:
        precision, scale = MOST_DIGITS, max(scale - (precision - MOST_DIGITS), 0)
    return pa.decimal128(precision, scale)


def decimal_of(one: tuple[int, int], other: tuple[int, int]) -> pa.DataType:
    """Return the common DECIMAL of two pairs of precision and scale."""
    scale = max(one[1], other[1])
    return decimal_type(max(one[0] - one[1], other[0] - other[1]) + scale, scale)


def common_type(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Return the type in which values of two types are compared or chosen; None if there is none."""
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    digits, other_digits = digits_of(one), digits_of(other)
    if digits is not None and other_digits is not None:
        if pa.types.is_integer(one) and pa.types.is_integer(other):
            return max(one, other, key=lambda kind: kind.bit_width)
        return decimal_of(digits, other_digits)
    if all(exact is not None or pa.types.is_floating(kind) for exact, kind in ((digits, one), (other_digits, other))):
        return pa.float64()
    if {one, other} == {pa.date32(), pa.timestamp("us")}:
        return pa.timestamp("us")
    return None


def arithmetic_digits(sign: str, one: tuple[int, int], other: tuple[int, int]) -> tuple[tuple[int, int], pa.DataType]:
    """Return precision and scale of an exact ``+``, ``-`` or ``*`` of DECIMALs, and the type of its result."""
    (p1, s1), (p2, s2) = one, other
    precision, scale = p1 + p2 + 1, s1 + s2
    if sign != "*":
        scale = max(s1, s2)
        precision = max(p1 - s1, p2 - s2) + scale + 1
    if precision <= MOST_DIGITS:
        return (precision, scale), pa.decimal128(precision, scale)
    kept = max(MOST_DIGITS - (precision - scale), min(scale, _LEAST_SCALE))
    return (precision, scale), pa.decimal128(MOST_DIGITS, kept)
