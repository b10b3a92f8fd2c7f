"""CAST and TRY_CAST between numbers with Flink's results: a value out of range does not fail, unlike in Spark.

Integers wrap around at the width of the new type. A FLOAT or DOUBLE becomes the nearest INT or BIGINT, and NaN becomes
0; for narrower types, the INT wraps around. A number with too many digits for a DECIMAL becomes NULL. Conversions that
the planner inserts always fit, and use :func:`hintplan.planner.expressions.coercion.cast`.

>>> from hintplan.planner.expressions.typed import BIGINT, INT, Field, FieldRef
>>> from hintplan.planner.expressions.spark_text import to_spark_sql
>>> n = FieldRef(field=Field(id=1, name="n", type=BIGINT))
>>> to_spark_sql(flink_cast(n, INT, 0), {1: "n"})
'CAST(shiftright(shiftleft(n, 32), 32) AS INT)'
"""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal

from hintplan.planner.expressions.coercion import cast, castable_type, implicitly_assignable
from hintplan.planner.expressions.nested_parts import (
    cast_nested,
    field_at,
    fields,
    is_constructor,
    is_null,
    parts_with_types,
    text_of_nested,
)
from hintplan.planner.expressions.typed import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    FIELD,
    INT,
    NULL,
    STRING,
    Call,
    Expr,
    Field,
    FieldRef,
    Literal,
    call,
    literal,
)
from hintplan.plans.declarations.types import DataType

_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_DAY = r"\s*[0-9]{4}(-[0-9]{1,2}(-[0-9]{1,2})?)?(\s.*)?"
_MOMENT = "[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}( [0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}([.][0-9]{0,9})?)?"
_SHAPES = {"DATE": _DAY, "TIMESTAMP": _MOMENT, "TIMESTAMP_LTZ": _MOMENT}
"""The texts that Flink casts to dates and timestamps; Spark accepts others, such as ``2024-02-29T10:00``."""

_SAFE_DIGITS = {"TINYINT": 2, "SMALLINT": 4, "INT": 9, "BIGINT": 18}
"""The number of decimal digits that always fit the type."""


def flink_cast(value: Expr, target: DataType, offset: int, *, function: str = "CAST") -> Expr:
    """Compile ``CAST(value AS target)``, or TRY_CAST, of a query; the types must be castable."""
    source, target = value.type.as_nullable(), target.as_nullable()
    if source != target and target.is_nested and not is_null(value):
        return cast_nested(value, target, offset, flink_cast)
    if source.is_nested and target.is_text:
        return cast(text_of_nested(value, offset, flink_cast), target, offset)
    if source == target or not (source.is_numeric and target.is_numeric) or _fits(value, target):
        return cast(value, target, offset, function=function)
    if target.is_integer:
        if source.is_integer:
            return _wrapped(value, target, offset)
        if source.root == "DECIMAL":
            return _from_decimal(value, target, offset, function)
        whole = target if target in (INT, BIGINT) else INT
        return _wrapped(_nearest(value, whole, offset), target, offset)
    if target.root == "DECIMAL" and not implicitly_assignable(source, target):
        function = "TRY_CAST"
    return cast(value, target, offset, function=function)


def is_time(text: str, target: DataType) -> bool:
    """Return True if ``text`` has a format that Flink casts to ``target``; the date itself may still not exist."""
    return re.fullmatch(f"(?s){_SHAPES[target.root]}", text) is not None


def time_of_text(text: Expr, target: DataType, offset: int, *, function: str) -> Expr:
    """Return the cast of ``text`` to a date or timestamp.

    A text that Flink does not accept gets a ``?`` in front, so that Spark does not accept it either.
    """
    other = literal(f"(?s)^(?!{_SHAPES[target.root]}(?!.))", STRING)
    marked = call("regexp_replace", (text, other, literal("?", STRING)), STRING, offset)
    return cast(marked, target, offset, function=function)


def castable(value: Expr, target: DataType, *, function: str = "CAST") -> bool:
    """Return True if :func:`flink_cast` can compile the cast of ``value``.

    Unless a ROW, ARRAY or MAP is constructed in the expression itself, Spark's cast must be right for all its parts.
    """
    source, target = value.type.as_nullable(), target.as_nullable()
    if source in (NULL, target) or is_null(value) or not (source.is_nested or target.is_nested):
        return castable_type(source, target)
    if source.is_nested and target.is_text:
        return _has_text(value)
    if source.root != target.root or len(source.children) != len(target.children) or function != "CAST":
        return False
    if target.root == "MULTISET":  # a cast could make elements equal, whose counts would then have to be added
        return implicitly_assignable(source, target)
    if is_constructor(value):
        return all(castable(part, kind) for part, kind in parts_with_types(value, target))
    return all(map(_is_plain, source.children, target.children))


