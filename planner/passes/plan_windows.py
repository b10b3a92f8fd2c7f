"""Decides which aggregates, row numbers and joins work in windows.

- An aggregate of the start and the end of a window becomes an aggregate of that window. If only calcs lie between it
  and the window function, it takes the place of the function.
- A ROW_NUMBER() of each window becomes a row number that is emitted when the watermark passes the window.
- A ROW_NUMBER() without a limit numbers the rows of a stream in the order of their time, or of one column.
- A join that compares the start and the end of equal windows meets the rows of a window at once.

All others stay regular, with a TTL. The pass warns of them if they read a part of a window. As in Flink, windows of
processing time have aggregates right above the window function only, and no row numbers or joins.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hintplan.planner.context import Context
from hintplan.planner.expressions.typed import Expr, Field, FieldRef, Literal, is_deterministic, referenced_fields
from hintplan.planner.properties.fire import enabled_keys
from hintplan.planner.properties.stream_orders import stream_order
from hintplan.planner.properties.unique_keys import is_insert_only
from hintplan.planner.properties.windows import (
    WindowFields,
    equal_fields,
    grouped_window,
    joined_windows,
    ranked_window,
    windows_of,
)
from hintplan.planner.relations import (
    Fire,
    Item,
    LogicalAggregate,
    LogicalCalc,
    LogicalExpand,
    LogicalJoin,
    LogicalOver,
    LogicalRowNumber,
    LogicalWindow,
    LogicalWindowAggregate,
    OverItem,
    Relation,
    StateInput,
    StreamOrder,
    identity,
    map_inputs,
)

_BY_EVENT_TIME = "go by event time: declare a column with the time of a row, and a WATERMARK for it"


def plan_windows(context: Context, relation: Relation) -> Relation:
    """Replace the relations that work in windows, bottom up."""
    planned = map_inputs(relation, lambda below: plan_windows(context, below))
    match planned:
        case LogicalAggregate():
            return _aggregate(context, planned)
        case LogicalRowNumber():
            return _row_number(context, planned)
        case LogicalJoin():
            return _join(context, planned)
        case _:
            return planned


def _aggregate(context: Context, aggregate: LogicalAggregate) -> Relation:
    """Return ``aggregate`` as an aggregate of a window, with the same fields, if its groups belong to a window."""
    window = grouped_window(aggregate)
    attached = None if window is None else window.attached(aggregate.keys)
    below = None if window is None else _below_window(aggregate, window)
    needs_function = window is not None and (window.is_session or window.window.processing_time)
    if window is None or attached is None or (below is None and needs_function):
        _warn_of_regular(context, aggregate)
        return aggregate
    note_hint(context, aggregate.state)
    if not window.in_groups and not context.batch and (enabled := enabled_keys(context)):
        message = f"'{enabled[0]}' is for windows in GROUP BY: a window in FROM has no early and late results"
        advice = "write GROUP BY TUMBLE(ts, INTERVAL '5' MINUTE), or remove the key"
        raise context.source.error(message, aggregate.offset, advice)
    time = next((f for f in aggregate.keys if f.id in window.times), None)
    planned = LogicalWindowAggregate(
        input=aggregate.input if below is None else below.relation,
        keys=tuple(f for f in aggregate.keys if f.id not in window.ids),
        calls=aggregate.calls,
        window=window.window,
        time=None if below is None or window.window.processing_time else below.time,
        attached=attached if below is None else None,
        start=attached.start,
        end=attached.end,
        window_time=time,
        fire=None if below is None else below.fire,
        state=replace(aggregate.state, hint=None),
        base=aggregate.base,
        block=aggregate.block,
    )
    # The query may name a column of the window twice.
    columns = ((window.starts, attached.start), (window.ends, attached.end), (window.times, time))
    values = {each: field for ids, field in columns for each in ids if field is not None}
    items = tuple(Item(field=f, expr=FieldRef(field=values.get(f.id, f))) for f in aggregate.fields)
    return LogicalCalc(input=planned, filter=None, items=items, base=aggregate.base, block=aggregate.block)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Below:
    """A relation without its window function, whose rowtime is ``time``; ``lost`` are the fields that it lacks now."""

    relation: Relation
    time: Field
    lost: frozenset[int]
    is_session: bool
    fire: Fire | None


def _below_window(aggregate: LogicalAggregate, window: WindowFields) -> _Below | None:
    """Return the input of ``aggregate`` without the function that adds ``window``.

    Return None if anything else than the groups depends on the window, or if the function is further below.
    """
    below = _without_window(aggregate.input)
    if below is None:
        return None
    read = {f.id for call in aggregate.calls for f in (*call.arguments, call.filter) if f is not None}
    grouped = {f.id for f in aggregate.keys}
    is_own = grouped & window.ids <= below.lost
    return None if read & below.lost or not is_own else below


def _without_window(relation: Relation) -> _Below | None:
    """Return ``relation`` without its window function, if only calcs and expansions are above the function."""
    if isinstance(relation, LogicalWindow):
        lost = frozenset((relation.start.id, relation.end.id, relation.window_time.id))
        return _Below(
            relation=relation.input,
            time=relation.time,
            lost=lost,
            is_session=relation.is_session,
            fire=relation.fire,
        )
    if not isinstance(relation, LogicalCalc | LogicalExpand):
        return None
    below = _without_window(relation.input)
    if below is None:
        return None
    return _calc(relation, below) if isinstance(relation, LogicalCalc) else _expand(relation, below)


def _calc(calc: LogicalCalc, below: _Below) -> _Below | None:
    kept: list[Item] = []
    lost = set(below.lost)
    for item in calc.items:
        if isinstance(item.expr, FieldRef) and item.expr.field.id in below.lost:
            lost.add(item.field.id)
        elif is_deterministic(item.expr) and not _reads(item.expr, below.lost):
            kept.append(item)
        else:
            return None
    # A row that the filter drops still belongs to its session.
    fixed = below.is_session or not is_deterministic(calc.filter) if calc.filter is not None else False
    if calc.filter is not None and (fixed or _reads(calc.filter, below.lost)):
        return None
    if all(item.field != below.time for item in kept):
        kept += identity((below.time,))
    return replace(below, relation=replace(calc, input=below.relation, items=tuple(kept)), lost=frozenset(lost))


def _expand(expand: LogicalExpand, below: _Below) -> _Below | None:
    if any(_reads(item.expr, below.lost) for item in expand.keys):
        return None
    passed = tuple(f for f in expand.passed if f.id not in below.lost)
    if below.time not in passed:
        passed = (*passed, below.time)
    return replace(below, relation=replace(expand, input=below.relation, passed=passed))


def _reads(expression: Expr, fields: frozenset[int]) -> bool:
    return any(f.id in fields for f in referenced_fields(expression))


def _row_number(context: Context, numbered: LogicalRowNumber) -> Relation:
    """Return ``numbered`` as a row number of each window, if its partitions belong to a window."""
    window = ranked_window(numbered)
    attached = None if window is None else window.attached(numbered.partition)
    if window is None or attached is None or (numbered.last is None and numbered.end is None):
        _warn_of_regular_numbers(context, numbered)
        return _all_numbers(context, numbered) or numbered
    if window.window.processing_time:
        message = "ROW_NUMBER() of each window of processing time is not supported, by Flink neither"
        raise context.source.error(message, numbered.place, _BY_EVENT_TIME)
    if numbered.end is not None:
        message = f"the rows of a window take a constant largest number, found the column '{numbered.end.name}'"
        raise context.source.error(message, numbered.place, "write rn <= 3")
    if not is_insert_only(numbered.input):
        message = "ROW_NUMBER() of each window takes rows that are only added, but these rows can change"
        raise context.source.error(message, numbered.place, "aggregate the window first, or number without the window")
    return replace(numbered, attached=attached)


def _all_numbers(context: Context, numbered: LogicalRowNumber) -> Relation | None:
    """Return the window function that numbers all rows of a stream; None if the numbers have a limit, or another order.

    A batch job has no order of arrival, and numbers the rows later.
    """
    order = numbered.order
    has_limit = numbered.last is not None or numbered.end is not None
    if context.batch or has_limit or numbered.latest or any(key.descending for key in order) or len(order) > 1:
        return None
    kind: StreamOrder = stream_order(context, numbered.place, numbered.input, order[0].field) if order else "arrival"
    if kind != "column" and not is_insert_only(numbered.input):
        return None
    call = OverItem(field=numbered.number, function="ROW_NUMBER", argument=None)
    return LogicalOver(
        input=numbered.input,
        partition=tuple(field for field in numbered.partition if not _is_constant(numbered.input, field)),
        order=order,
        frame=None,
        calls=(call,) if numbered.is_shown else (),
        in_stream=kind,
        base=numbered.base,
        block=numbered.block,
    )


def _is_constant(relation: Relation, field: Field) -> bool:
    items = relation.items if isinstance(relation, LogicalCalc) else ()
    return any(item.field == field and isinstance(item.expr, Literal) for item in items)


def _join(context: Context, join: LogicalJoin) -> Relation:
    """Return ``join`` as a join of windows, if it compares the start and the end of equal windows."""
    if join.as_of is not None:
        return join
    windows = joined_windows(join)
    if windows is None:
        _warn_of_regular_join(context, join)
        return join
    if windows[0].window.processing_time:
        message = "a join of windows of processing time is not supported, by Flink neither"
        raise context.source.error(message, join.offset, _BY_EVENT_TIME)
    for side in (join.left, join.right):
        if not is_insert_only(side):
            message = (
                f"a join of windows takes rows that are only added, but rows of '{'_'.join(side.base)}' can change"
            )
            raise context.source.error(message, join.offset, "join aggregates of the windows instead")
    for state in join.states:
        note_hint(context, state)
    left, right = windows
    of_window = ((left.start, right.start), (left.end, right.end))
    keys = tuple(pair for pair in join.keys if pair not in of_window)
    states = (replace(join.states[0], hint=None), replace(join.states[1], hint=None))
    return replace(join, windows=windows, keys=keys, states=states)


def note_hint(
    context: Context,
    state: StateInput,
    reason: str = "its rows are kept until the watermark passes their window",
    advice: str = "remove it; the watermark's delay is in the table's WATERMARK",
) -> None:
    """Warn of a STATE_TTL hint for rows that leave the state by themselves; ``reason`` is how long they are kept."""
    if state.hint is None or context.batch:
        return
    context.ledger.losers[state.hint.offset] = ("refused", reason)
    message = f"STATE_TTL key '{state.name}' has no effect: {reason}"
    context.report.warn_of_hint(message, state.hint.offset, advice)


def _warn_of_regular(context: Context, aggregate: LogicalAggregate) -> None:
    """Warn if ``aggregate`` groups by a part of a window, and so keeps its groups by TTL."""
    keys = {f.id for f in aggregate.keys}
    windows = [window for window in windows_of(aggregate.input) if keys & window.ids]
    if not windows or context.batch:
        return
    window = windows[-1]
    message = "these groups have only a part of the window: this is a regular aggregation, whose groups never end"
    advice = "write GROUP BY window_start, window_end: then a group ends when the watermark passes its window"
    if keys & window.starts and keys & window.ends and window.window.processing_time:
        message = (
            "these windows of processing time are not right below their groups: this is a regular aggregation, whose "
            "groups never end"
        )
        advice = "group the rows of the window function"
    elif keys & window.starts and keys & window.ends:
        message = "these groups are not the sessions: this is a regular aggregation, whose groups never end"
        advice = (
            "group by the columns of PARTITION BY, window_start and window_end, and filter the table before SESSION"
        )
    context.report.warn(message, aggregate.offset, f"{advice}; or give its state a TTL")


def _warn_of_regular_numbers(context: Context, numbered: LogicalRowNumber) -> None:
    """Warn if ``numbered`` numbers the rows of a part of a window, and so keeps its rows by TTL."""
    keys = {f.id for f in numbered.partition}
    parts = [
        window for window in windows_of(numbered.input) if keys & window.ids and not window.attached(numbered.partition)
    ]
    if parts and not context.batch:
        message = "PARTITION BY has only a part of the window: these are regular first rows, whose state never ends"
        advice = "write PARTITION BY window_start, window_end: then the rows of a window are emitted when it closes"
        context.report.warn(message, numbered.place, f"{advice}; or give the state a TTL")


def _warn_of_regular_join(context: Context, join: LogicalJoin) -> None:
    """Warn if ``join`` compares parts of windows without being a join of windows."""
    pairs = tuple(equal_fields(join))
    if context.batch or not pairs:
        return
    left, right = (
        frozenset(each for window in windows_of(side) for each in window.ids) for side in (join.left, join.right)
    )
    if any(a.id in left and b.id in right for a, b in pairs):
        message = "this join compares windows, but not the start and the end of equal windows: it is a regular join"
        advice = "compare both window_start and window_end of equal windows, or give its states a TTL"
        context.report.warn(message, join.offset, advice)
