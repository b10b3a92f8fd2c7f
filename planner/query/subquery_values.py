"""What a sub-query is worth as a value, and the joins that bring it to the rows of the block around it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hintplan.planner.context import Context
from hintplan.planner.expressions.typed import Call, Expr, Field, Ref, fields_of, rewrite
from hintplan.planner.query.domains import Domain, over_domain
from hintplan.planner.relations import Join, Relation, StateInput, UnnamedInput, identity

_COMPARISONS = frozenset(("=", "<>", "<", "<=", ">", ">=", "BETWEEN", "LIKE"))
_NULL_FROM_NULL = frozenset(("CAST", "+", "-", "*", "div", "%", "NEGATE", "abs"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A sub-query: ``relation`` joined ``on`` equalities with the outer block, and what it then is worth.

    ``relation`` is None if what it is worth is known without. With a ``domain``, it is joined by the values of that as
    well. Those ``before`` are joined, too, of which it knows more.
    """

    relation: Relation | None
    on: tuple[Expr, ...]
    worth: Expr
    offset: int
    domain: Domain | None = None
    before: tuple[Value, ...] = ()

    @property
    def fields(self) -> tuple[Field, ...]:
        own = () if self.relation is None else self.relation.fields
        return (*(f for each in self.before for f in each.fields), *own)


def join_values(
    context: Context,
    relation: Relation,
    values: Mapping[int, Value],
    state: StateInput,
    block: str,
    *,
    conditions: tuple[Expr, ...] = (),
    outer: Callable[[Expr], Expr] = lambda expression: expression,
) -> Relation:
    """``relation`` with the columns of all ``values``; ``conditions`` will be put above, and ``outer`` says what an
    expression of the outer block is over ``relation``.
    """
    around = relation
    for value in (each for found in values.values() for each in (*found.before, found)):
        if value.relation is None:
            continue
        right = value.relation
        ids = {f.id for f in right.fields}
        on = tuple(_over(part, ids, outer) for part in value.on)
        if value.domain is not None:
            right, same = over_domain(context, right, value.domain, around, outer)
            on = (*on, *same)
        relation = Join(
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
    """An equality with its side of the outer block replaced."""
    return rewrite(part, lambda e: None if any(f.id in own for f in fields_of(e)) else outer(e))


def _rejects_null(condition: Expr, ids: set[int]) -> bool:
    """Whether ``condition`` is not true if the fields with ``ids`` are NULL."""

    def is_null(e: Expr) -> bool:
        if isinstance(e, Ref):
            return e.field.id in ids
        return isinstance(e, Call) and e.function in _NULL_FROM_NULL and any(map(is_null, e.args))

    return isinstance(condition, Call) and condition.function in _COMPARISONS and any(map(is_null, condition.args))
