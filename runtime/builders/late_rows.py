"""Late rows that go to a table: the rows of sources that travel with the rows made of them, and where the two part.

A scan adds its rows as a column, which operators pass on as metadata. An operator that goes by event time emits the
rows that it drops after its results (:mod:`hintplan.runtime.operators.late_rows`). In a batch job no row is late.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type

from hintplan.plans.operators import LateRows, Operator, Scan
from hintplan.plans.operators.late_rows import OPERATOR, WATERMARK
from hintplan.runtime.builders.builder import OperatorBuilder
from hintplan.runtime.builders.edges import Edges
from hintplan.runtime.engine.rows import ArrowRows, EdgeRows
from hintplan.runtime.operators.late_rows import Columns, Late, OnTime, WithSourceRows, late_column
from hintplan.runtime.spark.names import quoted


def reading_more(scan: Scan, edges: Edges) -> Scan:
    """Return ``scan`` with the further columns of its table that late rows need."""
    row = edges.carried.get(scan.id)
    if row is None:
        return scan
    more = (row.field(index).name for index in range(row.num_fields))
    return replace(scan, columns=tuple(dict.fromkeys((*scan.columns, *more))))


def with_source_rows(scan: Scan, rows: EdgeRows, edges: Edges) -> EdgeRows:
    """Return the rows of a scan that reads more, with its own columns and its rows as a column."""
    row = edges.carried.get(scan.id)
    if row is None:
        return rows
    in_arrow, schema = rows.in_arrow, edges.schema(scan.id)
    if in_arrow is not None:
        in_arrow = in_arrow.then(WithSourceRows(late_column(scan.id), row, schema), schema)
    return EdgeRows(lambda: _in_spark(scan, rows.frame, row, schema), in_arrow)


def _in_spark(scan: Scan, frame: DataFrame, row: pa.StructType, schema: pa.Schema) -> DataFrame:
    fields = (F.col(quoted(row.field(index).name)) for index in range(row.num_fields))
    whole = F.struct(*fields).cast(from_arrow_type(row, prefer_timestamp_ntz=True))
    return frame.withColumn(late_column(scan.id), whole).select(*map(quoted, schema.names))


def without_source_rows(name: str, rows: EdgeRows, edges: Edges) -> EdgeRows:
    """Return the rows of the operator ``name`` for a reader that does not pass rows of sources on."""
    columns = edges.late_columns(name).names
    if not columns:
        return rows
    in_arrow = rows.in_arrow
    if in_arrow is not None:
        schema = pa.schema([field for field in in_arrow.schema if field.name not in columns])
        in_arrow = in_arrow.then(Columns(schema.names), schema)
    return EdgeRows(lambda: rows.frame.drop(*columns), in_arrow, marks=rows.marks)


def results_only(operator: Operator, rows: EdgeRows, edges: Edges) -> EdgeRows:
    """Return ``rows``, in which an operator emits its results and its late rows, without the late rows."""
    schema = edges.schema(operator.id)
    made = _arrow_rows(rows).then(OnTime(schema), schema)
    return EdgeRows(lambda: made.in_spark(operator.id), made, marks=rows.marks)


def _stream(operator: LateRows, inputs: Sequence[EdgeRows], edges: Edges) -> EdgeRows:
    schema = edges.schema(operator.id)
    made = [
        _arrow_rows(rows).then(
            Late(operator=name, scans=operator.scans, names=(OPERATOR, WATERMARK), schema=schema), schema
        )
        for name, rows in zip(operator.inputs, inputs, strict=True)
    ]
    if len(made) == 1:
        return EdgeRows(lambda: made[0].in_spark(operator.id), made[0])
    frames = [rows.in_spark(f"{operator.id} of {name}") for name, rows in zip(operator.inputs, made, strict=True)]
    return EdgeRows(lambda: reduce(DataFrame.unionAll, frames))


def _arrow_rows(rows: EdgeRows) -> ArrowRows:
    assert rows.in_arrow is not None  # a kernel on the engine makes them
    return rows.in_arrow


BUILDER = OperatorBuilder(stream=_stream, batch=None)
