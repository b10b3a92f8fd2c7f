"""Filters, projections, UNION ALL and cached results.

A calc that only renames columns needs no operator, unless names and order matter.
"""

from __future__ import annotations

from dataclasses import replace

from hintplan.planner.expressions.typed import FieldRef
from hintplan.planner.lowering.builder import Builder, name_above
from hintplan.planner.lowering.columns import Lowered, lowered, optional_text, select_items, unique_names
from hintplan.planner.passes.merge_calcs import is_projection
from hintplan.planner.relations import Item, LogicalCache, LogicalCalc, LogicalUnion, Relation, identity
from hintplan.plans import operators as model
from hintplan.plans.model.layered_groups import with_group
from hintplan.plans.settings.cached import CACHED, ENABLED


def lower_calc(builder: Builder, calc: LogicalCalc, *, exact: bool) -> Lowered:
    """Add the calc. A projection whose names and order do not matter gets no operator."""
    source = builder.lower(calc.input)
    columns = unique_names(calc.fields)
    if is_projection(calc):
        passed = {i.field.id: source.names[i.expr.field.id] for i in calc.items if isinstance(i.expr, FieldRef)}
        if not exact or tuple(passed.values()) == source.columns == columns:
            return replace(source, names=passed)
    operator = model.Calc(
        id="",
        inputs=(source.id,),
        select=select_items(columns, calc.items, source),
        filter=optional_text(calc.filter, source.printed()),
    )
    operator_id = builder.add(operator, "calc", name_above(calc.input, calc.block), calc.block)
    return lowered(operator_id, calc.fields, columns)


def lower_renaming(builder: Builder, source: Lowered, relation: Relation, columns: tuple[str, ...]) -> Lowered:
    """Add a calc over ``source``, the operator of ``relation``, with its fields in order and named ``columns``."""
    select = select_items(columns, identity(relation.fields), source)
    operator = model.Calc(id="", inputs=(source.id,), select=select, filter=None)
    operator_id = builder.add(operator, "calc", name_above(relation, relation.block), relation.block)
    return lowered(operator_id, relation.fields, columns)


def lower_union(builder: Builder, union: LogicalUnion) -> Lowered:
    """Add the union of inputs with equal columns."""
    columns = unique_names(union.fields)
    inputs = tuple(builder.lower(_named(branch, columns), exact=True).id for branch in union.inputs)
    operator_id = builder.add(model.Union(id="", inputs=inputs), "union", union.base, union.block)
    return lowered(operator_id, union.fields, columns)


def _named(branch: Relation, columns: tuple[str, ...]) -> LogicalCalc:
    """Return ``branch`` with its columns named ``columns``."""
    if isinstance(branch, LogicalCalc):
        named = zip(branch.items, columns, strict=True)
        return replace(branch, items=tuple(replace(i, field=replace(i.field, name=n)) for i, n in named))
    shown = zip(branch.fields, columns, strict=True)
    items = tuple(Item(field=replace(f, name=n), expr=FieldRef(field=f)) for f, n in shown)
    return LogicalCalc(input=branch, filter=None, items=items, base=branch.base, block=branch.block)


def lower_cached(builder: Builder, cached: LogicalCache) -> Lowered:
    """Add the operator of the result, with its cache settings.

    The operator is the same for other readers that do not request a cache.
    """
    source = builder.lower(cached.input, exact=True)
    if cached.read_columns is not None:
        builder.views[source.id] = cached.base[0]
    position = builder.places[source.id]
    operator = builder.operators[position]
    old = operator.settings.get(CACHED.name)
    enabled = CACHED.resolved(cached.layers).values[ENABLED]
    if cached.layers and (old is None or enabled or not old.values[ENABLED]):
        origin = {**(old.origin if old is not None else {}), **cached.layers}
        builder.operators[position] = with_group(operator, CACHED.name, CACHED.resolved(origin))
    for (layer, name), offset in cached.offsets.items():
        if layer == "hint":
            builder.ledger.applied(offset, f"{source.id}.cached.{name}")
        else:
            builder.ledger.statements[source.id, f"cached.{name}"] = offset
    return source
