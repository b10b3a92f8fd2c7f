"""Finds Flink's time attributes: the processing time, and table columns with a WATERMARK."""

from __future__ import annotations

from typing import assert_never

from hintplan.planner.context import Context
from hintplan.planner.expressions import scalars
from hintplan.planner.expressions.typed import Field, FieldRef
from hintplan.planner.properties.windows import grouped_window
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


def is_processing_time(relation: Relation, field: int) -> bool:
    """Return True if the field is the processing time of its row, whatever its origin."""
    match relation:
        case LogicalCalc() | LogicalJoin() | LogicalLookupJoin() | LogicalCorrelate() | LogicalUnnest():
            expression = next((i.expr for i in relation.items if i.field.id == field), None)
            if not isinstance(expression, FieldRef):
                return expression is not None and expression == scalars.compile_function_call(
                    Source(text=""), "PROCTIME", (), 0
                )
            below = (r for r in inputs_of(relation) if expression.field in r.fields)
            return any(is_processing_time(r, expression.field.id) for r in below)
        case LogicalUnion():
            position = next((i for i, f in enumerate(relation.fields) if f.id == field), None)
            return position is not None and all(is_processing_time(r, r.fields[position].id) for r in relation.inputs)
        case LogicalWindow() if field == relation.window_time.id:
            return relation.window.processing_time
        case LogicalWindowAggregate() if relation.window_time is not None and field == relation.window_time.id:
            return relation.window.processing_time
        case LogicalAggregate():
            grouped = grouped_window(relation)
            return grouped is not None and field in grouped.times and grouped.window.processing_time
        case LogicalPassthrough():
            return is_processing_time(relation.input, field)
        case LogicalScan() | LogicalValues() | LogicalWindowAggregate() | LogicalExpand():
            return False
        case _:
            assert_never(relation)


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
