"""The one group of an aggregate without GROUP BY, which SQL gives a row even if there are no rows.

In a stream it has none before the first row comes, as in Flink. Where a sub-query is a value, that makes no difference:
what is computed from the group is computed above the join that brings it, where COUNT is 0 and the others are NULL.
"""

from __future__ import annotations

from dataclasses import dataclass

from hintplan.planner.expressions.typed import (
    BIGINT,
    AggregateCallExpr,
    Call,
    Expr,
    Literal,
    Ref,
    call,
    conjuncts,
    literal,
    rewrite,
    substitute,
)
from hintplan.planner.relations import Aggregate, Calc, Relation
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
class Group:
    """An aggregate with one group, and over its columns: what is selected of it, and HAVING and filters above."""

    relation: Aggregate
    values: tuple[Expr, ...]
    conditions: tuple[Expr, ...]


def group_of(relation: Relation) -> Group | None:
    """The group that the columns of ``relation`` are computed from; None if it is no single one."""
    selected: tuple[Expr, ...] = tuple(Ref(field=f) for f in relation.fields)
    conditions: tuple[Expr, ...] = ()
    while isinstance(relation, Calc):
        values = {i.field.id: i.expr for i in relation.items}
        selected = tuple(substitute(e, values) for e in selected)
        conditions = (*conjuncts(relation.filter), *(substitute(c, values) for c in conditions))
        relation = relation.input
    if not isinstance(relation, Aggregate) or relation.keys:
        return None
    counts = {c.field.id for c in relation.calls if c.function == "COUNT"}

    def absent(e: Expr) -> Expr | None:
        return zero_if_absent(e) if isinstance(e, Ref) and e.field.id in counts else None

    return Group(
        relation=relation,
        values=tuple(rewrite(e, absent) for e in selected),
        conditions=tuple(rewrite(c, absent) for c in conditions),
    )


def zero_if_absent(count: Expr) -> Expr:
    """A COUNT that is 0 where there is no group."""
    return call("coalesce", (count, literal(0, BIGINT)), BIGINT, count.offset)


def may_hold_for_nothing(condition: Expr) -> bool:
    """Whether HAVING ``condition`` may be true of no rows: not if it asks for a COUNT of some, or for a sum above 1."""
    return _of_nothing(condition) not in (False, None)


def _of_nothing(e: Expr) -> object:
    """The value over no rows, None for NULL, or that it is not known here."""
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
