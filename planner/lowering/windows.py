"""ORDER BY with LIMIT and OFFSET, ROW_NUMBER() and other window functions.

ROW_NUMBER() is a deduplicate for the first row by time, a rank for other limits, and an over aggregate without a limit.
"""

from __future__ import annotations

from dataclasses import replace

from hintplan.planner.lowering.builder import Builder, name_above
from hintplan.planner.lowering.columns import Lowered, unique_names
from hintplan.planner.properties.unique_keys import is_insert_only
from hintplan.planner.relations import LogicalOver, LogicalRowNumber, LogicalSort, OverItem, SortItem, UnnamedInput
from hintplan.plans import operators as model
from hintplan.plans.operators import SortKey
from hintplan.plans.operators.deduplicate import STATE, WAITING
from hintplan.plans.settings.state import StateEntry


def lower_row_number(builder: Builder, numbered: LogicalRowNumber, *, exact: bool) -> Lowered:
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
        order=lower_sort_keys(source, numbered.order),
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


def _all_numbers(numbered: LogicalRowNumber) -> LogicalOver:
    """Return the window function that numbers all rows. Only a batch job supports it."""
    call = OverItem(field=numbered.number, function="ROW_NUMBER", argument=None)
    return LogicalOver(
        input=numbered.input,
        partition=numbered.partition,
        order=numbered.order,
        frame=None,
        calls=(call,) if numbered.is_shown else (),
        base=numbered.base,
        block=numbered.block,
    )


def _deduplicate(builder: Builder, numbered: LogicalRowNumber, source: Lowered) -> Lowered:
    descending = numbered.latest or any(key.descending for key in numbered.order)
    states = builder.states((STATE, UnnamedInput, source))
    if numbered.is_at_watermark:
        states += builder.timed_states((WAITING, UnnamedInput, source), first=1)
    operator = model.Deduplicate(
        id="",
        inputs=(source.id,),
        key=tuple(source.names[field.id] for field in numbered.partition),
        time=source.names[numbered.order[0].field.id] if numbered.order else None,
        keep="last" if descending else "first",
        emit="at-watermark" if numbered.is_at_watermark else None,
        changelog=(),
        state=states,
    )
    names = name_above(numbered.input, numbered.block)
    operator_id = builder.add(operator, "deduplicate", names, numbered.block, holds=numbered.view)
    return replace(source, id=operator_id)


def lower_over(builder: Builder, over: LogicalOver, *, exact: bool) -> Lowered:
    """Add the over aggregate, which adds columns to its input. If no call is used, return the input."""
    source = builder.lower(over.input, exact=exact)
    if not over.calls:
        return source
    columns = unique_names(tuple(call.field for call in over.calls), source.columns)
    added = columns[len(source.columns) :]
    by_time = over.in_stream == "rowtime"
    operator = model.OverAggregate(
        id="",
        inputs=(source.id,),
        key=tuple(source.names[field.id] for field in over.partition),
        order=() if by_time else lower_sort_keys(source, over.order),
        time=source.names[over.order[0].field.id] if by_time else None,
        frame=over.frame,
        calls=tuple(
            model.OverCall(
                name=name,
                function=call.function,
                argument=None if call.argument is None else source.names[call.argument.id],
                distinct=call.distinct,
                count=call.count,
                default=None if call.default is None else source.names[call.default.id],
                type=str(call.field.type),
            )
            for name, call in zip(added, over.calls, strict=True)
        ),
    )
    operator = operator.with_states(_over_states(builder, operator, source))
    operator_id = builder.add(operator, "over", name_above(over.input, over.block), over.block)
    names = {**source.names, **{call.field.id: name for call, name in zip(over.calls, added, strict=True)}}
    return Lowered(id=operator_id, columns=columns, names=names)


def _over_states(builder: Builder, operator: model.OverAggregate, source: Lowered) -> tuple[StateEntry, ...]:
    """Return the states of ``operator``: its last has a TTL, unless it goes by time."""
    wanted = [(name, UnnamedInput, source) for name in operator.state_names]
    timed = builder.timed_states(*wanted)
    return tuple(
        entry if operator.has_ttl(before.name) else before
        for before, entry in zip(timed, builder.states(*wanted), strict=True)
    )


def lower_sort(builder: Builder, sort: LogicalSort, *, exact: bool) -> Lowered:
    """Add the sort, which keeps the columns of its input. Raise SqlError if a stream cannot sort its rows."""
    source = builder.lower(sort.input, exact=exact)
    order = lower_sort_keys(source, sort.order)
    operator: model.Operator = model.Sort(id="", inputs=(source.id,), order=order, offset=sort.offset, limit=sort.limit)
    if sort.changing is not None:
        if not is_insert_only(sort.input):
            raise sort.changing
        states = builder.timed_states(("waitingState", UnnamedInput, source))
        operator = model.TemporalSort(id="", inputs=(source.id,), order=order, changelog=(), state=states)
    return replace(source, id=builder.add(operator, "sort", name_above(sort.input, sort.block), sort.block))


def lower_sort_keys(source: Lowered, order: tuple[SortItem, ...]) -> tuple[SortKey, ...]:
    """Return the sort keys of an operator that reads ``source``."""
    return tuple(
        SortKey(
            column=source.names[key.field.id],
            direction="desc" if key.descending else "asc",
            nulls="first" if key.nulls_first else "last",
        )
        for key in order
    )
