"""The values of the outer block for which a sub-query is computed that it compares by more than equalities.

What such a sub-query is worth is not found by grouping its rows: one row may count for many outer ones. So it is joined
with the distinct values that the outer block has, its domain, and grouped by these; they bring it back to the outer
rows. The sub-query is compiled before it is known over which rows the values are, so something stands in their place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from hintplan.planner.context import Context
from hintplan.planner.expressions.comparisons import compared
from hintplan.planner.expressions.operands import not_distinct
from hintplan.planner.expressions.typed import Expr, Field, Ref, fields_of, rewrite
from hintplan.planner.properties.nullability import may_be_null
from hintplan.planner.relations import (
    Aggregate,
    Calc,
    Item,
    LookupJoin,
    Relation,
    UnnamedInput,
    Values,
    inputs_of,
    map_inputs,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """``items`` compute its columns from the outer block; ``place`` is what stands for its rows.

    ``shown`` are the columns of what was joined with it that the outer block is joined by. Messages call what needs it
    as it is ``called``.
    """

    items: tuple[Item, ...]
    shown: tuple[Item, ...]
    place: Values
    offset: int
    called: str = "a sub-query that is compared by more than equality"

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(item.field for item in self.shown)


def domain_of(
    context: Context, conditions: tuple[Expr, ...], own: frozenset[int], block: str, offset: int
) -> tuple[Domain, tuple[Expr, ...]]:
    """The domain of ``conditions`` on fields of other ids than the ``own`` ones, and the conditions over it."""
    values = outer_values(context, conditions, own, offset)
    found = {e: context.field(e.field.name if isinstance(e, Ref) else "", e.type) for e in values}

    def change(e: Expr) -> Expr | None:
        return Ref(field=found[e], offset=e.offset) if e in found else None

    on = tuple(rewrite(part, change) for part in conditions)
    items = tuple(Item(field=f, expr=e) for e, f in found.items())
    place = Values(fields=tuple(found.values()), rows=(), base=(), block=block)
    return Domain(items=items, shown=items, place=place, offset=offset), on


def outer_values(context: Context, expressions: Iterable[Expr], own: frozenset[int], offset: int) -> list[Expr]:
    """The largest parts of ``expressions`` that read fields of other ids than the ``own`` ones only, each once."""
    found: dict[Expr, None] = {}

    def collect(e: Expr) -> Expr | None:
        ids = {f.id for f in fields_of(e)}
        if not ids or ids & own:
            return None
        if e.type.root == "MAP" and isinstance(e, Ref):
            message = f"a sub-query cannot be compared with column '{e.field.name}' of type MAP by more than equality"
            raise context.source.error(message, e.offset or offset, "compare values of it, such as m['k']")
        if e.type.root in ("MAP", "INTERVAL"):
            return None
        found[e] = None
        return e

    for expression in expressions:
        rewrite(expression, collect)
    return list(found)


def over_domain(
    context: Context, value: Relation, domain: Domain, around: Relation, outer: Callable[[Expr], Expr]
) -> tuple[Relation, tuple[Expr, ...]]:
    """``value`` with the domain's rows in place, which are those ``around``, and what brings it back to these.

    ``outer`` says what an expression of the outer block is over ``around``.
    """
    if _looks_up(around):
        message = f"{domain.called} is not supported beside a lookup join"
        raise context.source.error(message, domain.offset, "write what is looked up to a table, and read that")
    items = tuple(Item(field=i.field, expr=outer(i.expr)) for i in domain.items)
    columns = Calc(input=around, filter=None, items=items, base=around.base, block=domain.place.block)
    rows = Aggregate(
        input=columns,
        keys=columns.fields,
        calls=(),
        state=UnnamedInput,
        offset=domain.offset,
        base=around.base,
        block=domain.place.block,
    )
    shown = tuple(Item(field=i.field, expr=outer(i.expr)) for i in domain.shown)
    return _put(value, domain.place, rows), tuple(_same(context, around, i, domain.offset) for i in shown)


def _same(context: Context, around: Relation, item: Item, offset: int) -> Expr:
    pair = Ref(field=item.field), item.expr
    if may_be_null(context, around, item.expr):
        return not_distinct(context.source, "a sub-query", *pair, offset)
    return compared("=", pair, offset)


def _looks_up(relation: Relation) -> bool:
    """Whether the source is asked anew for each reader of ``relation``, and may answer otherwise."""
    return isinstance(relation, LookupJoin) or any(map(_looks_up, inputs_of(relation)))


def _put(relation: Relation, place: Values, rows: Relation) -> Relation:
    if relation is place:
        return rows
    found = map_inputs(relation, lambda below: _put(below, place, rows))
    return found if found.base else replace(found, base=rows.base)