def _has_text(value: Expr) -> bool:
    """Return True if :mod:`hintplan.planner.expressions.nested_parts` can compile the text of a ROW or an ARRAY."""
    if value.type.root == "ARRAY":
        return castable(value, DataType(root="ARRAY", children=(STRING,)))
    return value.type.root == "ROW" and all(castable(part, STRING) for part in fields(value, 0))


def _is_plain(source: DataType, target: DataType) -> bool:
    """Return True if Spark's cast has Flink's results for every value in a ROW, ARRAY or MAP."""
    whole = FieldRef(field=Field(id=0, name="", type=source))
    if not castable(whole, target):
        return False
    converted = whole if source == target else flink_cast(whole, target, 0)
    return converted == whole or (
        isinstance(converted, Call) and converted.function == "CAST" and converted.args == (whole,)
    )


def simplify_casts(expression: Expr) -> Expr:
    """Simplify ``expression``: read fields of constructed ROWs directly, and move casts into constructed values."""
    if not isinstance(expression, Call):
        return expression
    simplified = replace(expression, args=tuple(map(simplify_casts, expression.args)))
    if simplified.function == "CAST" and is_constructor(simplified.args[0]):
        return flink_cast(simplified.args[0], simplified.type, simplified.offset)
    if simplified.function == FIELD and is_constructor(simplified.args[0]) and isinstance(simplified.args[1], Literal):
        return field_at(
            simplified.args[0], simplified.args[0].type.names.index(simplified.args[1].text or ""), simplified.offset
        )
    return simplified


def _fits(value: Expr, target: DataType) -> bool:
    """Return True if ``value`` is a constant that fits ``target``."""
    if not isinstance(value, Literal) or value.text is None:
        return False
    size = abs(Decimal(value.text))
    if target.is_integer:
        return size < 1 << (_BITS[target.root] - 1)
    return target.root == "DECIMAL" and size < 10 ** ((target.precision or 0) - (target.scale or 0)) - 1


def _wrapped(value: Expr, target: DataType, offset: int) -> Expr:
    """Keep the lowest bits of an integer."""
    width = 64 if value.type.root == "BIGINT" else 32
    spare = literal(width - _BITS[target.root], INT)
    if _BITS[target.root] >= _BITS[value.type.root]:
        return cast(value, target, offset)
    kind = BIGINT if width == 64 else INT
    shifted = call("shiftright", (call("shiftleft", (value, spare), kind, offset), spare), kind, offset)
    return call("CAST", (shifted,), target, offset)


def _from_decimal(value: Expr, target: DataType, offset: int, function: str) -> Expr:
    digits = (value.type.precision or 0) - (value.type.scale or 0)
    beyond = digits > _SAFE_DIGITS["BIGINT"]
    if digits <= _SAFE_DIGITS[target.root]:
        return cast(value, target, offset, function=function)
    if beyond and target == BIGINT:
        return _lowest_64_bits(value, offset)
    if beyond:  # the remainder has the same lowest bits
        value = call("%", (value, literal(1 << 32, BIGINT)), value.type, offset)
    return _wrapped(cast(value, BIGINT, offset), target, offset)


def _lowest_64_bits(value: Expr, offset: int) -> Expr:
    """Convert a DECIMAL of any size to a BIGINT, from two halves whose sum wraps around, as sums in plans do."""
    whole, half = literal(f"{1 << 64}", _of_digits(20)), literal(f"{1 << 32}", BIGINT)
    high = call("div", (call("%", (value, whole), value.type, offset), half), BIGINT, offset)
    low = cast(call("%", (value, half), value.type, offset), BIGINT, offset)
    return call("+", (call("shiftleft", (high, literal(32, INT)), BIGINT, offset), low), BIGINT, offset)


def _of_digits(count: int) -> DataType:
    return DataType(root="DECIMAL", precision=count, scale=0)


def _nearest(value: Expr, target: DataType, offset: int) -> Expr:
    """Return the INT or BIGINT nearest to a FLOAT or DOUBLE, rounded towards zero."""
    most = (1 << (_BITS[target.root] - 1)) - 1
    low, high, zero = (literal(f"{bound}", BIGINT) for bound in (-most - 1, most, 0))
    parts: tuple[Expr, ...] = (
        *(call("isnan", (value,), BOOLEAN, offset), zero),
        *(call("<=", (value, low), BOOLEAN, offset), low),
        *(call(">=", (value, high), BOOLEAN, offset), high),
        value,
    )
    return call("CAST", (call("CASE", parts, DOUBLE, offset),), target, offset)
