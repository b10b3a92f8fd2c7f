"""ROW_NUMBER() of which a condition keeps the first numbers: a deduplicate if it is the first by time, else a rank."""

from __future__ import annotations

from dataclasses import replace

from planner.lowering.builder import Builder, name_above
from planner.lowering.columns import Lowered, unique_names
from planner.lowering.sort import sort_keys
from planner.relations import RowNumber, UnnamedInput
from plans import operators as model


def lower_row_number(builder: Builder, numbered: RowNumber, *, exact: bool) -> Lowered:
    """The operator, which passes on the columns of its input; SqlError if no condition says which rows are kept."""
    if numbered.last is None or numbered.last < numbered.first:
        assert numbered.unlimited is not None
        raise numbered.unlimited
    source = builder.lower(numbered.input, exact=exact)
    if numbered.is_first_only:
        return _deduplicate(builder, numbered, source)
    if numbered.latest:
        assert numbered.many_latest is not None
        raise numbered.many_latest
    number = unique_names((numbered.number,), source.columns)[-1] if numbered.is_shown else None
    operator = model.Rank(
        id="",
        inputs=(source.id,),
        key=tuple(source.names[field.id] for field in numbered.partition),
        order=sort_keys(source, numbered.order),
        rank_start=numbered.first,
        rank_end=numbered.last,
        number=number,
        changelog=(),
        state=builder.states(("rankState", UnnamedInput, source)),
    )
    found = builder.add(operator, "rank", name_above(numbered.input, numbered.block), numbered.block)
    if number is None:
        return replace(source, id=found)
    names = {**source.names, numbered.number.id: number}
    return Lowered(id=found, columns=(*source.columns, number), names=names)


def _deduplicate(builder: Builder, numbered: RowNumber, source: Lowered) -> Lowered:
    descending = numbered.latest or any(key.descending for key in numbered.order)
    operator = model.Deduplicate(
        id="",
        inputs=(source.id,),
        key=tuple(source.names[field.id] for field in numbered.partition),
        time=source.names[numbered.order[0].field.id] if numbered.order else None,
        keep="last" if descending else "first",
        changelog=(),
        state=builder.states(("deduplicateState", UnnamedInput, source)),
    )
    found = builder.add(operator, "deduplicate", name_above(numbered.input, numbered.block), numbered.block)
    return replace(source, id=found)
