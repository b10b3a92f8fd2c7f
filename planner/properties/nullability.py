"""Determines from declarations and conditions if an expression over a relation may be NULL.

Columns declared NOT NULL are trusted, as in Flink. Any expression may be NULL unless this module can exclude it.
"""

from __future__ import annotations

from typing import assert_never

from hintplan.planner.context import Context
from hintplan.planner.expressions.typed import Call, Expr, FieldRef, Literal, factored_conjuncts
from hintplan.planner.relations import (
    LogicalAggregate,
    LogicalCalc,
    LogicalCorrelate,
    LogicalExpand,
    LogicalJoin,
    LogicalLookupJoin,
    LogicalOver,
    LogicalPassthrough,
    LogicalScan,
    LogicalUnion,
    LogicalUnnest,
    LogicalValues,
    LogicalWindowAggregate,
    Relation,
)
from hintplan.plans.declarations.types import parse_type
from hintplan.plans.operators.over_aggregate import NUMBERS, SHARES

_NULL_ONLY_FROM_NULL = frozenset(("CAST", "+", "-", "*", "NEGATE", "upper", "lower", "trim", "length", "abs"))
_NEVER_NULL_OVER = frozenset((*NUMBERS, *SHARES, "COUNT", "NTILE"))


def may_be_null(context: Context, relation: Relation, expression: Expr) -> bool:
    """Return False if ``expression``, over the fields of ``relation``, is never NULL."""
    if isinstance(expression, Literal):
        return expression.text is None
    if isinstance(expression, Call):
        if expression.function == "coalesce":
            return all(may_be_null(context, relation, a) for a in expression.args)
        is_certain = expression.function in _NULL_ONLY_FROM_NULL
        return not is_certain or any(may_be_null(context, relation, a) for a in expression.args)
    if not isinstance(expression, FieldRef):
        return True
    # A column of an outer query block may be NULL.
    is_certain = any(f.id == expression.field.id for f in relation.fields)
    return not is_certain or _column_may_be_null(context, relation, expression.field.id)


def _column_may_be_null(context: Context, relation: Relation, field: int) -> bool:
    match relation:
        case LogicalScan():
            return _of_scan(context, relation, field)
        case LogicalValues():
            place = next(place for place, f in enumerate(relation.fields) if f.id == field)
            # A Values relation without rows is a placeholder for another relation.
            return not relation.rows or any(may_be_null(context, relation, row[place]) for row in relation.rows)
        case LogicalCalc():
            return _of_calc(context, relation, field)
        case LogicalJoin():
            return _of_join(context, relation, field)
        case LogicalLookupJoin() | LogicalCorrelate() | LogicalUnnest():
            passed = any(f.id == field for f in relation.input.fields)
            return not passed or _column_may_be_null(context, relation.input, field)
        case LogicalExpand():
            return _of_expand(context, relation, field)
        case LogicalWindowAggregate() if any(f.id == field for f in relation.of_window):
            return False
        case LogicalAggregate() | LogicalWindowAggregate():
            if any(f.id == field for f in relation.keys):
                return _column_may_be_null(context, relation.input, field)
            return next(c.function for c in relation.calls if c.field.id == field) not in ("COUNT", "COLLECT")
        case LogicalOver() if (call := next((c for c in relation.calls if c.field.id == field), None)) is not None:
            return call.function not in _NEVER_NULL_OVER
        case LogicalUnion():
            return True
        case LogicalPassthrough():
            passed = any(f.id == field for f in relation.input.fields)
            return passed and _column_may_be_null(context, relation.input, field)
        case _:
            assert_never(relation)


def _of_scan(context: Context, scan: LogicalScan, field: int) -> bool:
    name = next(f.name for f in scan.fields if f.id == field)
    declared = next(c.type for c in context.table(scan.table).table.columns if c.name == name)
    return parse_type(declared).nullable


def _of_calc(context: Context, calc: LogicalCalc, field: int) -> bool:
    expression = next(i.expr for i in calc.items if i.field.id == field)
    checked = isinstance(expression, FieldRef) and any(
        isinstance(c, Call) and c.function == "IS NOT NULL" and c.args == (expression,)
        for c in factored_conjuncts(calc.filter)
    )
    return not checked and may_be_null(context, calc.input, expression)


def _of_join(context: Context, join: LogicalJoin, field: int) -> bool:
    expression = next(i.expr for i in join.items if i.field.id == field)
    if not isinstance(expression, FieldRef):
        return True
    padded = {"left": (False, True), "right": (True, False), "full": (True, True)}
    sides = zip((join.left, join.right), padded.get(join.join_type, (False, False)), strict=True)
    for side, pads in sides:
        if any(f.id == expression.field.id for f in side.fields):
            return pads or _column_may_be_null(context, side, expression.field.id)
    return True


def _of_expand(context: Context, expand: LogicalExpand, field: int) -> bool:
    if field == expand.group_id.id:
        return False
    if any(f.id == field for f in expand.passed):
        return _column_may_be_null(context, expand.input, field)
    kept = next((i.expr for i in expand.common if i.field.id == field), None)
    return kept is None or may_be_null(context, expand.input, kept)
