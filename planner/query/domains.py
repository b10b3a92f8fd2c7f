"""Domains: the values of the outer block for which a sub-query with comparisons other than equalities is computed.

Grouping its rows does not give the value of such a sub-query, because one row may count for many outer rows. So the
sub-query is joined with the distinct values in the outer block, its domain, and grouped by these values. They join the
result back to the outer rows. The sub-query is compiled before the relation of the outer block is known, so a
placeholder stands for the rows of the domain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from hintplan.planner.context import Context
from hintplan.planner.expressions.comparisons import compared
from hintplan.planner.expressions.operands import is_not_distinct
from hintplan.planner.expressions.typed import Expr, Field, FieldRef, referenced_fields, replace_outermost
from hintplan.planner.properties.nullability import may_be_null
from hintplan.planner.relations import (
    Item,
    LogicalAggregate,
    LogicalCalc,
    LogicalLookupJoin,
    LogicalValues,
    Relation,
    UnnamedInput,
    inputs_of,
    map_inputs,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """The domain of a sub-query: ``items`` compute its columns from the outer block, ``place`` stands for its rows.

    ``shown`` are the output columns of the sub-query that join it to the outer block. Messages call the sub-query
    ``called``.
    """

    items: tuple[Item, ...]
    shown: tuple[Item, ...]
    place: LogicalValues
    offset: int
    called: str = "a sub-query that is compared by more than equality"

    @property
    def fields(self) -> tuple[Field, ...]:
        """Return the fields of the ``shown`` columns."""
        return tuple(item.field for item in self.shown)


def domain_of(
    context: Context, conditions: tuple[Expr, ...], own: frozenset[int], block: str, offset: int
) -> tuple[Domain, tuple[Expr, ...]]:
    """Return the domain of ``conditions``, and the conditions rewritten to read it.

    The domain holds the values of fields whose ids are not in ``own``.
    """
    values = outer_values(context, conditions, own, offset)
    columns = {e: context.field(e.field.name if isinstance(e, FieldRef) else "", e.type) for e in values}

    def change(e: Expr) -> Expr | None:
        return FieldRef(field=columns[e], offset=e.offset) if e in columns else None

    on = tuple(replace_outermost(part, change) for part in conditions)
    items = tuple(Item(field=f, expr=e) for e, f in columns.items())
    place = LogicalValues(fields=tuple(columns.values()), rows=(), base=(), block=block)
    return Domain(items=items, shown=items, place=place, offset=offset), on


def outer_values(context: Context, expressions: Iterable[Expr], own: frozenset[int], offset: int) -> list[Expr]:
    """Return the largest parts of ``expressions`` that read only fields whose ids are not in ``own``, each once."""
    values: dict[Expr, None] = {}

    def collect(e: Expr) -> Expr | None:
        ids = {f.id for f in referenced_fields(e)}
        if not ids or ids & own:
            return None
        if e.type.root == "MAP" and isinstance(e, FieldRef):
            message = f"a sub-query cannot be compared with column '{e.field.name}' of type MAP by more than equality"
            raise context.source.error(message, e.offset or offset, "compare values of it, such as m['k']")
        if e.type.root in ("MAP", "INTERVAL"):
            return None
        values[e] = None
        return e

    for expression in expressions:
        replace_outermost(expression, collect)
    return list(values)


def over_domain(
    context: Context, value: Relation, domain: Domain, around: Relation, outer: Callable[[Expr], Expr]
) -> tuple[Relation, tuple[Expr, ...]]:
    """Replace the placeholder of ``domain`` in ``value`` with the rows of ``around``; also return the join conditions.

    ``outer`` translates an expression of the outer block to one over ``around``.
    """
    if _looks_up(around):
        message = f"{domain.called} is not supported next to a lookup join"
        raise context.source.error(message, domain.offset, "write the lookup's result to a table, and read that table")
    items = tuple(Item(field=i.field, expr=outer(i.expr)) for i in domain.items)
    columns = LogicalCalc(input=around, filter=None, items=items, base=around.base, block=domain.place.block)
    rows = LogicalAggregate(
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
    pair = FieldRef(field=item.field), item.expr
    if may_be_null(context, around, item.expr):
        return is_not_distinct(context.source, "a sub-query", *pair, offset)
    return compared("=", pair, offset)


def _looks_up(relation: Relation) -> bool:
    """Return True if ``relation`` contains a lookup, which may return other rows each time it is computed."""
    return isinstance(relation, LogicalLookupJoin) or any(map(_looks_up, inputs_of(relation)))


def _put(relation: Relation, place: LogicalValues, rows: Relation) -> Relation:
    if relation is place:
        return rows
    rebuilt = map_inputs(relation, lambda below: _put(below, place, rows))
    return rebuilt if rebuilt.base else replace(rebuilt, base=rows.base)
