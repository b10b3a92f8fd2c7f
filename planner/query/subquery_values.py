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
    well.
    """

    relation: Relation | None
    on: tuple[Expr, ...]
    worth: Expr
    offset: int
    domain: Domain | None = None

    @property
    def fields(self) -> tuple[Field, ...]:
        return () if self.relation is None else self.relation.fields


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
    for value in values.values():
        if value.relation is None:
            continue
        right, ids = value.relation, {f.id for f in value.fields}
        on = tuple(_over(part, ids, outer) for part in value.on)
        if value.domain is not None:
            check_around(context, tuple(outer(i.expr) for i in value.domain.items), {f.id for f in around.fields})
            right, same = over_domain(context, right, value.domain, around, outer)
            on = (*on, *same)
        check_around(context, on, {f.id for f in relation.fields} | ids)
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


def check_around(context: Context, on: tuple[Expr, ...], known: set[int]) -> None:
    """Refuse conditions on anything else than the ``known`` fields, those of a sub-query and of the block around it."""
    for part in on:
        if any(f.id not in known for f in fields_of(part)):
            raise context.source.error(
                "a sub-query can refer to the block directly around it only", part.offset, "join the tables"
            )


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
