"""Aggregate functions: which there are, and their result types (Flink's).

>>> str(result_type("AVG", parse_type("INT")))
'INT'
>>> str(result_type("SUM", parse_type("DECIMAL(10, 2)")))
'DECIMAL(38, 2)'
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from planner.dialect import offset_of
from planner.expressions import BIGINT, AggregateCallExpr, Expr, Literal, walk
from plans.types import DataType, parse_type

if TYPE_CHECKING:
    from planner.translation import Translator

__all__ = ["NAMES", "parse_type", "result_type", "translate"]

NAMES = frozenset(("COUNT", "SUM", "AVG", "MIN", "MAX"))
_ORDERED = ("BOOLEAN", "DATE", "TIMESTAMP", "TIMESTAMP_LTZ")


def result_type(function: str, argument: DataType | None) -> DataType | None:
    """The type of ``function(argument)``; None if it does not take such an argument."""
    if function == "COUNT":
        return BIGINT
    if argument is None:
        return None
    argument = argument.as_nullable()
    if function in ("MIN", "MAX"):
        return argument if argument.is_numeric or argument.is_text or argument.root in _ORDERED else None
    if not argument.is_numeric:
        return None
    if argument.root == "DECIMAL":
        scale = argument.scale or 0
        return DataType(root="DECIMAL", precision=38, scale=max(6, scale) if function == "AVG" else scale)
    return argument


def translate(t: Translator, node: exp.Expr, condition: exp.Expr | None) -> Expr:
    """The aggregate call ``node``, with the condition of its FILTER."""
    name, offset = node.name.upper(), offset_of(node)
    if not t.aggregates:
        advice = "put it in SELECT or HAVING" if t.clause != "an aggregate" else "aggregate in a sub-query first"
        raise t.source.error(f"{name} cannot stand in {t.clause}", offset, advice)
    inner = replace(t, aggregates=False, clause="an aggregate")
    arguments, distinct = node.expressions, False
    if len(arguments) == 1 and isinstance(arguments[0], exp.Distinct):
        arguments, distinct = arguments[0].expressions, True
    if len(arguments) != 1:
        raise t.source.error(f"{name} takes one argument, found {len(arguments)}", offset, "aggregate one expression")
    argument: Expr | None = None
    if not isinstance(arguments[0], exp.Star):
        argument = inner.expression(arguments[0])
    elif name != "COUNT" or distinct:
        raise t.source.error(f"{name} does not take '*'", offset, "name a column")
    if name == "COUNT" and isinstance(argument, Literal) and argument.text is not None and not distinct:
        argument = None
    found = result_type(name, argument.type if argument is not None else None)
    nested = argument is not None and argument.type.root in ("ARRAY", "MAP", "ROW", "NULL", "INTERVAL")
    if found is None or nested:
        given = argument.type.as_nullable() if argument is not None else "*"
        raise t.source.error(f"{name} does not take {given}", offset, "convert the argument with CAST")
    where = inner.condition(condition) if condition is not None else None
    if name in ("MIN", "MAX"):
        distinct = False
    return AggregateCallExpr(
        function=name, argument=argument, distinct=distinct, filter=where, type=found, offset=offset
    )


def contains_aggregate(expression: Expr) -> bool:
    """Whether an aggregate call stands anywhere in ``expression``."""
    return any(isinstance(e, AggregateCallExpr) for e in walk(expression))
