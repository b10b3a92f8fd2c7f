"""Whether an expression over a relation can be NULL, as far as declarations and conditions tell.

Columns declared NOT NULL are trusted, as in Flink. What is not known not to be NULL may be NULL.
"""

from __future__ import annotations

from typing import assert_never

from planner.context import Context
from planner.expressions.typed import Call, Expr, Literal, Ref, conjuncts
from planner.relations import Aggregate, Cached, Calc, Correlate, Expand, Join, LookupJoin, Relation, Scan, Sort, Union
from plans.declarations.types import parse_type

__all__ = ["may_be_null"]

_NULL_ONLY_FROM_NULL = frozenset(("CAST", "+", "-", "*", "NEGATE", "upper", "lower", "trim", "length", "abs"))


def may_be_null(context: Context, relation: Relation, expression: Expr) -> bool:
    """Whether ``expression``, over the fields of ``relation``, can be NULL."""
    if isinstance(expression, Literal):
        return expression.text is None
    if isinstance(expression, Call):
        if expression.function == "coalesce":
            return all(may_be_null(context, relation, a) for a in expression.args)
        known = expression.function in _NULL_ONLY_FROM_NULL
        return not known or any(may_be_null(context, relation, a) for a in expression.args)
    return not isinstance(expression, Ref) or _column_may_be_null(context, relation, expression.field.id)


def _column_may_be_null(context: Context, relation: Relation, field: int) -> bool:
    if isinstance(relation, Scan):
        name = next(f.name for f in relation.fields if f.id == field)
        declared = next(c.type for c in context.catalog.tables[relation.table].table.columns if c.name == name)
        return parse_type(declared).nullable
    if isinstance(relation, Calc):
        expression = next(i.expr for i in relation.items if i.field.id == field)
        if isinstance(expression, Ref) and any(
            isinstance(c, Call) and c.function == "IS NOT NULL" and c.args == (expression,)
            for c in conjuncts(relation.filter)
        ):
            return False
        return may_be_null(context, relation.input, expression)
    if isinstance(relation, Sort | Cached):
        return _column_may_be_null(context, relation.input, field)
    if isinstance(relation, Aggregate):
        if any(f.id == field for f in relation.keys):
            return _column_may_be_null(context, relation.input, field)
        return next(c.function for c in relation.calls if c.field.id == field) != "COUNT"
    if isinstance(relation, Expand):
        if field == relation.group_id.id:
            return False
        if any(f.id == field for f in relation.passed):
            return _column_may_be_null(context, relation.input, field)
        kept = next((i.expr for i in relation.common if i.field.id == field), None)
        return kept is None or may_be_null(context, relation.input, kept)
    if isinstance(relation, Join):
        expression = next(i.expr for i in relation.items if i.field.id == field)
        if not isinstance(expression, Ref):
            return True
        padded = {"left": (False, True), "right": (True, False), "full": (True, True)}
        sides = zip((relation.left, relation.right), padded.get(relation.join_type, (False, False)), strict=True)
        for side, pads in sides:
            if any(f.id == expression.field.id for f in side.fields):
                return pads or _column_may_be_null(context, side, expression.field.id)
        return True
    if isinstance(relation, LookupJoin | Correlate):
        passed = any(f.id == field for f in relation.input.fields)
        return not passed or _column_may_be_null(context, relation.input, field)
    if isinstance(relation, Union):
        return True
    assert_never(relation)
