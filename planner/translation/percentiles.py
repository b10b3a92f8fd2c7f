"""PERCENTILE(x, p): ARRAY_AGG keeps the values as DOUBLEs, and above the aggregate they are put in order.

Where no value stands at the place asked for, it is between its neighbours, in proportion, as in Flink.
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


def translate(t: Translator, node: exp.Expr, condition: exp.Expr | None) -> Expr:
    """What a call of PERCENTILE finds in its group: a DOUBLE, or an ARRAY of one for each of several percentages."""
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
    found = tuple(_at(values, percentage, offset) for percentage in percentages)
    if not several:
        return found[0]
    none = call("IS NULL", (kept,), BOOLEAN, offset)
    return call("CASE", (none, literal(None, _VALUES), call("array", found, _VALUES, offset)), _VALUES, offset)


def _percentage(t: Translator, expression: Expr, offset: int) -> Decimal:
    place = expression.offset or offset
    if isinstance(expression, Call) and expression.function == "CAST":  # to the type of all elements of an ARRAY
        (expression,) = expression.args
    known = isinstance(expression, Literal) and expression.type.is_numeric and expression.text is not None
    found = Decimal(expression.text or "0") if known and isinstance(expression, Literal) else Decimal(-1)
    if not 0 <= found <= 1:
        message = "a percentage of PERCENTILE must be a literal from 0 to 1"
        raise t.source.error(message, place, "write 0.5 for the median")
    return found


def _at(values: Expr, percentage: Decimal, offset: int) -> Expr:
    """The value at ``percentage`` of the way from the first to the last of ``values``, which are in order.

    Places count from 1, and shares are computed of them, as in Flink, whose last digits depend on it.
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
    there = call("=", (ends[0], ends[1]), BOOLEAN, offset)
    return call("CASE", (there, low, call("+", weighted, DOUBLE, offset)), DOUBLE, offset)
