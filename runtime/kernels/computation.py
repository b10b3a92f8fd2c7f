"""Arithmetic on numbers, as Flink computes: integers wrap around, DECIMALs are computed exactly and then rounded.

Spark and Flink agree on the digits of a DECIMAL result (:func:`hintplan.runtime.kernels.coercion.arithmetic_digits`).
As in Spark, a product is rounded to 39 digits first. The functions take arrays and scalars.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_DOWN, ROUND_HALF_UP, Context, Decimal

import pyarrow as pa
import pyarrow.compute as pc

from hintplan.runtime.kernels.coercion import MOST_DIGITS
from hintplan.runtime.kernels.conversion import Value, convert

_SIGNS: dict[str, Callable[[Value, Value], Value]] = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}
_EXACT = Context(prec=200, rounding=ROUND_HALF_UP)
_PRODUCT = Context(prec=MOST_DIGITS + 1, rounding=ROUND_HALF_DOWN)
_DECIMAL: dict[str, Callable[[Decimal, Decimal], Decimal]] = {
    "+": _EXACT.add,
    "-": _EXACT.subtract,
    "*": _PRODUCT.multiply,
}


def compute(left: Value, right: Value, *, sign: str) -> Value:
    """Return ``left sign right`` for integers, FLOATs or DOUBLEs of one type, or DECIMALs if no digit can be lost."""
    return _SIGNS[sign](left, right)


def compute_wide(left: Value, right: Value, *, sign: str, to: pa.DataType) -> Value:
    """Return ``left sign right`` for DECIMALs, row by row, rounded half up to ``to``; NULL for too many digits."""
    if isinstance(left, pa.Scalar) and isinstance(right, pa.Scalar):
        return compute_wide(_listed(left, 1), _listed(right, 1), sign=sign, to=to)[0]
    rows = len(right) if isinstance(left, pa.Scalar) else len(left)
    pairs = zip(_listed(left, rows).to_pylist(), _listed(right, rows).to_pylist(), strict=True)
    operation, limit = _DECIMAL[sign], 10 ** (to.precision - to.scale)
    last = Decimal(1).scaleb(-to.scale)

    def computed(a: Decimal | None, b: Decimal | None) -> Decimal | None:
        if a is None or b is None:
            return None
        rounded = operation(a, b).quantize(last, context=_EXACT)
        return rounded if rounded.copy_abs() < limit else None  # abs() would round

    return pa.array([computed(a, b) for a, b in pairs], to)


def _listed(value: Value, rows: int) -> pa.Array:
    return pa.repeat(value, rows) if isinstance(value, pa.Scalar) else value


def divide(left: Value, right: Value) -> Value:
    """Return the integer quotient of integers of one type, as a BIGINT; ArithmeticError if the divisor is zero."""
    try:
        quotient = pc.divide(left, right)
    except pa.ArrowInvalid as error:
        raise ArithmeticError("division by zero") from error
    # The least number has no positive counterpart: negated, it wraps around to itself.
    minus_one = pa.scalar(-1, right.type)
    return convert(pc.if_else(pc.equal(right, minus_one), pc.negate(left), quotient), to=pa.int64())


def remainder(left: Value, right: Value) -> Value:
    """Return the remainder of :func:`divide`, which has the sign of ``left``."""
    quotient = convert(divide(left, right), to=left.type)
    return pc.subtract(left, pc.multiply(quotient, right))


def shift(value: Value, *, places: int, left: bool) -> Value:
    """Shift the bits of an INT or BIGINT by less than its width; a shift to the right repeats the sign bit."""
    if places == value.type.bit_width - 1:  # Arrow treats this as an overflow
        return shift(shift(value, places=places - 1, left=left), places=1, left=left)
    by = pa.scalar(places, value.type)
    return pc.shift_left(value, by) if left else pc.shift_right(value, by)
