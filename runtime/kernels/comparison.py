"""Comparisons of values of one type: text and bytes byte by byte, FALSE before TRUE, numbers by value.

0.0 equals -0.0. All NaNs are equal, and greater than any other number. Spark compares so, and so do keys in state. The
functions take arrays and scalars, and return true, false or NULL for each row. State keeps FLOAT and DOUBLE in a normal
form, with no -0.0 and a single NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from hintplan.runtime.kernels.conversion import Value
from hintplan.runtime.state.nested_values import nested_numbers

_PLAIN: dict[str, Callable[[Value, Value], Value]] = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def compare(left: Value, right: Value, *, sign: str) -> Value:
    """Return ``left sign right``, both of one type."""
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
    # Arrow returns false for NaN; all other results are right.
    nan = pc.is_nan(right)
    if not _any(nan):
        return plain
    if sign == "=":
        nan = pc.and_(nan, pc.is_nan(left))
    elif sign == "<":
        nan = pc.and_(nan, pc.invert(pc.is_nan(left)))
    else:
        nan = pc.and_(nan, pc.equal(plain, plain))  # NULL if the other side is NULL
    return pc.or_(plain, nan)


def _any(values: Value) -> bool:
    return bool(values.as_py() if isinstance(values, pa.Scalar) else pc.any(values).as_py())


def not_distinct(left: Value, right: Value) -> Value:
    """Return ``left <=> right``: true if both are NULL or equal; never NULL."""
    both = pc.and_(pc.is_null(left), pc.is_null(right))
    return pc.or_(both, pc.fill_null(compare(left, right, sign="="), False))


def is_member(value: Value, *, values: pa.Array) -> Value:
    """Return ``value IN (values)``, for a type that is not floating-point."""
    is_in = pc.is_in(value, value_set=values, skip_nulls=True)
    if isinstance(value, pa.Array) and not value.null_count and not values.null_count:
        return is_in
    unknown = pc.is_null(value)
    if values.null_count:
        unknown = pc.or_(unknown, pc.invert(is_in))
    return pc.if_else(unknown, pa.scalar(None, pa.bool_()), is_in)


def holds(value: Value, *, wanted: bool) -> Value:
    """Return ``value IS TRUE`` or ``value IS FALSE``; never NULL."""
    return pc.fill_null(pc.equal(value, pa.scalar(wanted)), False)


def matches(text: Value, *, pattern: str) -> Value:
    r"""Return ``text LIKE pattern``, where ``\`` escapes the ``_``, ``%`` or ``\`` after it."""
    return pc.match_like(text, pattern=pattern)


def compare_nested(left: pa.Array, right: pa.Array, *, sign: str) -> pa.Array:
    """Return ``=`` or ``<>`` of ROWs, ARRAYs or MAPs: NULL for NULL, but NULL inside a value equals NULL."""
    both = nested_numbers(pa.concat_arrays([left, right.cast(left.type)]))
    same = pc.equal(both[: len(left)], both[len(left) :])
    return same if sign == "=" else pc.invert(same)


def normalise_floats(rows: pa.Table) -> pa.Table:
    """Replace -0.0 with 0.0 and every NaN with a single one, in FLOAT and DOUBLE columns, except in nested values.

    Keys, rows of a join and retracted rows must have equal bits where their values are equal. Rows are normalised where
    they enter a stateful operator. In batch jobs, :mod:`hintplan.runtime.expressions.comparable` normalises the
    input of Spark's operators.

    >>> normalise_floats(pa.table({"d": [-0.0, 1.5, None]}))["d"].to_pylist()
    [0.0, 1.5, None]
    """
    for index, field in enumerate(rows.schema):
        if pa.types.is_floating(field.type):
            column = pc.add(rows.column(index), pa.scalar(0, pa.int8()).cast(field.type))  # -0.0 + 0.0 is 0.0
            is_nan = pc.is_nan(column)
            if pc.any(is_nan).as_py():
                column = pc.if_else(is_nan, pa.scalar(math.nan, field.type), column)
            rows = rows.set_column(index, field, column)
    return rows
