"""A watermark assigner: it passes its rows on, and notes the marks of their source.

In Arrow, a step looks at the rows before any filter above. In Spark, each row carries its mark in ``MARK_COLUMNS``. A
batch job has no watermark: it passes all rows on, also those whose rowtime is NULL, and its windows leave these out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hintplan.plans.declarations.types import parse_type
from hintplan.plans.operators import WatermarkAssigner
from hintplan.plans.text.nulls import rowtime_message
from hintplan.runtime.builders.builder import OperatorBuilder
from hintplan.runtime.builders.edges import Edges
from hintplan.runtime.engine.marks import KEEP, LAST, MARK, SOURCE, SPLIT, Marking
from hintplan.runtime.engine.rows import ArrowRows, EdgeRows
from hintplan.runtime.expressions.allowed import check_expression
from hintplan.runtime.expressions.checked import CheckedExpression
from hintplan.runtime.expressions.exact import exact_value
from hintplan.runtime.expressions.spark_columns import analysed, refusing, spark_expression
from hintplan.runtime.operator import DELETE, FOREVER, KIND
from hintplan.runtime.operators.calc import ArrowValue, Chosen, Computed
from hintplan.runtime.spark.names import quoted
from hintplan.runtime.types import to_arrow

_DAY, _HOUR, _MINUTE = 86_400_000, 3_600_000, 60_000


def _stream(operator: WatermarkAssigner, inputs: Sequence[EdgeRows], edges: Edges) -> EdgeRows:
    (rows,) = inputs
    base = _base(operator, edges)
    if operator.id not in edges.marks:
        return EdgeRows(lambda: _checked(operator, rows.frame, edges), _in_arrow(operator, rows, base, edges))
    return EdgeRows(
        lambda: _in_spark(operator, rows.frame, base, edges), _in_arrow(operator, rows, base, edges), marks=True
    )


def _batch(operator: WatermarkAssigner, inputs: Sequence[DataFrame], edges: Edges) -> DataFrame:
    (frame,) = inputs
    return frame


def _base(operator: WatermarkAssigner, edges: Edges) -> CheckedExpression:
    names: dict[tuple[str, ...], str] = {(name,): name for name in edges.names(operator.id)}
    return check_expression(operator.base, names, operator=operator.id, path=f"operators.{operator.id}.base")


def _in_arrow(operator: WatermarkAssigner, rows: EdgeRows, base: CheckedExpression, edges: Edges) -> ArrowRows | None:
    """Return the rows in Arrow; None if they are not, or if only Spark can compute the base."""
    value = None if rows.in_arrow is None else _arrow_value(operator, base, edges)
    if rows.in_arrow is None or value is None:
        return None
    marking = Marking(
        operator=operator.id,
        column=operator.column,
        base=value,
        source=[each.id for each in edges.plan.operators].index(operator.id),
        split=SPLIT if operator.inputs[0] in edges.splits else None,
    )
    return replace(rows.in_arrow.then(marking, edges.schema(operator.id)), marks=operator.id in edges.marks)


def _arrow_value(operator: WatermarkAssigner, base: CheckedExpression, edges: Edges) -> ArrowValue | None:
    schema = pa.schema([(column.name, to_arrow(column.type)) for column in edges.columns[operator.id]])
    columns = {quoted(name): name for name in schema.names}
    if base.sql in columns:
        return Chosen(columns[base.sql])
    exact = exact_value(base, schema, schema.field(operator.column).type)
    return None if exact is None else Computed(exact)


def _in_spark(operator: WatermarkAssigner, frame: DataFrame, base: CheckedExpression, edges: Edges) -> DataFrame:
    """Return the rows with their marks."""
    path = f"operators.{operator.id}.base"
    number = [each.id for each in edges.plan.operators].index(operator.id)
    split = F.col(SPLIT) if operator.inputs[0] in edges.splits else F.lit("")
    columns = (*map(quoted, edges.names(operator.id)), *edges.metadata(operator.id).names)
    with refusing(operator.id, path):
        return analysed(
            frame.select(
                *columns,
                F.lit(number).cast("int").alias(SOURCE),
                split.alias(SPLIT),
                _mark(operator, spark_expression(frame, base), edges).alias(MARK),
                F.lit(True).alias(KEEP),
            )
        )


def _mark(operator: WatermarkAssigner, base: SparkColumn, edges: Edges) -> SparkColumn:
    """Return the mark of a row in ms, which fails in Spark if the rowtime is NULL; FOREVER of the last row."""
    rowtime = F.col(quoted(operator.column))
    (kind,) = (column.type for column in edges.columns[operator.id] if column.name == operator.column)
    millis = F.unix_millis(base) if parse_type(kind).root == "TIMESTAMP_LTZ" else _wall_millis(base)
    failure = F.raise_error(rowtime_message(operator.id, operator.column)).cast("bigint")
    mark = F.when(_is_missing(operator, rowtime, edges), failure).otherwise(millis)
    if operator.inputs[0] not in edges.last_rows:
        return mark
    return F.greatest(mark, F.when(F.col(LAST), F.lit(FOREVER)))


def _is_missing(operator: WatermarkAssigner, rowtime: SparkColumn, edges: Edges) -> SparkColumn:
    """Return True for a row without a rowtime, except for a deletion, which may have the key only."""
    is_null = rowtime.isNull()
    return is_null & (F.col(KIND) != DELETE) if edges.changelog[operator.id] else is_null


def _wall_millis(time: SparkColumn) -> SparkColumn:
    """Return the ms from 1970 to a TIMESTAMP, as if it were in UTC.

    Spark's own functions would use the zone of the session.
    """
    days = F.unix_date(time.cast("date")).cast("bigint")
    millis = F.floor(F.extract(F.lit("SECOND"), time) * 1000).cast("bigint")
    return days * _DAY + F.hour(time) * _HOUR + F.minute(time) * _MINUTE + millis


def _checked(operator: WatermarkAssigner, frame: DataFrame, edges: Edges) -> DataFrame:
    """Return the rows of ``frame``, which fail in Spark if the rowtime of one is NULL."""
    rowtime = F.col(quoted(operator.column))
    failure = F.raise_error(rowtime_message(operator.id, operator.column)).cast(frame.schema[operator.column].dataType)
    value = F.when(_is_missing(operator, rowtime, edges), failure).otherwise(rowtime)
    checked = frame.withColumn(operator.column, value)
    return checked.drop(SPLIT) if operator.inputs[0] in edges.splits else checked


BUILDER = OperatorBuilder(stream=_stream, batch=_batch)
