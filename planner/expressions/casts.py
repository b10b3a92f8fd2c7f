"""CAST and TRY_CAST between numbers as Flink has them: what does not fit does not fail.

Integers wrap around at the width of the new type, a FLOAT or DOUBLE becomes the nearest INT or BIGINT there is (NaN
becomes 0, and what is narrower wraps around from INT), and a DECIMAL of too many digits is NULL. Spark would fail.
Conversions that the planner makes by itself always fit, and are :func:`hintplan.planner.expressions.coercion.cast`.

>>> from hintplan.planner.expressions.typed import BIGINT, INT, Field, Ref
>>> from hintplan.planner.expressions.spark_text import spark_text
>>> n = Ref(field=Field(id=1, name="n", type=BIGINT))
>>> spark_text(flink_cast(n, INT, 0), {1: "n"})
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
)
from hintplan.planner.expressions.nested_text import text_of_nested
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
    Literal,
    Ref,
    call,
    literal,
)
from hintplan.plans.declarations.types import DataType

_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_DAY = r"\s*[0-9]{4}(-[0-9]{1,2}(-[0-9]{1,2})?)?(\s.*)?"
_MOMENT = "[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}( [0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}([.][0-9]{0,9})?)?"
_SHAPES = {"DATE": _DAY, "TIMESTAMP": _MOMENT, "TIMESTAMP_LTZ": _MOMENT}
"""The texts that Flink casts to days and times; Spark takes others, such as ``2024-02-29T10:00``."""

_SAFE_DIGITS = {"TINYINT": 2, "SMALLINT": 4, "INT": 9, "BIGINT": 18}
"""How many digits fit, whatever they are."""


def flink_cast(value: Expr, target: DataType, offset: int, *, function: str = "CAST") -> Expr:
    """``CAST(value AS target)``, or TRY_CAST, as a query says it; the types must be castable."""
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
    """Return whether Flink casts ``text`` to the day or time ``target``, unless there is no such day."""
    return re.fullmatch(f"(?s){_SHAPES[target.root]}", text) is not None


def time_of_text(text: Expr, target: DataType, offset: int, *, function: str) -> Expr:
    """Return the cast of ``text`` to a day or a time; what Flink takes for none gets a ``?`` before it, and fails."""
    other = literal(f"(?s)^(?!{_SHAPES[target.root]}(?!.))", STRING)
    marked = call("regexp_replace", (text, other, literal("?", STRING)), STRING, offset)
    return cast(marked, target, offset, function=function)


def castable(value: Expr, target: DataType, *, function: str = "CAST") -> bool:
    """Whether :func:`flink_cast` can write the cast of ``value``.

    Of a ROW, ARRAY or MAP that is not put together where it is cast, all parts must be converted by a cast of Spark's.
    """
    source, target = value.type.as_nullable(), target.as_nullable()
    if source in (NULL, target) or is_null(value) or not (source.is_nested or target.is_nested):
        return castable_type(source, target)
    if source.is_nested and target.is_text:
        return _has_text(value)
    if source.root != target.root or len(source.children) != len(target.children) or function != "CAST":
        return False
    if target.root == "MULTISET":  # elements that become equal would have to be counted together
        return implicitly_assignable(source, target)
    if is_constructor(value):
        return all(castable(part, kind) for part, kind in parts_with_types(value, target))
    return all(map(_is_plain, source.children, target.children))


def _has_text(value: Expr) -> bool:
    """Whether :mod:`hintplan.planner.expressions.nested_text` can write a ROW or an ARRAY."""
    if value.type.root == "ARRAY":
        return castable(value, DataType(root="ARRAY", children=(STRING,)))
    return value.type.root == "ROW" and all(castable(part, STRING) for part in fields(value, 0))


def _is_plain(source: DataType, target: DataType) -> bool:
    """Whether Spark's own cast does with each value in a ROW, ARRAY or MAP what Flink's does."""
    whole = Ref(field=Field(id=0, name="", type=source))
    if not castable(whole, target):
        return False
    found = whole if source == target else flink_cast(whole, target, 0)
    return found == whole or (isinstance(found, Call) and found.function == "CAST" and found.args == (whole,))


def settled(expression: Expr) -> Expr:
    """``expression`` without parts of a ROW that is put together there, and with what casts of such values come to."""
    if not isinstance(expression, Call):
        return expression
    found = replace(expression, args=tuple(map(settled, expression.args)))
    if found.function == "CAST" and is_constructor(found.args[0]):
        return flink_cast(found.args[0], found.type, found.offset)
    if found.function == FIELD and is_constructor(found.args[0]) and isinstance(found.args[1], Literal):
        return field_at(found.args[0], found.args[0].type.names.index(found.args[1].text or ""), found.offset)
    return found


def _fits(value: Expr, target: DataType) -> bool:
    """Whether ``value`` is a constant that ``target`` holds."""
    if not isinstance(value, Literal) or value.text is None:
        return False
    size = abs(Decimal(value.text))
    if target.is_integer:
        return size < 1 << (_BITS[target.root] - 1)
    return target.root == "DECIMAL" and size < 10 ** ((target.precision or 0) - (target.scale or 0)) - 1


def _wrapped(value: Expr, target: DataType, offset: int) -> Expr:
    """The lowest bits of an integer."""
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
    if beyond:  # what remains has the same lowest bits
        value = call("%", (value, literal(1 << 32, BIGINT)), value.type, offset)
    return _wrapped(cast(value, BIGINT, offset), target, offset)


def _lowest_64_bits(value: Expr, offset: int) -> Expr:
    """A DECIMAL of any size as a BIGINT, from two halves; the sum of a plan wraps around."""
    whole, half = literal(f"{1 << 64}", _of_digits(20)), literal(f"{1 << 32}", BIGINT)
    high = call("div", (call("%", (value, whole), value.type, offset), half), BIGINT, offset)
    low = cast(call("%", (value, half), value.type, offset), BIGINT, offset)
    return call("+", (call("shiftleft", (high, literal(32, INT)), BIGINT, offset), low), BIGINT, offset)


def _of_digits(count: int) -> DataType:
    return DataType(root="DECIMAL", precision=count, scale=0)


def _nearest(value: Expr, target: DataType, offset: int) -> Expr:
    """The INT or BIGINT nearest to a FLOAT or DOUBLE, towards zero."""
    most = (1 << (_BITS[target.root] - 1)) - 1
    low, high, zero = (literal(f"{bound}", BIGINT) for bound in (-most - 1, most, 0))
    parts: tuple[Expr, ...] = (
        *(call("isnan", (value,), BOOLEAN, offset), zero),
        *(call("<=", (value, low), BOOLEAN, offset), low),
        *(call(">=", (value, high), BOOLEAN, offset), high),
        value,
    )
    return call("CAST", (call("CASE", parts, DOUBLE, offset),), target, offset)
