"""PERCENTILE(x, p): ARRAY_AGG keeps the values as DOUBLEs, and they are sorted above the aggregate.

As in Flink, a percentile between two values is interpolated.
"""

from __future__ import annotations

from decimal import Decimal

from sqlglot import exp

from hintplan.planner.expressions.coercion import cast
from hintplan.planner.expressions.nested_parts import is_constructor
from hintplan.planner.expressions.typed import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INT,
    AggregateCallExpr,
    Call,
    Expr,
    Literal,
    call,
    literal,
)
from hintplan.planner.syntax.dialect import offset_of
from hintplan.planner.translation.aggregates import inside
from hintplan.planner.translation.translator import Translator
from hintplan.plans.declarations.types import DataType

_VALUES = DataType(root="ARRAY", children=(DOUBLE,))


def translate_percentile(t: Translator, node: exp.Expr, condition: exp.Expr | None) -> Expr:
    """Translate a call of PERCENTILE to a DOUBLE, or to an ARRAY of DOUBLEs for an ARRAY of percentages."""
    offset, arguments = offset_of(node), node.expressions
    inner = inside(t, "PERCENTILE", offset)
    distinct = len(arguments) == 1 and isinstance(arguments[0], exp.Distinct)
    if distinct:
        arguments = arguments[0].expressions
    if len(arguments) != 2:
        advice = "write PERCENTILE(x, 0.5)" + (": repeat rows by UNNEST" if len(arguments) == 3 else "")
        message = f"PERCENTILE takes a value and a percentage, found {len(arguments)} arguments"
        raise t.source.error(message, offset, advice)
    value, wanted = (inner.expression(argument) for argument in arguments)
    if not value.type.is_numeric:
        message = f"PERCENTILE takes numbers, found {value.type.as_nullable()}"
        raise t.source.error(message, value.offset or offset, "convert the argument with CAST")
    several = wanted.type.root == "ARRAY" and is_constructor(wanted)
    parts = wanted.args if several and isinstance(wanted, Call) else (wanted,)
    percentages = [_percentage(t, part, offset) for part in parts]
    where = call("IS NOT NULL", (value,), BOOLEAN, offset)
    if condition is not None:
        where = call("AND", (where, inner.condition(condition)), BOOLEAN, offset)
    kept = AggregateCallExpr(
        function="ARRAY_AGG",
        arguments=(cast(value, DOUBLE, offset),),
        distinct=distinct,
        filter=where,
        type=_VALUES,
        offset=offset,
    )
    values = call("array_sort", (kept,), _VALUES, offset)
    percentiles = tuple(_at(values, percentage, offset) for percentage in percentages)
    if not several:
        return percentiles[0]
    none = call("IS NULL", (kept,), BOOLEAN, offset)
    return call("CASE", (none, literal(None, _VALUES), call("array", percentiles, _VALUES, offset)), _VALUES, offset)


def _percentage(t: Translator, expression: Expr, offset: int) -> Decimal:
    place = expression.offset or offset
    if (
        isinstance(expression, Call) and expression.function == "CAST"
    ):  # the ARRAY constructor casts its elements to their common type
        (expression,) = expression.args
    is_number = isinstance(expression, Literal) and expression.type.is_numeric and expression.text is not None
    percentage = Decimal(expression.text or "0") if is_number and isinstance(expression, Literal) else Decimal(-1)
    if not 0 <= percentage <= 1:
        message = "a percentage of PERCENTILE must be a literal from 0 to 1"
        raise t.source.error(message, place, "write 0.5 for the median")
    return percentage


def _at(values: Expr, percentage: Decimal, offset: int) -> Expr:
    """Return the value at ``percentage`` of the way from the first to the last of the sorted ``values``.

    As in Flink, positions count from 1, and the weights of both neighbours are computed from positions. The last digits
    of the result depend on this.
    """
    one = literal(1, INT)
    last = call("-", (call("size", (values,), INT, offset), one), INT, offset)
    way = call("*", (cast(last, DOUBLE, offset), Literal(text=str(percentage), type=DOUBLE)), DOUBLE, offset)
    place = call("+", (way, one), DOUBLE, offset)
    ends = [call(name, (place,), BIGINT, offset) for name in ("floor", "ceil")]
    indexes = (call("-", (cast(end, INT, offset), one), INT, offset) for end in ends)
    low, high = (call("get", (values, index), DOUBLE, offset) for index in indexes)
    if percentage in (0, 1):
        return low
    shares = (
        call("-", (cast(ends[1], DOUBLE, offset), place), DOUBLE, offset),
        call("-", (place, cast(ends[0], DOUBLE, offset)), DOUBLE, offset),
    )
    weighted = tuple(call("*", pair, DOUBLE, offset) for pair in zip(shares, (low, high), strict=True))
    is_exact = call("=", (ends[0], ends[1]), BOOLEAN, offset)
    return call("CASE", (is_exact, low, call("+", weighted, DOUBLE, offset)), DOUBLE, offset)
