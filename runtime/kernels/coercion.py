"""Which type two values meet in, and which type arithmetic has: Spark's rules (ANSI), over Arrow types.

BIGINT beside DOUBLE, and any integer beside FLOAT, meet in DOUBLE; so does a DECIMAL beside either. DECIMALs meet in
one that holds both, of at most 38 digits, of which those behind the point give way. Flink's rules where they differ are
the planner's: it writes a CAST. Knows no expressions.

>>> str(common_type(pa.int64(), pa.decimal128(12, 2)))
'decimal128(22, 2)'
"""

from __future__ import annotations

import pyarrow as pa

MOST_DIGITS = 38
_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}
_LEAST_SCALE = 6
"""Digits behind the point that the result of arithmetic keeps if it has as many."""


def digits_of(kind: pa.DataType) -> tuple[int, int] | None:
    """Precision and scale of the DECIMAL that holds all values of an exact number; None for other types."""
    if pa.types.is_decimal(kind):
        return kind.precision, kind.scale
    return (_DIGITS[kind], 0) if kind in _DIGITS else None


def as_decimal(precision: int, scale: int) -> pa.DataType:
    """A DECIMAL of that many digits, or of 38; digits behind the point give way."""
    if precision > MOST_DIGITS:
        precision, scale = MOST_DIGITS, max(scale - (precision - MOST_DIGITS), 0)
    return pa.decimal128(precision, scale)


def decimal_of(one: tuple[int, int], other: tuple[int, int]) -> pa.DataType:
    """The DECIMAL in which two of these digits meet."""
    scale = max(one[1], other[1])
    return as_decimal(max(one[0] - one[1], other[0] - other[1]) + scale, scale)


def common_type(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """The type in which values of two types are compared, or chosen from; None if they have none."""
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    digits, others = digits_of(one), digits_of(other)
    if digits is not None and others is not None:
        if pa.types.is_integer(one) and pa.types.is_integer(other):
            return max(one, other, key=lambda kind: kind.bit_width)
        return decimal_of(digits, others)
    if all(found is not None or pa.types.is_floating(kind) for found, kind in ((digits, one), (others, other))):
        return pa.float64()
    if {one, other} == {pa.date32(), pa.timestamp("us")}:
        return pa.timestamp("us")
    return None


def arithmetic_digits(sign: str, one: tuple[int, int], other: tuple[int, int]) -> tuple[tuple[int, int], pa.DataType]:
    """Precision and scale of an exact ``+``, ``-`` or ``*`` of DECIMALs, and the type of its result."""
    (p1, s1), (p2, s2) = one, other
    precision, scale = p1 + p2 + 1, s1 + s2
    if sign != "*":
        scale = max(s1, s2)
        precision = max(p1 - s1, p2 - s2) + scale + 1
    if precision <= MOST_DIGITS:
        return (precision, scale), pa.decimal128(precision, scale)
    kept = max(MOST_DIGITS - (precision - scale), min(scale, _LEAST_SCALE))
    return (precision, scale), pa.decimal128(MOST_DIGITS, kept)
