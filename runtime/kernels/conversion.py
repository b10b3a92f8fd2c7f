"""Conversions of values between types, exactly as in Spark (ANSI) and Java.

- Numbers become the nearest FLOAT or DOUBLE: 0.57 becomes 0.57. Arrow's own conversion of DECIMALs yields
  0.5700000000000001.
- DECIMALs round half up, integers are truncated towards zero.
- FLOAT and DOUBLE become the DECIMAL of their shortest text.

A value that does not fit raises ArithmeticError, or becomes NULL if ``safe``. The functions take and return arrays or
scalars.

>>> convert(pa.scalar(Decimal("0.57"), pa.decimal128(12, 2)), to=pa.float64()).as_py()
0.57
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.runtime.kernels.coercion import digits_of

Value: TypeAlias = Any
"""An Arrow array, or a scalar with the value of all rows."""

_WIDE = 76
_IN_FULL = Context(prec=400, rounding=ROUND_HALF_UP)
_SAFE_DIGITS = {pa.int8(): 2, pa.int16(): 4, pa.int32(): 9, pa.int64(): 18}
"""The number of digits of which all numbers fit into the type."""
_BLANK = "[\\x00-\\x20\\x7f]*"
_WHOLE = re.compile(f"{_BLANK}([+-]?[0-9]+){_BLANK}")
_NUMBER = re.compile(f"{_BLANK}([+-]?(?:[0-9]+\\.?[0-9]*|\\.[0-9]+)(?:[eE][+-]?[0-9]{{1,9}})?){_BLANK}")


def converts(source: pa.DataType, to: pa.DataType) -> bool:
    """Return True if :func:`convert` supports the conversion from ``source`` to ``to``."""
    if source == to or pa.types.is_null(source):
        return True
    if pa.types.is_string(source):
        return to in _SAFE_DIGITS or pa.types.is_decimal(to)
    if _is_number(source):
        return _is_number(to)
    if source == pa.bool_():
        return to in _SAFE_DIGITS
    return {source, to} == {pa.date32(), pa.timestamp("us")}


def may_not_fit(source: pa.DataType, to: pa.DataType) -> bool:
    """Return True if some values of ``source`` do not fit into ``to``."""
    digits, wanted = digits_of(source), digits_of(to)
    if source == to or wanted is None or source == pa.bool_() or pa.types.is_null(source):
        return False
    if digits is None:
        return True
    if pa.types.is_integer(to):
        if pa.types.is_integer(source):
            return bool(source.bit_width > to.bit_width)
        return bool(digits[0] - digits[1] > _SAFE_DIGITS[to])
    rounds_up = digits[1] > wanted[1]
    return bool(digits[0] - digits[1] + rounds_up > wanted[0] - wanted[1])


def by_row(source: pa.DataType, to: pa.DataType) -> bool:
    """Return True if values are converted one by one, in Python."""
    if pa.types.is_floating(source):
        return bool(pa.types.is_decimal(to))
    return bool(pa.types.is_string(source) and source != to)


def convert(values: Value, *, to: pa.DataType, safe: bool = False) -> Value:
    """Convert ``values`` to ``to``, if :func:`converts` allows it.

    A value that does not fit raises ArithmeticError, or becomes NULL if ``safe``.
    """
    source = values.type
    if source == to:
        return values
    if isinstance(values, pa.Scalar):
        return convert(pa.array([values.as_py()], source), to=to, safe=safe)[0]
    if pa.types.is_null(source):
        return pa.nulls(len(values), to)
    if pa.types.is_string(source):
        return _from_text(values, to, safe)
    if pa.types.is_decimal(to):
        return _from_floating(values, to, safe) if pa.types.is_floating(source) else rounded(values, to, safe=safe)
    if pa.types.is_integer(to) and source != pa.bool_():
        return _whole(values, to, safe)
    if pa.types.is_decimal(source):
        return _nearest(values, to)
    return values.cast(options=pc.CastOptions.unsafe(to))


def rounded(values: pa.Array, to: pa.DataType, *, safe: bool) -> pa.Array:
    """Round integers or DECIMALs of any width half up to a DECIMAL."""
    if not pa.types.is_decimal(values.type):
        values = values.cast(pa.decimal128(_integer_digits(values.type), 0))
    source = values.type
    if to.scale >= source.scale and to.precision - to.scale >= source.precision - source.scale:
        return values.cast(to)
    wide = values.cast(pa.decimal256(_WIDE, source.scale))
    if to.scale < source.scale:
        wide = pc.round(wide, ndigits=to.scale, round_mode="half_towards_infinity")
    wide = wide.cast(pa.decimal256(_WIDE, to.scale))
    limit = pa.scalar(_IN_FULL.create_decimal(10 ** (to.precision - to.scale)), pa.decimal256(_WIDE, to.scale))
    return _fitting(wide, pc.less(pc.abs(wide), limit), to, safe).cast(to)


def _is_number(kind: pa.DataType) -> bool:
    return digits_of(kind) is not None or pa.types.is_floating(kind)


def _integer_digits(kind: pa.DataType) -> int:
    digits = digits_of(kind)
    assert digits is not None
    return digits[0]


def _fitting(values: pa.Array, fits: pa.Array, to: pa.DataType, safe: bool) -> pa.Array:
    """Return ``values`` if all fit; else replace the others with NULL if ``safe``, or raise ArithmeticError."""
    if pc.all(fits).as_py() is not False:  # pc.all is None if there are no values except NULL
        return values
    if not safe:
        unfit = values.filter(pc.invert(fits))[0].as_py()
        raise ArithmeticError(f"{unfit} does not fit into {_named(to)}")
    return pc.if_else(fits, values, pa.scalar(None, values.type))


def _named(kind: pa.DataType) -> str:
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    return {8: "TINYINT", 16: "SMALLINT", 32: "INT"}.get(kind.bit_width, "BIGINT")


def _nearest(values: pa.Array, to: pa.DataType) -> pa.Array:
    """Return DECIMALs as the nearest FLOAT or DOUBLE; ties round to the even last bit."""
    kind = values.type
    if to == pa.float64() and kind.precision <= 15:
        # Dividend and divisor are exact DOUBLEs, so the division rounds only once.
        limbs = np.frombuffer(values.buffers()[1], np.int64)[2 * values.offset : 2 * (values.offset + len(values)) : 2]
        missing = np.asarray(values.is_null()) if values.null_count else None
        return pa.array(limbs / float(10**kind.scale), to, mask=missing)
    return values.cast(pa.string()).cast(to)


def _whole(values: pa.Array, to: pa.DataType, safe: bool) -> pa.Array:
    """Truncate numbers to integers."""
    least, most = -(1 << (to.bit_width - 1)), (1 << (to.bit_width - 1)) - 1
    if pa.types.is_floating(values.type):
        missing = np.asarray(values.is_null())
        numbers = np.asarray(values.fill_null(0.0), np.float64)
        fits = (np.floor(numbers) <= float(most)) & (np.ceil(numbers) >= float(least))
        if not safe and not fits.all():
            raise ArithmeticError(f"{numbers[~fits][0]} does not fit into {_named(to)}")
        cut = np.trunc(np.where(fits, numbers, 0.0))
        whole = np.where(cut >= float(1 << 63), most, np.where(cut >= float(1 << 63), 0.0, cut).astype(np.int64))
        return pa.array(whole, pa.int64(), mask=missing | ~fits).cast(to)
    if pa.types.is_decimal(values.type):
        wide = pc.trunc(values.cast(pa.decimal256(_WIDE, values.type.scale))).cast(pa.decimal256(_WIDE, 0))
    elif to.bit_width >= values.type.bit_width:
        return values.cast(to)
    else:
        wide = values
    low, high = (pa.scalar(Decimal(n) if wide is not values else n, wide.type) for n in (least, most))
    fits = pc.and_(pc.greater_equal(wide, low), pc.less_equal(wide, high))
    fitting = _fitting(wide, fits, to, safe)
    return (fitting if wide is values else fitting.cast(pa.decimal128(38, 0))).cast(to)


def _from_floating(values: pa.Array, to: pa.DataType, safe: bool) -> pa.Array:
    """Convert FLOAT and DOUBLE to DECIMAL; NaN and infinities become NULL."""

    def quantized(number: float) -> Decimal | None:
        return _quantized(Decimal(repr(number)), to, safe) if np.isfinite(number) else None

    return _each(values, to, quantized)


def _from_text(values: pa.Array, to: pa.DataType, safe: bool) -> pa.Array:
    pattern = _WHOLE if pa.types.is_integer(to) else _NUMBER

    def parsed(text: str) -> int | Decimal | None:
        match = pattern.fullmatch(text)
        if match is None:
            if safe:
                return None
            raise ArithmeticError(f"the text {text[:40]!r} is no {_named(to)}")
        if pa.types.is_decimal(to):
            return _quantized(Decimal(match[1]), to, safe)
        number = int(match[1]) if len(match[1]) < 4000 else 1 << 64
        if -(1 << (to.bit_width - 1)) <= number < 1 << (to.bit_width - 1):
            return number
        if safe:
            return None
        raise ArithmeticError(f"the text {text[:40]!r} is no {_named(to)}")

    return _each(values, to, parsed)


def _quantized(number: Decimal, to: pa.DataType, safe: bool) -> Decimal | None:
    if number.adjusted() < to.precision:
        quantized = number.quantize(Decimal(1).scaleb(-to.scale), context=_IN_FULL)
        if quantized.is_zero() or quantized.adjusted() < to.precision - to.scale:
            return quantized
    if safe:
        return None
    raise ArithmeticError(f"{number} does not fit into {_named(to)}")


def _each(values: pa.Array, to: pa.DataType, one: Callable[[Any], Any]) -> pa.Array:
    return pa.array([None if value is None else one(value) for value in values.to_pylist()], to)
