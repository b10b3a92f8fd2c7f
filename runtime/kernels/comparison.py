"""Comparisons of values of one type: text and bytes byte by byte, FALSE before TRUE, numbers by their value.

0.0 and -0.0 are equal, as are all NaNs, which are greater than any other number: as in Spark, and as keys meet. Takes
arrays and scalars, and gives true, false or NULL for each place.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from hintplan.runtime.kernels.conversion import Value
from hintplan.runtime.state.nested_values import numbered

_PLAIN: dict[str, Callable[[Value, Value], Value]] = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def compare(left: Value, right: Value, *, sign: str) -> Value:
    """``left sign right``, both of one type."""
    if pa.types.is_floating(left.type):
        return _floating(left, right, sign)
    if left.type == pa.bool_() and sign not in ("=", "<>"):
        left, right = left.cast(pa.int8()), right.cast(pa.int8())
    return _PLAIN[sign](left, right)


def _floating(left: Value, right: Value, sign: str) -> Value:
    if sign in (">", ">="):
        left, right, sign = right, left, "<" if sign == ">" else "<="
    if sign == "<>":
        return pc.invert(_floating(left, right, "="))
    plain = _PLAIN[sign](left, right)
    # Only NaN differs from what Arrow says, which is false.
    nan = pc.is_nan(right)
    if not _any(nan):
        return plain
    if sign == "=":
        nan = pc.and_(nan, pc.is_nan(left))
    elif sign == "<":
        nan = pc.and_(nan, pc.invert(pc.is_nan(left)))
    else:
        nan = pc.and_(nan, pc.equal(plain, plain))  # NULL beside NULL
    return pc.or_(plain, nan)


def _any(values: Value) -> bool:
    return bool(values.as_py() if isinstance(values, pa.Scalar) else pc.any(values).as_py())


def not_distinct(left: Value, right: Value) -> Value:
    """``left <=> right``: both NULL, or equal; never NULL itself."""
    both = pc.and_(pc.is_null(left), pc.is_null(right))
    return pc.or_(both, pc.fill_null(compare(left, right, sign="="), False))


def is_member(value: Value, *, values: pa.Array) -> Value:
    """``value IN (values)``, of a type that is not floating."""
    found = pc.is_in(value, value_set=values, skip_nulls=True)
    if isinstance(value, pa.Array) and not value.null_count and not values.null_count:
        return found
    unknown = pc.is_null(value)
    if values.null_count:
        unknown = pc.or_(unknown, pc.invert(found))
    return pc.if_else(unknown, pa.scalar(None, pa.bool_()), found)


def holds(value: Value, *, wanted: bool) -> Value:
    """``value IS TRUE``, or ``IS FALSE``; never NULL."""
    return pc.fill_null(pc.equal(value, pa.scalar(wanted)), False)


def matches(text: Value, *, pattern: str) -> Value:
    r"""``text LIKE pattern``, where ``\`` makes the ``_``, ``%`` or ``\`` after it stand for itself."""
    return pc.match_like(text, pattern=pattern)


def compare_nested(left: pa.Array, right: pa.Array, *, sign: str) -> pa.Array:
    """``=`` or ``<>`` of values of ROW, ARRAY or MAP: NULL for NULL, which inside of a value equals itself."""
    both = numbered(pa.concat_arrays([left, right.cast(left.type)]))
    same = pc.equal(both[: len(left)], both[len(left) :])
    return same if sign == "=" else pc.invert(same)
