"""A sink: the rows of its input, checked for NULL in the NOT NULL columns of the table.

The code that starts queries and jobs chooses the connector that writes the rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from hintplan.plans.declarations.tables import required_columns, written_columns
from hintplan.plans.operators import Sink
from hintplan.plans.text.nulls import null_message
from hintplan.runtime.builders.builder import OperatorBuilder
from hintplan.runtime.builders.edges import Edges
from hintplan.runtime.engine.marks import LAST, SPLIT
from hintplan.runtime.engine.rows import EdgeRows
from hintplan.runtime.kernels.not_null import ADDING, NotNull
from hintplan.runtime.operator import KIND
from hintplan.runtime.operators.calc import ArrowCalc, Chosen
from hintplan.runtime.spark.names import quoted


def _stream(operator: Sink, inputs: Sequence[EdgeRows], edges: Edges) -> EdgeRows:
    rows = _without_event_time(inputs[0], edges.metadata(operator.inputs[0]).names)
    required = _required(operator, edges)
    if not required:
        return rows
    in_arrow = rows.in_arrow
    if in_arrow is not None:
        in_arrow = in_arrow.then(NotNull(table=operator.table, columns=required), in_arrow.schema)
    return EdgeRows(lambda: _checked(operator, rows.frame, edges), in_arrow)


def _without_event_time(rows: EdgeRows, metadata: Sequence[str]) -> EdgeRows:
    """Return the rows of a scan without the columns that only a watermark assigner above the same scan reads."""
    unwanted = {SPLIT, LAST}.intersection(metadata)
    if not unwanted:
        return rows
    in_arrow = rows.in_arrow
    if in_arrow is not None:
        schema = pa.schema([field for field in in_arrow.schema if field.name not in unwanted])
        columns = tuple((name, Chosen(name)) for name in schema.names)
        in_arrow = in_arrow.then(ArrowCalc(columns=columns, condition=None), schema)
    return EdgeRows(lambda: rows.frame.drop(*unwanted), in_arrow)


def _batch(operator: Sink, inputs: Sequence[DataFrame], edges: Edges) -> DataFrame:
    (frame,) = inputs
    return _checked(operator, frame, edges)


def _checked(operator: Sink, frame: DataFrame, edges: Edges) -> DataFrame:
    """Return the rows of ``frame``, which fail in Spark if an added row has NULL in a required column."""
    required = _required(operator, edges)
    if not required:
        return frame
    added = F.col(KIND).isin(*ADDING) if KIND in frame.columns else F.lit(True)
    # A projection, not a filter: Spark would evaluate a filter below joins and other filters, on rows that they drop.
    return frame.withColumns({name: _or_failure(operator.table, name, added, frame) for name in required})


def _or_failure(table: str, name: str, added: Column, frame: DataFrame) -> Column:
    value = F.col(quoted(name))
    failure = F.raise_error(null_message(table, name)).cast(frame.schema[name].dataType)
    return F.when(value.isNull() & added, failure).otherwise(value)


def _required(operator: Sink, edges: Edges) -> tuple[str, ...]:
    table = edges.plan.tables[operator.table]
    return required_columns(written_columns(table), table.primary_key)


BUILDER = OperatorBuilder(stream=_stream, batch=_batch)
