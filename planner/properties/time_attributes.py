"""Finds Flink's time attributes: the processing time, and table columns with a WATERMARK."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from hintplan.planner.context import Context
from hintplan.planner.expressions import scalars
from hintplan.planner.expressions.typed import Expr, Field, FieldRef, factored_conjuncts, substitute
from hintplan.planner.properties.intervals import BoundedTimes
from hintplan.planner.properties.rowtimes import interval_of, possible_intervals
from hintplan.planner.properties.windows import grouped_window, joined_windows
from hintplan.planner.relations import (
    LogicalAggregate,
    LogicalCalc,
    LogicalCorrelate,
    LogicalExpand,
    LogicalJoin,
    LogicalLookupJoin,
    LogicalPassthrough,
    LogicalScan,
    LogicalUnion,
    LogicalUnnest,
    LogicalValues,
    LogicalWindow,
    LogicalWindowAggregate,
    Relation,
    inputs_of,
)
from hintplan.planner.syntax.source import Source


def is_processing_time(
    context: Context, relation: Relation, field: int, conditions: tuple[Expr, ...] = (), *, materialized: bool = False
) -> bool:
    """Return True if the field is the processing time of its row, whatever its origin.

    As in Flink, a regular join materializes processing times: they are plain times above it, because its rows may come
    later. With ``materialized``, they count, too. ``conditions`` come from calcs above.
    """
    match relation:
        case LogicalJoin() if not materialized and _is_regular(context, relation, conditions):
            expression = next((i.expr for i in relation.items if i.field.id == field), None)
            return expression is not None and not isinstance(expression, FieldRef) and _is_call(expression)
        case LogicalCalc() | LogicalJoin() | LogicalLookupJoin() | LogicalCorrelate() | LogicalUnnest():
            expression = next((i.expr for i in relation.items if i.field.id == field), None)
            if not isinstance(expression, FieldRef):
                return expression is not None and _is_call(expression)
            above = _moved(relation, conditions) if isinstance(relation, LogicalCalc) else ()
            below = (r for r in inputs_of(relation) if expression.field in r.fields)
            return any(
                is_processing_time(context, r, expression.field.id, above, materialized=materialized) for r in below
            )
        case LogicalUnion():
            position = next((i for i, f in enumerate(relation.fields) if f.id == field), None)
            return position is not None and all(
                is_processing_time(context, r, r.fields[position].id, materialized=materialized)
                for r in relation.inputs
            )
        case LogicalWindow() if field == relation.window_time.id:
            return relation.window.processing_time
        case LogicalWindowAggregate() if relation.window_time is not None and field == relation.window_time.id:
            return relation.window.processing_time
        case LogicalAggregate():
            grouped = grouped_window(relation)
            return grouped is not None and field in grouped.times and grouped.window.processing_time
        case LogicalPassthrough():
            return is_processing_time(context, relation.input, field, materialized=materialized)
        case LogicalScan() | LogicalValues() | LogicalWindowAggregate() | LogicalExpand():
            return False
        case _:
            assert_never(relation)


def _is_call(expression: Expr) -> bool:
    return expression == scalars.compile_function_call(Source(text=""), "PROCTIME", (), 0)


def _moved(calc: LogicalCalc, conditions: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Return the conditions of ``calc`` and those above it, over its input."""
    values = {item.field.id: item.expr for item in calc.items}
    return (*factored_conjuncts(calc.filter), *(substitute(condition, values) for condition in conditions))


def _is_regular(context: Context, join: LogicalJoin, conditions: tuple[Expr, ...]) -> bool:
    """Return True unless a join goes by windows, by an interval, or by versions."""
    if join.as_of is not None or joined_windows(join) is not None:
        return False
    bounded = interval_of(context, join, conditions) or clock_interval_of(context, join, conditions)
    return bounded is None


def clock_interval_of(context: Context, join: LogicalJoin, conditions: tuple[Expr, ...] = ()) -> BoundedTimes | None:
    """Return the interval of a join that bounds the processing times of its sides, and the remaining conditions.

    ``conditions`` come from calcs above, and belong to an inner join.
    """
    if join.interval is not None:
        return BoundedTimes(interval=join.interval, remaining=join.on) if join.interval.processing_time else None
    for bounded in possible_intervals(join, conditions):
        sides = (join.left, bounded.interval.left), (join.right, bounded.interval.right)
        if all(is_processing_time(context, side, time.id) for side, time in sides):
            return replace(bounded, interval=replace(bounded.interval, processing_time=True))
    return None


def is_row_time(context: Context, relation: Relation, field: Field) -> bool:
    """Return True if ``field`` of ``relation`` is a table's column with a WATERMARK."""
    if all(f.id != field.id for f in relation.fields):
        return False
    match relation:
        case LogicalScan():
            return _has_watermark(context, relation, field)
        case LogicalCalc():
            expression = next(i.expr for i in relation.items if i.field.id == field.id)
            if isinstance(expression, FieldRef):
                return is_row_time(context, relation.input, expression.field)
            if not isinstance(relation.input, LogicalScan):
                return False
            computed = {c.name for c in context.table(relation.input.table).computed}
            return field.name in computed and _has_watermark(context, relation.input, field)
        case LogicalJoin():
            expression = next(i.expr for i in relation.items if i.field.id == field.id)
            sides = (relation.left, relation.right)
            return isinstance(expression, FieldRef) and any(
                is_row_time(context, side, expression.field) for side in sides
            )
        case _:
            return any(is_row_time(context, below, field) for below in inputs_of(relation))


def _has_watermark(context: Context, scan: LogicalScan, field: Field) -> bool:
    watermark = context.table(scan.table).table.watermark
    return watermark is not None and watermark.column == field.name
