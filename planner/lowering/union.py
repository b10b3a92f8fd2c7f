"""UNION ALL. Each input has its columns under the names of the union."""

from __future__ import annotations

from dataclasses import replace

from hintplan.planner.expressions.typed import Ref
from hintplan.planner.lowering.builder import Builder
from hintplan.planner.lowering.columns import Lowered, lowered, unique_names
from hintplan.planner.relations import Calc, Item, Relation, Union
from hintplan.plans import operators as model


def lower_union(builder: Builder, union: Union) -> Lowered:
    """Add the union of inputs with equal columns."""
    columns = unique_names(union.fields)
    inputs = tuple(builder.lower(_named(branch, columns), exact=True).id for branch in union.inputs)
    operator_id = builder.add(model.Union(id="", inputs=inputs), "union", union.base, union.block)
    return lowered(operator_id, union.fields, columns)


def _named(branch: Relation, columns: tuple[str, ...]) -> Calc:
    """Return ``branch`` with its columns named ``columns``."""
    if isinstance(branch, Calc):
        named = zip(branch.items, columns, strict=True)
        return replace(branch, items=tuple(replace(i, field=replace(i.field, name=n)) for i, n in named))
    shown = zip(branch.fields, columns, strict=True)
    items = tuple(Item(field=replace(f, name=n), expr=Ref(field=f)) for f, n in shown)
    return Calc(input=branch, filter=None, items=items, base=branch.base, block=branch.block)
