"""Rows for the elements of arrays and maps."""

from __future__ import annotations

from hintplan.planner.expressions.typed import Ref
from hintplan.planner.lowering.builder import Builder, name_above
from hintplan.planner.lowering.columns import Lowered, join_columns, lowered, unique_names
from hintplan.planner.relations import Unnest
from hintplan.plans import operators as model


def lower_unnest(builder: Builder, unnest: Unnest) -> Lowered:
    """Add the operator. The right columns of its output have the names of the collection's element columns."""
    source = builder.lower(unnest.input)
    assert isinstance(unnest.collection, Ref)
    columns = unique_names(unnest.fields)
    offered = tuple(column.name for column in model.element_columns(unnest.collection.type))
    operator = model.Unnest(
        id="",
        inputs=(source.id,),
        column=source.names[unnest.collection.field.id],
        join_type=unnest.join_type,
        output=join_columns(columns, unnest.items, source, lowered("", unnest.returned, offered)),
    )
    operator_id = builder.add(operator, "unnest", name_above(unnest.input, unnest.block), unnest.block)
    return lowered(operator_id, unnest.fields, columns)
