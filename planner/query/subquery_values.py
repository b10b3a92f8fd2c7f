"""Sub-queries as values, and the joins that bring these values to the rows of the outer block."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hintplan.planner.context import Context
from hintplan.planner.expressions.typed import Call, Expr, Field, FieldRef, referenced_fields, replace_outermost
from hintplan.planner.query.domains import Domain, over_domain
from hintplan.planner.relations import LogicalJoin, Relation, StateInput, UnnamedInput, identity

_COMPARISONS = frozenset(("=", "<>", "<", "<=", ">", ">=", "BETWEEN", "LIKE"))
_NULL_FROM_NULL = frozenset(("CAST", "+", "-", "*", "div", "%", "NEGATE", "abs"))


@dataclass(frozen=True, slots=True, kw_only=True)
class SubqueryValue:
    """The value of a sub-query, ``worth``, after joining ``relation`` to the outer block ``on`` equalities.

    ``relation`` is None if the value needs no join. With a ``domain``, the join also compares the values of the domain.
    The values in ``before`` are joined first, because ``worth`` also reads their columns.
    """

    relation: Relation | None
    on: tuple[Expr, ...]
    worth: Expr
    offset: int
    domain: Domain | None = None
    before: tuple[SubqueryValue, ...] = ()

    @property
    def fields(self) -> tuple[Field, ...]:
        """Return the fields that joining the value adds to the rows of the outer block."""
        own = () if self.relation is None else self.relation.fields
        return (*(f for each in self.before for f in each.fields), *own)


def join_values(
    context: Context,
    relation: Relation,
    values: Mapping[int, SubqueryValue],
    state: StateInput,
    block: str,
    *,
    conditions: tuple[Expr, ...] = (),
    outer: Callable[[Expr], Expr] = lambda expression: expression,
) -> Relation:
    """Join all ``values`` to ``relation``.

    The caller filters the result by ``conditions``, so a join whose NULLs they reject becomes an inner join. ``outer``
    translates an expression of the outer block to one over ``relation``.
    """
    around = relation
    for value in (joined for after in values.values() for joined in (*after.before, after)):
        if value.relation is None:
            continue
        right = value.relation
        ids = {f.id for f in right.fields}
        on = tuple(_over(part, ids, outer) for part in value.on)
        if value.domain is not None:
            right, same = over_domain(context, right, value.domain, around, outer)
            on = (*on, *same)
        relation = LogicalJoin(
            left=relation,
            right=right,
            join_type="inner" if any(_rejects_null(c, ids) for c in conditions) else "left",
            on=on,
            items=identity((*relation.fields, *right.fields)),
            states=(state, UnnamedInput),
            offset=value.offset,
            base=(*relation.base, *right.base),
            block=block,
        )
        state = UnnamedInput
    return relation


def _over(part: Expr, own: set[int], outer: Callable[[Expr], Expr]) -> Expr:
    """Replace the outer block's side of an equality."""
    return replace_outermost(part, lambda e: None if any(f.id in own for f in referenced_fields(e)) else outer(e))


def _rejects_null(condition: Expr, ids: set[int]) -> bool:
    """Return True if ``condition`` is not true whenever the fields with ``ids`` are NULL."""

    def is_null(e: Expr) -> bool:
        if isinstance(e, FieldRef):
            return e.field.id in ids
        return isinstance(e, Call) and e.function in _NULL_FROM_NULL and any(map(is_null, e.args))

    return isinstance(condition, Call) and condition.function in _COMPARISONS and any(map(is_null, condition.args))
