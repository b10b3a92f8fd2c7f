"""Operators on typed expressions: accepted operands, result types, and Spark expressions with Flink's results.

This module knows no syntax trees. Integer division drops the remainder. Dividing a DOUBLE by zero gives an infinity or
NaN. A string literal that is compared with a date or time becomes one itself.

>>> from hintplan.planner.expressions.typed import INT, literal
>>> str(arithmetic(Source(text=""), "/", literal(7, INT), literal(2, INT), 0).type)
'INT'
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hintplan.planner.expressions.coercion import (
    arithmetic_type,
    cast,
    coerce,
    common_data_type,
    common_moment,
    decimal_type,
    may_overflow,
    remainder_type,
)
from hintplan.planner.expressions.comparisons import compared, sorted_entries
from hintplan.planner.expressions.literals import temporal_literal
from hintplan.planner.expressions.typed import BIGINT, BOOLEAN, INT, NULL, STRING, Expr, Literal, call, literal
from hintplan.planner.syntax.source import Source
from hintplan.plans.declarations.types import DataType
from hintplan.plans.errors import SqlError

_EXACT_IN_FLOAT = 1 << 24
_EQUALITIES = ("'='", "'<>'", "IN", "IS DISTINCT FROM", "INTERSECT", "EXCEPT")
"""The comparisons that accept values of nested types, which have no order."""
_EQUAL_TO = ("'='", "'<>'", "IN", "NOT IN", "USING")
_TIMES = ("DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ")
_OR_NULL = {"+": "try_add", "-": "try_subtract", "*": "try_multiply"}


def mismatch(source: Source, what: str, left: DataType, right: DataType, offset: int) -> SqlError:
    """Return the error for an operator that does not accept these two types."""
    if "NULL" in (left.root, right.root):
        return source.error(f"{what} needs a typed operand, not NULL", offset, "write CAST(NULL AS <type>)")
    target = right if right.root != "STRING" else left
    advice = f"convert one side, such as CAST(... AS {target.as_nullable()})"
    if what in ("'+'", "'-'") and left.root in _TIMES and (right.is_text or right.is_numeric):
        advice = "write a duration as an interval, such as INTERVAL '5' SECOND"
    return source.error(f"{what} does not take {left.as_nullable()} and {right.as_nullable()}", offset, advice)


def comparison_operands(source: Source, what: str, values: tuple[Expr, ...], offset: int) -> tuple[Expr, ...]:
    """Return the operands of a comparison, converted to a common type."""
    types = [v.type for v in values]
    temporal = next((x for x in types if x.root in ("DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ")), None)
    operands: list[Expr] = list(values)
    if temporal is not None:
        for i, value in enumerate(values):
            if isinstance(value, Literal) and value.type.is_text and value.text is not None:
                operands[i] = temporal_literal(source, temporal.root, value.text, value.offset)
    operands = _in_session_zone(operands)
    common = common_data_type([v.type for v in operands]) or _moment(what, operands)
    for value in values:
        if value.type.is_nested and what not in _EQUALITIES:
            message = f"{what} does not take {value.type.root} values"
            advice = "compare the fields" if value.type.root == "ROW" else "compare scalar columns"
            raise source.error(message, offset, advice)
    if common is None:
        other = next(v.type for v in operands if common_data_type((operands[0].type, v.type)) is None)
        raise mismatch(source, what, operands[0].type, other, offset)
    if common == NULL:
        raise source.error(f"{what} needs a typed operand, not NULL", offset, "write IS NULL or CAST(NULL AS <type>)")
    if common.root == "FLOAT":  # Spark would compare a FLOAT and an integer as DOUBLE
        return tuple(v if _is_float(v) else cast(v, common, v.offset) for v in operands)
    if common.root in ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ"):
        roots = {v.type.root for v in operands}
        return tuple(coerce(v, common) if len(roots - {"NULL"}) > 1 else v for v in operands)
    if common.is_nested:
        return tuple(coerce(v, common) for v in operands)
    return tuple(operands)


def mixed_moments(values: Sequence[Expr]) -> bool:
    """Return True if ``values`` have the types TIMESTAMP and TIMESTAMP_LTZ, and no others."""
    return common_moment([v.type for v in _in_session_zone(values)]) is not None


def _moment(what: str, values: Sequence[Expr]) -> DataType | None:
    """Return the type in which TIMESTAMP and TIMESTAMP_LTZ are compared, or None if there are other types.

    A TIMESTAMP is converted in the session time zone. As in Flink, an equality uses the type of its left side, and any
    other comparison the type of its right side. The choice matters where clocks are set back or forward.
    """
    common = common_moment([v.type for v in values])
    if common is None:
        return None
    side = values[0 if what in _EQUAL_TO else -1]
    return replace(common, root="TIMESTAMP" if side.type.root == "TIMESTAMP" else "TIMESTAMP_LTZ")


def _is_float(value: Expr) -> bool:
    """Return True if every possible value is a FLOAT, or converts to FLOAT without rounding."""
    if isinstance(value, Literal) and value.text is not None and value.type.is_integer:
        return abs(int(value.text)) <= _EXACT_IN_FLOAT
    return value.type.root not in ("INT", "BIGINT")


def is_not_distinct(source: Source, what: str, a: Expr, b: Expr, offset: int) -> Expr:
    """Compile ``a IS NOT DISTINCT FROM b``: TRUE if both are NULL or equal; never NULL itself."""
    a, b = (sorted_entries(v) if v.type.has_entries else v for v in comparison_operands(source, what, (a, b), offset))
    both = call("AND", tuple(call("IS NULL", (v,), BOOLEAN, offset) for v in (a, b)), BOOLEAN, offset)
    return call("coalesce", (compared("=", (a, b), offset), both), BOOLEAN, offset)


def _in_session_zone(values: Sequence[Expr]) -> list[Expr]:
    """Read TIMESTAMP literals in the session time zone if ``values`` contain a TIMESTAMP_LTZ."""
    if all(v.type.root != "TIMESTAMP_LTZ" for v in values):
        return list(values)
    return [
        replace(v, type=replace(v.type, root="TIMESTAMP_LTZ"))
        if isinstance(v, Literal) and v.type.root == "TIMESTAMP"
        else v
        for v in values
    ]


def arithmetic(source: Source, operator: str, left: Expr, right: Expr, offset: int) -> Expr:
    """Compile ``left operator right`` with Flink's result type; two integers divide without remainder."""
    result = arithmetic_type(operator, left.type, right.type)
    if operator == "%" and not result.is_integer and result.root != "DECIMAL":
        raise source.error(f"'%' does not take {result}", offset, "use integers or decimals")
    if operator == "%" and "DECIMAL" in (left.type.root, right.type.root):
        operands = tuple(cast(v, decimal_type(v.type), offset) for v in (left, right))
        return cast(call("%", operands, remainder_type(left.type, right.type), offset), result, offset)
    if result.is_integer:
        if operator == "/":
            quotient = call("div", (left, right), BIGINT, offset)
            return quotient if result == BIGINT else call("CAST", (quotient,), result, offset)
        if operator == "%":  # the result has the second operand's type
            remainder = call("%", (left, right), result, offset)
            wanted = right.type.as_nullable()
            return remainder if wanted == result else call("CAST", (remainder,), wanted, offset)
        return call(operator, (left, right), result, offset)
    if result.root == "DECIMAL":
        operands = tuple(cast(v, decimal_type(v.type), offset) for v in (left, right))
        if may_overflow(operator, left.type, right.type):  # Flink returns NULL, where Spark fails
            operator = _OR_NULL[operator]
        return call(operator, operands, result, offset)
    operands = (coerce(left, result), coerce(right, result))
    if operator == "/" and not (isinstance(right, Literal) and float(right.text or 0) != 0):
        # Flink returns an infinity or NaN, where Spark fails
        infinity = call("CAST", (literal("Infinity", STRING),), result, offset)
        if result.root == "DOUBLE" and left.type.root == "DECIMAL":
            operands = (cast(left, result, offset), operands[1])
        is_zero = call("=", (right, literal(0, INT)), BOOLEAN, offset)
        unbounded = call("*", (operands[0], infinity), result, offset)
        return call("CASE", (is_zero, unbounded, call("/", operands, result, offset)), result, offset)
    return call(operator, operands, result, offset)


