"""Decides if a field is a rowtime: a table's column with a WATERMARK, which the query has passed on unchanged.

Only then does the watermark of the table hold for the rows. As in Flink, a rowtime passes through columns, filters,
UNION ALL, lookups and the first or last row of each key; a window has a rowtime of its own, ``window_time``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never

from hintplan.planner.context import Context
from hintplan.planner.expressions.typed import Call, Expr, Field, FieldRef, factored_conjuncts, substitute
from hintplan.planner.properties.intervals import BOUNDED_JOINS, BoundedTimes, bounded_times
from hintplan.planner.properties.windows import grouped_window, joined_windows, ranked_window, windows_of
from hintplan.planner.relations import (
    Item,
    LogicalAggregate,
    LogicalCalc,
    LogicalCorrelate,
    LogicalExpand,
    LogicalJoin,
    LogicalLookupJoin,
    LogicalOver,
    LogicalPassthrough,
    LogicalRowNumber,
    LogicalScan,
    LogicalUnion,
    LogicalUnnest,
    LogicalValues,
    LogicalWindow,
    LogicalWindowAggregate,
    Relation,
    identity,
)

_DECLARE = "declare WATERMARK FOR ts AS ts - INTERVAL '5' SECOND in its table"
_UNCHANGED = "pass the column on unchanged; a computed column of the table can have the WATERMARK"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """The reason why a field is no rowtime, and what to write; ``instead`` is the rowtime of its table."""

    reason: str
    advice: str
    instead: str | None = None


def why_no_rowtime(
    context: Context, relation: Relation, field: Field, conditions: tuple[Expr, ...] = ()
) -> Lost | None:
    """Return why ``field`` of ``relation`` is no rowtime, or None if it is one.

    ``conditions`` come from calcs above, and may limit the numbers of rows.
    """
    match relation:
        case LogicalScan():
            return _of_scan(context, relation, field)
        case LogicalCalc():
            return _of_calc(context, relation, field, conditions)
        case LogicalLookupJoin() | LogicalCorrelate() | LogicalUnnest():
            return _of_item(context, relation.input, relation.items, field)
        case LogicalValues():
            return Lost(reason="it is a value of the query itself", advice=_DECLARE)
        case LogicalJoin():
            return _of_join(context, relation, field, conditions)
        case LogicalExpand():
            return _passed(context, relation.input, relation.passed, field)
        case LogicalAggregate():
            window = grouped_window(relation)
            if window is not None and field.id in window.ids:
                return why_no_rowtime(context, relation.input, field)
            return _aggregated(relation.keys, field)
        case LogicalWindowAggregate():
            if relation.window_time is not None and relation.window_time.id == field.id:
                return None
            return _aggregated(relation.keys, field)
        case LogicalUnion():
            place = next(i for i, f in enumerate(relation.fields) if f.id == field.id)
            lost = (why_no_rowtime(context, each, each.fields[place]) for each in relation.inputs)
            return next((each for each in lost if each is not None), None)
        case LogicalRowNumber():
            return _of_numbers(context, relation, field, conditions)
        case LogicalWindow():
            if field.id in (relation.start.id, relation.end.id):
                which = "start" if field.id == relation.start.id else "end"
                return Lost(reason=f"it is the {which} of a window", advice="write window_time, the window's rowtime")
            is_own = field.id == relation.window_time.id
            if relation.is_session and not is_own:
                return _PASSED
            return why_no_rowtime(context, relation.input, relation.time if is_own else field)
        case LogicalOver() if relation.in_stream == "column":
            reason = "it comes from OVER by another column, whose rows may change at any time"
            return Lost(reason=reason, advice="order by the rowtime, or put the window below OVER")
        case LogicalPassthrough():
            return _passed(context, relation.input, relation.input.fields, field)
        case _:
            assert_never(relation)


def _of_scan(context: Context, scan: LogicalScan, field: Field) -> Lost | None:
    watermark = context.table(scan.table).table.watermark
    if watermark is None:
        advice = f"declare WATERMARK FOR {field.name} AS {field.name} - INTERVAL '5' SECOND in table '{scan.declared}'"
        return Lost(reason=f"table '{scan.declared}' has no WATERMARK", advice=advice)
    if watermark.column != field.name:
        reason = f"the WATERMARK of table '{scan.declared}' is for '{watermark.column}'"
        advice = f"write DESCRIPTOR({watermark.column}), or change the WATERMARK"
        return Lost(reason=reason, advice=advice, instead=watermark.column)
    return None


_PASSED = Lost(
    reason="its rows come only when the watermark has passed their window",
    advice="write window_time, the window's rowtime",
)


def interval_of(context: Context, join: LogicalJoin, conditions: tuple[Expr, ...] = ()) -> BoundedTimes | None:
    """Return the interval of a join that bounds the rowtimes of its sides, and the remaining conditions; else None.

    ``conditions`` come from calcs above, and belong to an inner join.
    """
    if join.interval is not None:
        return None if join.interval.processing_time else BoundedTimes(interval=join.interval, remaining=join.on)
    for bounded in possible_intervals(join, conditions):
        sides = (join.left, bounded.interval.left), (join.right, bounded.interval.right)
        if all(why_no_rowtime(context, side, time) is None for side, time in sides):
            return bounded
    return None


def possible_intervals(join: LogicalJoin, conditions: tuple[Expr, ...]) -> Iterator[BoundedTimes]:
    """Yield the bounds of a join on times of its sides, whatever the times are, with the remaining conditions.

    ``conditions`` come from calcs above, and belong to an inner join.
    """
    if join.join_type not in BOUNDED_JOINS or join.as_of is not None or joined_windows(join) is not None:
        return
    above: tuple[Expr, ...] = ()
    if join.join_type == "inner":
        values = {i.field.id: i.expr for i in join.items}
        above = tuple(substitute(condition, values) for condition in conditions)
    yield from bounded_times(join, (*join.on, *above))


def _of_join(context: Context, join: LogicalJoin, field: Field, conditions: tuple[Expr, ...]) -> Lost | None:
    """Return the same for a join, through which the time of joined windows passes, the times of an interval, or the
    left time of a temporal join.
    """
    expression = next(i.expr for i in join.items if i.field.id == field.id)
    if join.as_of is not None and isinstance(expression, FieldRef):
        if expression.field in join.left.fields:
            return why_no_rowtime(context, join.left, expression.field)
        return Lost(reason="it is the time of a version", advice="take the time of the left side of the temporal join")
    bounded = interval_of(context, join, conditions)
    if bounded is not None and isinstance(expression, FieldRef):
        times = bounded.interval.left, bounded.interval.right
        if expression.field.id in (time.id for time in times):
            return None
        names = " and ".join(f"'{time.name}'" for time in times)
        return Lost(reason=f"it has passed a join by {names}", advice="name one of the two times of the interval join")
    windows = joined_windows(join)
    if windows is None or not isinstance(expression, FieldRef):
        reason = "it has passed a join, whose rows may come at any time"
        return Lost(reason=reason, advice="put the window below the join, or join windows by their start and end")
    if all(field.id not in window.times for window in windows_of(join)):
        return _PASSED
    side = join.left if expression.field in join.left.fields else join.right
    return why_no_rowtime(context, side, expression.field)


def _of_calc(context: Context, calc: LogicalCalc, field: Field, conditions: tuple[Expr, ...]) -> Lost | None:
    values = {i.field.id: i.expr for i in calc.items}
    expression = values[field.id]
    if isinstance(expression, FieldRef):
        moved = tuple(substitute(condition, values) for condition in conditions)
        return _passed(
            context, calc.input, calc.input.fields, expression.field, (*factored_conjuncts(calc.filter), *moved)
        )
    scan = _below_filters(calc.input)
    if isinstance(scan, LogicalScan) and _computes_declared(context, scan, field):
        return _of_scan(context, scan, field)
    if isinstance(expression, Call) and expression.function == "CAST":
        return Lost(reason="a CAST makes a plain time of it", advice=_UNCHANGED)
    return Lost(reason="an expression computes it", advice=_UNCHANGED)


def _below_filters(relation: Relation) -> Relation:
    """Return the relation below calcs that only filter, which a pass may have pushed below computed columns."""
    while isinstance(relation, LogicalCalc) and relation.items == identity(relation.input.fields):
        relation = relation.input
    return relation


def _computes_declared(context: Context, scan: LogicalScan, field: Field) -> bool:
    """Return True if the calc above ``scan`` computes ``field`` as a computed column of the table."""
    return any(column.name == field.name for column in context.table(scan.table).computed)


def _of_item(context: Context, below: Relation, items: tuple[Item, ...], field: Field) -> Lost | None:
    expression = next(i.expr for i in items if i.field.id == field.id)
    if not isinstance(expression, FieldRef):
        return Lost(reason="an expression computes it", advice=_UNCHANGED)
    return _passed(context, below, below.fields, expression.field)


def _passed(
    context: Context, below: Relation, fields: tuple[Field, ...], field: Field, conditions: tuple[Expr, ...] = ()
) -> Lost | None:
    if field not in fields:
        return Lost(reason="it is no column of a table with a WATERMARK", advice=_DECLARE)
    return why_no_rowtime(context, below, field, conditions)


def _aggregated(keys: tuple[Field, ...], field: Field) -> Lost:
    what = "it is a key of GROUP BY" if field in keys else "an aggregate computes it"
    return Lost(reason=what, advice="group by a window, and write window_time, the window's rowtime")


def _of_numbers(
    context: Context, numbered: LogicalRowNumber, field: Field, conditions: tuple[Expr, ...]
) -> Lost | None:
    """Return the same for a query with ROW_NUMBER(): only the first or the last row by the rowtime passes it on."""
    taken = numbered.offered(conditions)
    limited: Relation = numbered if taken is None else taken[0]
    if isinstance(limited, LogicalCalc):  # the number is constant
        limited = limited.input
    assert isinstance(limited, LogicalRowNumber)
    window = ranked_window(numbered)
    if window is not None and field.id not in window.times:
        return _PASSED
    is_first = limited.is_at_watermark and limited.order[0].field.id == field.id
    if window is None and not is_first and not is_last_by_time(limited, field):
        reason = "it has passed ROW_NUMBER(), whose rows may change at any time"
        return Lost(reason=reason, advice="put the window below ROW_NUMBER(), and number the rows of each window")
    return _passed(context, numbered.input, numbered.input.fields, field)


def is_last_by_time(numbered: LogicalRowNumber, time: Field | None = None) -> bool:
    """Return True if ``numbered`` keeps the last row of each key by ``time``, or by any time."""
    order = numbered.order
    is_last = numbered.is_first_only and len(order) == 1 and order[0].descending
    return is_last and (time is None or order[0].field.id == time.id)
