"""A calc: Spark computes it, or Arrow if its input rows are already in Arrow and Arrow can.

Expressions are checked before either evaluates them.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hintplan.plans.operators import Calc, SelectItem
from hintplan.runtime.builders.builder import OperatorBuilder
from hintplan.runtime.builders.calc_in_arrow import Check, arrow_calc, check_over
from hintplan.runtime.builders.edges import Edges
from hintplan.runtime.engine.marks import KEEP
from hintplan.runtime.engine.rows import EdgeRows
from hintplan.runtime.expressions.spark_columns import SPARK_ERRORS, analysed, refusing, spark_expression
from hintplan.runtime.spark.names import quoted
from hintplan.runtime.types import to_spark


def calc_in_spark(operator: Calc, inputs: Sequence[DataFrame], edges: Edges) -> DataFrame:
    """Return the rows of the only input that pass the filter, with the selected columns and their metadata."""
    return _in_spark(operator, inputs[0], edges, check_over(operator, edges.names(operator.inputs[0])), marks=False)


def _in_spark(operator: Calc, frame: DataFrame, edges: Edges, check: Check, *, marks: bool) -> DataFrame:
    """Compute the calc in Spark. A row with ``marks`` that the filter drops stays for its mark, and is not computed."""
    path = f"operators.{operator.id}"
    counts = F.col(KEEP)

    def expression(text: str, where: str) -> SparkColumn:
        checked = check(text, where)
        with refusing(operator.id, f"{path}.{where}"):
            return spark_expression(frame, checked)

    def item(index: int, item: SelectItem) -> SparkColumn:
        if item.expression is None:
            return F.col(quoted(item.name))
        computed = expression(item.expression, f"select[{index}].expression")
        if item.type is not None:
            computed = computed.cast(to_spark(item.type))
        return (F.when(counts, computed) if marks else computed).alias(item.name)

    if operator.filter is not None:
        condition = expression(operator.filter, "filter")
        with refusing(operator.id, f"{path}.filter"):
            frame = analysed(keeping(frame, condition) if marks else frame.where(condition))
    selected = [item(index, selection) for index, selection in enumerate(operator.select)]
    metadata = (edges.spark_metadata if marks else edges.metadata)(operator.id)
    try:
        return analysed(frame.select(*selected, *metadata.names))
    except SPARK_ERRORS:
        for index, column in enumerate(selected):
            with refusing(operator.id, f"{path}.select[{index}].expression"):
                analysed(frame.select(column))
        raise


def keeping(frame: DataFrame, condition: SparkColumn) -> DataFrame:
    """Return all rows of a ``frame`` with marks, where a row still counts only if it satisfies ``condition``."""
    passes = F.coalesce(F.when(F.col(KEEP), condition), F.lit(False))
    return frame.withColumn(KEEP, passes)


def _stream(operator: Calc, inputs: Sequence[EdgeRows], edges: Edges) -> EdgeRows:
    columns, below = edges.columns[operator.inputs[0]], inputs[0].in_arrow
    marks = inputs[0].marks and operator.id in edges.marks
    check = check_over(operator, [column.name for column in columns])

    def in_spark() -> DataFrame:
        return _in_spark(operator, inputs[0].frame, edges, check, marks=marks)

    if below is not None:
        calc = arrow_calc(operator, columns, edges.metadata(operator.id).names, check)
        if calc is not None:
            return EdgeRows(in_spark, below.then(calc, edges.schema(operator.id)), marks=marks)
    rows = EdgeRows(in_spark, marks=marks)
    _ = rows.frame  # built now, so that errors are raised here
    return rows


BUILDER = OperatorBuilder(stream=_stream, batch=calc_in_spark, condition=lambda calc: calc.filter)