def _is_whole(interval: Expr) -> bool:
    return isinstance(interval, Literal) and "." not in (interval.text or "")


def shift_time(source: Source, operator: str, left: Expr, right: Expr, offset: int) -> Expr:
    """Compile ``left operator right`` of a date or time and an interval; raise SqlError for other operands."""
    if left.type.root == "INTERVAL" and operator == "+":
        left, right = right, left
    unit = (right.text or "").split()[-1] if isinstance(right, Literal) and right.type.root == "INTERVAL" else ""
    is_time = left.type.root in ("TIMESTAMP", "TIMESTAMP_LTZ")
    if (
        left.type.root == "TIME"
        and unit in ("DAY", "HOUR", "MINUTE", "SECOND")
        and operator in "+-"
        and _is_whole(right)
    ):
        # The result wraps around at midnight, as in Flink.
        moment = cast(left, DataType(root="TIMESTAMP", precision=3), offset)
        return cast(call(operator, (moment, right), moment.type, offset), left.type, offset)
    is_date = left.type.root == "DATE" and unit in ("DAY", "MONTH", "YEAR")
    if not unit or operator not in "+-" or not (is_time or is_date):
        raise mismatch(source, f"'{operator}'", left.type, right.type, offset)
    return call(operator, (left, right), left.type, offset)
