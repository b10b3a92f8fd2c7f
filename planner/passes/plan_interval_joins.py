"""Decides which joins are interval joins: ``a.ts BETWEEN b.ts - INTERVAL '1' HOUR AND b.ts``.

Both times must be rowtimes, or both the processing time. The watermark or the clock then limits how long the state
keeps a row. The pass inspects the conditions of a join before other passes split them. Other joins stay regular, with a
TTL; the pass warns of them if they compare two times, because their rows look as if they had an end.
"""

from __future__ import annotations

from dataclasses import replace

from hintplan.planner.context import Context
from hintplan.planner.expressions.typed import Field
from hintplan.planner.passes.plan_windows import note_hint
from hintplan.planner.properties.intervals import (
    BOUNDED_JOINS,
    BoundedTimes,
    bounded_times,
    compared_times,
)
from hintplan.planner.properties.rowtimes import interval_of, why_no_rowtime
from hintplan.planner.properties.time_attributes import clock_interval_of, is_processing_time, is_row_time
from hintplan.planner.properties.unique_keys import is_insert_only
from hintplan.planner.properties.windows import joined_windows
from hintplan.planner.relations import LogicalJoin, Relation, StateInput, map_inputs
from hintplan.plans.declarations.durations import format_duration
from hintplan.plans.operators.contract.timed import MOST_PRECISION
from hintplan.plans.settings.state import DEFAULT_STATE_TTL, STATE_TTL


def plan_interval_joins(context: Context, relation: Relation) -> Relation:
    """Give each join that bounds the rowtimes or the processing times of its sides its interval, bottom up."""
    planned = map_inputs(relation, lambda below: plan_interval_joins(context, below))
    if not isinstance(planned, LogicalJoin) or planned.join_type not in BOUNDED_JOINS:
        return planned
    bounded = interval_of(context, planned)
    if bounded is None:
        by_clock = None if context.batch else clock_interval_of(context, planned)
        if by_clock is not None:
            return _with_interval(context, planned, by_clock)
        _warn_of_regular(context, planned)
        return planned
    times = bounded.interval.left, bounded.interval.right
    if context.batch and (times[0].type.root != times[1].type.root or not all(map(_is_exact, times))):
        return planned
    _check_times(context, planned, bounded)
    return _with_interval(context, planned, bounded)


def _check_times(context: Context, join: LogicalJoin, bounded: BoundedTimes) -> None:
    times = bounded.interval.left, bounded.interval.right
    if times[0].type.root != times[1].type.root:
        message = (
            f"an interval join goes by rowtimes of one type, but '{times[0].name}' is {times[0].type.as_nullable()}, "
            f"and '{times[1].name}' is {times[1].type.as_nullable()}"
        )
        raise context.source.error(message, join.offset, "declare both as TIMESTAMP(3), or both as TIMESTAMP_LTZ(3)")
    for time in times:
        if not _is_exact(time):
            kind = time.type.as_nullable()
            message = f"a rowtime has at most {MOST_PRECISION} digits of a second, but '{time.name}' is {kind}"
            raise context.source.error(message, join.offset, f"declare it as {time.type.root}({MOST_PRECISION})")


def _with_interval(context: Context, join: LogicalJoin, bounded: BoundedTimes) -> LogicalJoin:
    for side in (join.left, join.right):
        if not is_insert_only(side) and not context.batch:
            message = f"an interval join takes rows that are only added, but rows of '{'_'.join(side.base)}' can change"
            advice = "join the rows before they change, or leave out one of the bounds: then it is a regular join"
            raise context.source.error(message, join.offset, advice)
    for state in join.states:
        if bounded.interval.processing_time:
            note_hint(context, state, "its rows are kept until they can meet no other row", "remove it")
        else:
            note_hint(context, state, "its rows are kept until the watermark has passed all times that they can meet")
    states = tuple(state if context.batch else _without_hint(state) for state in join.states)
    return replace(join, interval=bounded.interval, on=bounded.remaining, states=(states[0], states[1]))


def _without_hint(state: StateInput) -> StateInput:
    return replace(state, hint=None)


def _is_exact(time: Field) -> bool:
    return (time.type.precision or 0) <= MOST_PRECISION


def _warn_of_regular(context: Context, join: LogicalJoin) -> None:
    """Warn if ``join`` compares times of its sides without being an interval join."""
    if context.batch or joined_windows(join) is not None or all(state.hint is not None for state in join.states):
        return
    for bounded in bounded_times(join, join.on):
        left, right = bounded.interval.left, bounded.interval.right
        between = f"between '{left.name}' and '{right.name}'"
        if is_row_time(context, join.left, left) and is_row_time(context, join.right, right):
            lost = why_no_rowtime(context, join.left, left)
            time = right if lost is None else left
            lost = lost or why_no_rowtime(context, join.right, right)
            reason = "" if lost is None else f", but '{time.name}' is no rowtime: {lost.reason}"
            _warn(context, join, f"this join bounds the time {between}{reason}", bounded)
            return
    for each in compared_times(join, join.on):
        of_rows = is_row_time(context, join.left, each.left) and is_row_time(context, join.right, each.right)
        by_clock = is_processing_time(context, join.left, each.left.id) and is_processing_time(
            context, join.right, each.right.id
        )
        if of_rows or by_clock:
            between = f"'{each.left.name}' with '{each.right.name}'"
            what = f"this join compares {between}, but not with one lower and one upper bound"
            _warn(context, join, what, None)
            return


def _warn(context: Context, join: LogicalJoin, what: str, bounded: BoundedTimes | None) -> None:
    config = context.config.get(STATE_TTL, DEFAULT_STATE_TTL)
    kept = "never expires" if config == DEFAULT_STATE_TTL else f"is kept for {config} of processing time"
    names = [state.name for state in join.states]
    if bounded is None:
        hint = (
            "write both bounds once, such as a.ts BETWEEN b.ts - INTERVAL '1' HOUR AND b.ts; or give its states a TTL"
        )
    elif None in names:
        hint = "put each side of the join into a sub-query with an alias, and give both a STATE_TTL"
    else:
        interval = bounded.interval
        ttl = format_duration(max(abs(interval.lower), abs(interval.upper), 1000))
        keys = ", ".join(f"'{name}' = '{ttl}'" for name in names)
        hint = f"write SELECT /*+ STATE_TTL({keys}) */, or longer times for rows that come late"
    context.report.warn(f"{what}: it is a regular join, and its state {kept}", join.offset, hint)
