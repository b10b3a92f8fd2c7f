"""The single group of an aggregate without GROUP BY, for which SQL returns a row even on empty input.

In a stream, the group has no row before the first input row, as in Flink. For a sub-query that is a value this makes no
difference. A join brings the group to its reader, and expressions over the group are computed above that join. There,
COUNT becomes 0 if the group is missing, and all other aggregates are NULL.
"""

from __future__ import annotations

from dataclasses import dataclass

from hintplan.planner.expressions.typed import (
    BIGINT,
    AggregateCallExpr,
    Call,
    Expr,
    FieldRef,
    Literal,
    call,
    factored_conjuncts,
    literal,
    replace_outermost,
    substitute,
)
from hintplan.planner.relations import LogicalAggregate, LogicalCalc, Relation
from hintplan.plans.declarations.computations import BUILT_IN

_UNKNOWN = object()
_COMPARE = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
_NULL_FROM_NULL = frozenset(("CAST", "+", "-", "*", "/", "div", "%", "NEGATE", "abs", "BETWEEN", "LIKE", "NOT"))


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleGroup:
    """An aggregate with a single group, and over its columns the selected ``values`` and the ``conditions``.

    The conditions come from HAVING and from filters above it.
    """

    relation: LogicalAggregate
    values: tuple[Expr, ...]
    conditions: tuple[Expr, ...]


def group_of(relation: Relation) -> SingleGroup | None:
    """Return the single group from which the columns of ``relation`` are computed, or None if there is none."""
    selected: tuple[Expr, ...] = tuple(FieldRef(field=f) for f in relation.fields)
    conditions: tuple[Expr, ...] = ()
    while isinstance(relation, LogicalCalc):
        values = {i.field.id: i.expr for i in relation.items}
        selected = tuple(substitute(e, values) for e in selected)
        conditions = (*factored_conjuncts(relation.filter), *(substitute(c, values) for c in conditions))
        relation = relation.input
    if not isinstance(relation, LogicalAggregate) or relation.keys:
        return None
    counts = {c.field.id for c in relation.calls if c.function == "COUNT"}

    def absent(e: Expr) -> Expr | None:
        return zero_if_absent(e) if isinstance(e, FieldRef) and e.field.id in counts else None

    return SingleGroup(
        relation=relation,
        values=tuple(replace_outermost(e, absent) for e in selected),
        conditions=tuple(replace_outermost(c, absent) for c in conditions),
    )


def zero_if_absent(count: Expr) -> Expr:
    """Return ``count`` with 0 in place of NULL, for a group that is missing."""
    return call("coalesce", (count, literal(0, BIGINT)), BIGINT, count.offset)


def may_hold_for_nothing(condition: Expr) -> bool:
    """Return True if the HAVING ``condition`` may be true on empty input.

    For example, ``COUNT(*) > 0`` is FALSE there, and ``SUM(x) > 1`` is NULL.
    """
    return _of_nothing(condition) not in (False, None)


def _of_nothing(e: Expr) -> object:
    """Return the value on empty input: None for NULL, or ``_UNKNOWN`` if it cannot be determined here."""
    if isinstance(e, AggregateCallExpr):
        if e.function not in BUILT_IN:
            return _UNKNOWN
        return 0 if e.function == "COUNT" else None
    if isinstance(e, Literal):
        if e.text is None:
            return None
        return int(e.text) if e.type.is_integer else _UNKNOWN
    if not isinstance(e, Call):
        return _UNKNOWN
    values = [_of_nothing(a) for a in e.args]
    if e.function == "AND":
        return next((v for v in (False, None, _UNKNOWN) if any(v is each for each in values)), True)
    if e.function == "OR":
        return next((v for v in (True, _UNKNOWN, None) if any(v is each for each in values)), False)
    if (e.function in _NULL_FROM_NULL or e.function in _COMPARE) and None in values:
        return None
    if e.function in _COMPARE and _UNKNOWN not in values:
        return _COMPARE[e.function](*values)
    return _UNKNOWN
