"""ORDER BY, LIMIT and OFFSET."""

from __future__ import annotations

from dataclasses import replace

from hintplan.planner.lowering.builder import Builder, name_above
from hintplan.planner.lowering.columns import Lowered
from hintplan.planner.relations import Sort, SortItem
from hintplan.plans import operators as model
from hintplan.plans.operators import SortKey


def lower_sort(builder: Builder, sort: Sort, *, exact: bool) -> Lowered:
    """Add the sort, which keeps the columns of its input."""
    source = builder.lower(sort.input, exact=exact)
    order = sort_keys(source, sort.order)
    operator = model.Sort(id="", inputs=(source.id,), order=order, offset=sort.offset, limit=sort.limit)
    return replace(source, id=builder.add(operator, "sort", name_above(sort.input, sort.block), sort.block))


def sort_keys(source: Lowered, order: tuple[SortItem, ...]) -> tuple[SortKey, ...]:
    """Return the sort keys of an operator that reads ``source``."""
    return tuple(
        SortKey(
            column=source.names[key.field.id],
            direction="desc" if key.descending else "asc",
            nulls="first" if key.nulls_first else "last",
        )
        for key in order
    )
