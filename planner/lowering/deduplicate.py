"""ROW_NUMBER() of which a condition keeps the first of each partition: a deduplicate."""

from __future__ import annotations

from dataclasses import replace

from planner.lowering.builder import Builder, name_above
from planner.lowering.columns import Lowered
from planner.relations import RowNumber, UnnamedInput
from plans import operators as model


def lower_deduplicate(builder: Builder, numbered: RowNumber, *, exact: bool) -> Lowered:
    """The deduplicate, which passes on the columns of its input; SqlError if no condition keeps one row."""
    if not numbered.kept:
        raise numbered.unlimited
    source = builder.lower(numbered.input, exact=exact)
    operator = model.Deduplicate(
        id="",
        inputs=(source.id,),
        key=tuple(source.names[field.id] for field in numbered.partition),
        time=None if numbered.time is None else source.names[numbered.time.id],
        keep="last" if numbered.descending else "first",
        changelog=(),
        state=builder.states(("deduplicateState", UnnamedInput, source)),
    )
    found = builder.add(operator, "deduplicate", name_above(numbered.input, numbered.block), numbered.block)
    return replace(source, id=found)
