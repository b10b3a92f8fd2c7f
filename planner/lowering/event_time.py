"""Watermarks, and the operators that go by them: aggregates, row numbers and joins of windows.

Their states have no TTL. The column names of a window come from the query.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from hintplan.planner.expressions.spark_text import to_spark_sql
from hintplan.planner.lowering.aggregates import lower_call
from hintplan.planner.lowering.builder import Builder, name_above
from hintplan.planner.lowering.calcs import lower_renaming
from hintplan.planner.lowering.columns import Lowered, join_columns, lowered, optional_text, unique_names
from hintplan.planner.lowering.sources_and_sinks import normalized
from hintplan.planner.lowering.windows import lower_sort_keys
from hintplan.planner.relations import (
    AsOf,
    Attached,
    LogicalCalc,
    LogicalJoin,
    LogicalRowNumber,
    LogicalScan,
    LogicalWatermark,
    LogicalWindow,
    LogicalWindowAggregate,
    UnnamedInput,
)
from hintplan.plans import operators as model
from hintplan.plans.declarations.windows import WindowColumns, signed_text
from hintplan.plans.operators import JoinKey
from hintplan.plans.operators.interval_join import IntervalJoinType
from hintplan.plans.settings.watermark import WATERMARK


def lower_watermark(builder: Builder, watermark: LogicalWatermark, *, exact: bool) -> Lowered:
    """Add the watermark, which keeps the columns of its input, and record the hints that it applies.

    Upserts are normalised above it.
    """
    calc = watermark.input if isinstance(watermark.input, LogicalCalc) else None
    scan = watermark.input if calc is None else calc.input
    assert isinstance(scan, LogicalScan)
    upserts = replace(scan, normalized=())
    source = builder.lower(upserts if calc is None else replace(calc, input=upserts), exact=exact)
    operator = model.WatermarkAssigner(
        id="",
        inputs=(source.id,),
        column=source.names[watermark.column.id],
        base=to_spark_sql(watermark.highest, source.printed()),
        settings={WATERMARK.name: WATERMARK.resolved(watermark.layers)},
    )
    names = name_above(watermark.input, watermark.block)
    operator_id = builder.add(operator, "watermark", names, watermark.block)
    for offset, name in watermark.hinted:
        builder.ledger.applied(offset, f"{operator_id}.{WATERMARK.name}.{name}")
    marked = replace(source, id=operator_id)
    return normalized(builder, scan, marked) if scan.normalized else marked


def lower_window(builder: Builder, window: LogicalWindow, *, exact: bool) -> Lowered:
    """Add the window function, which appends columns to its input."""
    source = builder.lower(window.input, exact=exact)
    added = (window.start, window.end, window.window_time)
    columns = unique_names(added, source.columns)
    start, end, time = columns[len(source.columns) :]
    states = (("sessionState", UnnamedInput, source),) if window.is_session else ()
    operator = model.WindowTableFunction(
        id="",
        inputs=(source.id,),
        time=source.names[window.time.id],
        window=window.window,
        keys=tuple(source.names[f.id] for f in window.keys),
        start=start,
        end=end,
        window_time=time,
        changelog=(),
        state=builder.timed_states(*states),
    )
    operator_id = builder.add(operator, "windows", name_above(window.input, window.block), window.block)
    names = {**source.names, window.start.id: start, window.end.id: end, window.window_time.id: time}
    return Lowered(id=operator_id, columns=columns, names=names)


def lower_window_aggregate(builder: Builder, aggregate: LogicalWindowAggregate, *, exact: bool) -> Lowered:
    """Add the aggregate, and a calc above it if its keys need other names."""
    source = builder.lower(aggregate.input)
    keys = tuple(source.names[k.id] for k in aggregate.keys)
    columns = unique_names((*(c.field for c in aggregate.calls), *aggregate.of_window), keys)
    own = dict(zip((f.id for f in aggregate.fields), columns, strict=True))

    operator = model.WindowAggregate(
        id="",
        inputs=(source.id,),
        keys=keys,
        time=None if aggregate.time is None else source.names[aggregate.time.id],
        window=aggregate.window,
        style=None if aggregate.fire is None else "group",
        early_fire=aggregate.fire is not None and aggregate.fire.early,
        late_fire=aggregate.fire is not None and aggregate.fire.late,
        attached=None if aggregate.attached is None else _columns(aggregate.attached, source),
        aggregates=tuple(lower_call(own[call.field.id], call, source) for call in aggregate.calls),
        start=None if aggregate.start is None else own[aggregate.start.id],
        end=None if aggregate.end is None else own[aggregate.end.id],
        window_time=None if aggregate.window_time is None else own[aggregate.window_time.id],
        changelog=(),
        state=builder.timed_states(("windowAggregateState", aggregate.state, source)),
    )
    names = name_above(aggregate.input, aggregate.block)
    operator_id = builder.add(operator, "window", names, aggregate.block)
    result = lowered(operator_id, aggregate.fields, columns)
    wanted = unique_names(aggregate.fields)
    return lower_renaming(builder, result, aggregate, wanted) if exact and wanted != columns else result


def _columns(attached: Attached, source: Lowered) -> WindowColumns:
    return WindowColumns(start=source.names[attached.start.id], end=source.names[attached.end.id])


def lower_window_row_number(builder: Builder, numbered: LogicalRowNumber, *, exact: bool) -> Lowered:
    """Add the operator that keeps the first rows of each window, with the columns of its input."""
    source = builder.lower(numbered.input, exact=exact)
    attached = numbered.attached
    assert attached is not None
    assert numbered.last is not None
    of_window = (attached.start, attached.end)
    key = tuple(source.names[f.id] for f in numbered.partition if f not in of_window)
    names = name_above(numbered.input, numbered.block)
    if numbered.is_first_only and numbered.order:
        kept = model.WindowDeduplicate(
            id="",
            inputs=(source.id,),
            key=key,
            time=source.names[numbered.order[0].field.id],
            keep="last" if numbered.order[0].descending else "first",
            window=attached.window,
            attached=_columns(attached, source),
            changelog=(),
            state=builder.timed_states(("windowDeduplicateState", UnnamedInput, source)),
        )
        return replace(source, id=builder.add(kept, "deduplicate", names, numbered.block, holds=numbered.view))
    number = unique_names((numbered.number,), source.columns)[-1] if numbered.is_shown else None
    operator = model.WindowRank(
        id="",
        inputs=(source.id,),
        key=key,
        order=lower_sort_keys(source, numbered.order),
        arrival="last" if numbered.latest else "first",
        rank_start=numbered.first,
        rank_end=numbered.last,
        number=number,
        window=attached.window,
        attached=_columns(attached, source),
        changelog=(),
        state=builder.timed_states(("windowRankState", UnnamedInput, source)),
    )
    operator_id = builder.add(operator, "rank", names, numbered.block, holds=numbered.view)
    if number is None:
        return replace(source, id=operator_id)
    columns = (*source.columns, number)
    return Lowered(id=operator_id, columns=columns, names={**source.names, numbered.number.id: number})


def lower_interval_join(builder: Builder, join: LogicalJoin) -> Lowered:
    """Add the interval join, with a state for each side."""
    assert join.interval is not None
    by_clock = join.interval.processing_time
    left, right = builder.lower(join.left), builder.lower(join.right)
    columns = unique_names(join.fields)
    operator = model.IntervalJoin(
        id="",
        inputs=(left.id, right.id),
        join_type=cast(IntervalJoinType, join.join_type),
        keys=tuple(JoinKey(left=left.names[a.id], right=right.names[b.id]) for a, b in join.keys),
        condition=optional_text(join.condition, {**left.printed("l."), **right.printed("r.")}),
        left_time=None if by_clock else left.names[join.interval.left.id],
        right_time=None if by_clock else right.names[join.interval.right.id],
        processing_time=by_clock,
        lower=signed_text(join.interval.lower),
        upper=signed_text(join.interval.upper),
        output=join_columns(columns, join.items, left, right),
        changelog=(),
        state=builder.timed_states(("leftState", join.states[0], left), ("rightState", join.states[1], right)),
    )
    operator_id = builder.add(operator, "join", (*join.left.base, *join.right.base), join.block)
    return lowered(operator_id, join.fields, columns)


def lower_window_join(builder: Builder, join: LogicalJoin) -> Lowered:
    """Add the join of windows, with a state for each side."""
    assert join.windows is not None
    left, right = builder.lower(join.left), builder.lower(join.right)
    columns = unique_names(join.fields)
    operator = model.WindowJoin(
        id="",
        inputs=(left.id, right.id),
        join_type=join.join_type,
        keys=tuple(JoinKey(left=left.names[a.id], right=right.names[b.id]) for a, b in join.keys),
        condition=optional_text(join.condition, {**left.printed("l."), **right.printed("r.")}),
        window=join.windows[0].window,
        left_window=_columns(join.windows[0], left),
        right_window=_columns(join.windows[1], right),
        output=join_columns(columns, join.items, left, right),
        changelog=(),
        state=builder.timed_states(("leftState", join.states[0], left), ("rightState", join.states[1], right)),
    )
    operator_id = builder.add(operator, "join", (*join.left.base, *join.right.base), join.block)
    return lowered(operator_id, join.fields, columns)


def lower_temporal_join(builder: Builder, join: LogicalJoin, as_of: AsOf) -> Lowered:
    """Add the temporal join: its left rows go by the watermark, and its versions have a TTL."""
    left, right = builder.lower(join.left), builder.lower(join.right)
    columns = unique_names(join.fields)
    assert as_of.right_time is not None
    waiting = builder.timed_states(("leftState", join.states[0], left))
    versions = builder.states(("rightState", join.states[1], right))
    operator = model.TemporalJoin(
        id="",
        inputs=(left.id, right.id),
        join_type=join.join_type,
        keys=tuple(JoinKey(left=left.names[a.id], right=right.names[b.id]) for a, b in join.keys),
        left_time=left.names[as_of.left_time.id],
        right_time=right.names[as_of.right_time.id],
        versions=as_of.versions,
        condition=optional_text(join.condition, {**left.printed("l."), **right.printed("r.")}),
        output=join_columns(columns, join.items, left, right),
        changelog=(),
        state=(*waiting, *(replace(entry, index=1) for entry in versions)),
    )
    operator_id = builder.add(operator, "join", (*join.left.base, *join.right.base), join.block)
    return lowered(operator_id, join.fields, columns)
