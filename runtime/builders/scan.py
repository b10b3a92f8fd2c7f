"""A scan: its connector reads the table, in Arrow if it can and if the order of rows does not matter."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame

from hintplan.plans.analysis.scan_readers import why_spark_scans
from hintplan.plans.declarations.tables import Table
from hintplan.plans.operators import Scan
from hintplan.runtime.builders.backend import Reading
from hintplan.runtime.builders.builder import OperatorBuilder, from_frames
from hintplan.runtime.builders.edges import Edges
from hintplan.runtime.builders.late_rows import reading_more, with_source_rows
from hintplan.runtime.connectors import table as connectors
from hintplan.runtime.engine.rows import EdgeRows
from hintplan.runtime.expressions.allowed import check_expression
from hintplan.runtime.expressions.pushed_filter import PushedFilter
from hintplan.runtime.expressions.source_filter import compile_asked


def _stream(operator: Scan, inputs: Sequence[EdgeRows], edges: Edges) -> EdgeRows:
    return with_source_rows(operator, _rows(reading_more(operator, edges), inputs, edges), edges)


def _rows(operator: Scan, inputs: Sequence[EdgeRows], edges: Edges) -> EdgeRows:
    if operator.id in edges.ordered_by_scan:
        return _as_arrived(operator, edges)
    in_arrow = edges.backend.read_in_arrow(_reading(operator, edges))
    if in_arrow is not None:
        return EdgeRows(lambda: _read(operator, [], edges), in_arrow)
    return from_frames(_read)(operator, inputs, edges)


def _as_arrived(operator: Scan, edges: Edges) -> EdgeRows:
    """Return the changes in their order of arrival, all changes of a key in one task.

    Without a primary key of flat types, all changes of equal rows are in one task.
    """
    schema, primary_key = edges.schema(operator.id), edges.plan.tables[operator.table].primary_key
    data = schema.names[: len(operator.columns)]
    # Equal values of nested types may have different encodings, which would be hashed to different tasks.
    flat = [name for name in data if not pa.types.is_nested(schema.field(name).type)]
    key = primary_key if primary_key and {*primary_key} <= {*flat} else flat
    made = edges.backend.arrived(_reading(operator, edges), schema, key)
    return EdgeRows(lambda: made.in_spark(operator.id), made)


def _read(operator: Scan, inputs: Sequence[DataFrame], edges: Edges) -> DataFrame:
    return edges.backend.read(_reading(operator, edges))


def _reading(operator: Scan, edges: Edges) -> Reading:
    table = edges.plan.tables[operator.table]
    return Reading(
        scan=operator,
        table=table,
        row_order=operator.id in edges.row_order or operator.id in edges.ordered_by_scan,
        splits=operator.id in edges.splits,
        last_row=operator.id in edges.last_rows,
        pins=edges.pins.get(operator.id),
        pushed_filter=_pushed_filter(operator, table),
        why_spark=why_spark_scans(edges.plan, operator),
        objects=edges.objects,
    )


def _batch(operator: Scan, inputs: Sequence[DataFrame], edges: Edges) -> DataFrame:
    table = edges.plan.tables[operator.table]
    pushed_filter = _pushed_filter(operator, table)
    return connectors.read_batch(
        edges.spark, operator.table, table, operator.columns, pushed_filter=pushed_filter, objects=edges.objects
    )


def _pushed_filter(operator: Scan, table: Table) -> PushedFilter | None:
    """Return the filter that the source evaluates; RunError if it cannot evaluate it, or if it may not run."""
    if operator.filter is None:
        return None
    path = f"operators.{operator.id}.filter"
    names: dict[tuple[str, ...], str] = {(name,): name for name in operator.columns}
    checked = check_expression(operator.filter, names, operator=operator.id, path=path)
    types = {column.name: column.type for column in table.columns if column.name in operator.columns}
    return compile_asked(checked, types)


BUILDER = OperatorBuilder(stream=_stream, batch=_batch)
