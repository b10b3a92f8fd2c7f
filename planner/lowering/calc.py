"""Filters and projections. A calc that only renames columns needs no operator, unless names and order matter."""

from __future__ import annotations

from dataclasses import replace

from hintplan.planner.expressions.typed import Ref
from hintplan.planner.lowering.builder import Builder, name_above
from hintplan.planner.lowering.columns import Lowered, lowered, optional_text, select_items, unique_names
from hintplan.planner.passes.merge_calcs import is_projection
from hintplan.planner.relations import Calc, Relation, identity
from hintplan.plans import operators as model


def lower_calc(builder: Builder, calc: Calc, *, exact: bool) -> Lowered:
    """Add the calc. A projection whose names and order do not matter gets no operator."""
    source = builder.lower(calc.input)
    columns = unique_names(calc.fields)
    if is_projection(calc):
        passed = {i.field.id: source.names[i.expr.field.id] for i in calc.items if isinstance(i.expr, Ref)}
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


def renamed(builder: Builder, source: Lowered, relation: Relation, columns: tuple[str, ...]) -> Lowered:
    """Add a calc over ``source``, the operator of ``relation``, with its fields in order and named ``columns``."""
    select = select_items(columns, identity(relation.fields), source)
    operator = model.Calc(id="", inputs=(source.id,), select=select, filter=None)
    operator_id = builder.add(operator, "calc", name_above(relation, relation.block), relation.block)
    return lowered(operator_id, relation.fields, columns)
