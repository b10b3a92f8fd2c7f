"""Copies of rows for grouping sets."""

from __future__ import annotations

from hintplan.planner.expressions.typed import Ref
from hintplan.planner.lowering.builder import Builder, name_above
from hintplan.planner.lowering.columns import Lowered, lowered, unique_names
from hintplan.planner.relations import Expand
from hintplan.plans import operators as model


def lower_expand(builder: Builder, expand: Expand) -> Lowered:
    """Add the expansion. Each key replaces the column of its value."""
    source = builder.lower(expand.input)
    keys = tuple(source.names[i.expr.field.id] for i in expand.keys if isinstance(i.expr, Ref))
    passed = tuple(source.names[f.id] for f in expand.passed)
    *_, group_id = unique_names((expand.group_id,), source.columns)
    operator = model.Expand(
        id="",
        inputs=(source.id,),
        keys=keys,
        sets=tuple(tuple(keys[place] for place in sorted(positions)) for positions in expand.sets),
        group_id=group_id,
    )
    operator_id = builder.add(operator, "expand", name_above(expand.input, expand.block), expand.block)
    names = lowered(operator_id, expand.fields, (*keys, *passed, group_id)).names
    return Lowered(id=operator_id, columns=(*source.columns, group_id), names=names)
