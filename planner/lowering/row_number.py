"""ROW_NUMBER(): a deduplicate for the first row by time, a rank for other limits, an over aggregate without a limit.

Only a batch job can compute the number without a limit.
"""

from __future__ import annotations

from dataclasses import replace

from hintplan.planner.lowering.builder import Builder, name_above
from hintplan.planner.lowering.columns import Lowered, unique_names
from hintplan.planner.lowering.over import lower_over
from hintplan.planner.lowering.sort import sort_keys
from hintplan.planner.relations import Over, OverItem, RowNumber, UnnamedInput
from hintplan.plans import operators as model


def lower_row_number(builder: Builder, numbered: RowNumber, *, exact: bool) -> Lowered:
    """Add the operator, which keeps the columns of its input. Raise SqlError if no condition limits the number."""
    if numbered.last is None and numbered.end is None and builder.batch:
        return lower_over(builder, _all_numbers(numbered), exact=exact)
    if numbered.end is None and (numbered.last is None or numbered.last < numbered.first):
        assert numbered.unlimited is not None
        raise numbered.unlimited
    source = builder.lower(numbered.input, exact=exact)
    if numbered.is_first_only:
        return _deduplicate(builder, numbered, source)
    if numbered.unordered is not None:
        raise numbered.unordered
    end = numbered.last if numbered.end is None else source.names[numbered.end.id]
    assert end is not None
    number = unique_names((numbered.number,), source.columns)[-1] if numbered.is_shown else None
    operator = model.Rank(
        id="",
        inputs=(source.id,),
        key=tuple(source.names[field.id] for field in numbered.partition),
        order=sort_keys(source, numbered.order),
        arrival="last" if numbered.latest else "first",
        rank_start=numbered.first,
        rank_end=end,
        number=number,
        changelog=(),
        state=builder.states(("rankState", UnnamedInput, source)),
    )
    names = name_above(numbered.input, numbered.block)
    operator_id = builder.add(operator, "rank", names, numbered.block, holds=numbered.view)
    if number is None:
        return replace(source, id=operator_id)
    return Lowered(
        id=operator_id, columns=(*source.columns, number), names={**source.names, numbered.number.id: number}
    )


def _all_numbers(numbered: RowNumber) -> Over:
    """Return the window function that numbers all rows. Only a batch job supports it."""
    call = OverItem(field=numbered.number, function="ROW_NUMBER", argument=None)
    return Over(
        input=numbered.input,
        partition=numbered.partition,
        order=numbered.order,
        frame=None,
        calls=(call,) if numbered.is_shown else (),
        base=numbered.base,
        block=numbered.block,
    )


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
    names = name_above(numbered.input, numbered.block)
    operator_id = builder.add(operator, "deduplicate", names, numbered.block, holds=numbered.view)
    return replace(source, id=operator_id)
