"""A calc: Spark computes it, or Arrow if its input rows are already in Arrow.

Arrow computes a calc only if every expression has the same meaning there as in SQL and cannot fail
(:mod:`hintplan.runtime.expressions.exact`). The day of a TIMESTAMP as text is also allowed. Spark computes any other
calc as a whole. Expressions are checked before either evaluates them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hintplan.plans.declarations.tables import Column
from hintplan.plans.operators import Calc, SelectItem
from hintplan.runtime.builders.builder import OperatorBuilder
from hintplan.runtime.builders.edges import Edges
from hintplan.runtime.engine.marks import KEEP
from hintplan.runtime.engine.rows import EdgeRows
from hintplan.runtime.expressions.allowed import check_expression
from hintplan.runtime.expressions.checked import CheckedExpression
from hintplan.runtime.expressions.condition import compile_filter
from hintplan.runtime.expressions.exact import exact_value, is_exact
from hintplan.runtime.expressions.json_calls import rows_at_once
from hintplan.runtime.expressions.spark_columns import SPARK_ERRORS, analysed, refusing, spark_expression
from hintplan.runtime.operators.calc import ArrowCalc, ArrowValue, Chosen, Computed, Day
from hintplan.runtime.spark.names import quoted
from hintplan.runtime.types import to_arrow, to_spark

Check = Callable[[str, str], CheckedExpression]
"""Checks an expression of a calc, given its text and its place below the operator."""

_DAY = re.compile(r"date_format ?\( ?(`.+`) ?, ?'yyyy-MM-dd' ?\)", re.IGNORECASE | re.DOTALL)


def calc_in_spark(operator: Calc, inputs: Sequence[DataFrame], edges: Edges) -> DataFrame:
    """Return the rows of the only input that pass the filter, with the selected columns and their metadata."""
    return _in_spark(operator, inputs[0], edges, _check_over(operator, edges.names(operator.inputs[0])), marks=False)


def calc_in_arrow(operator: Calc, columns: Sequence[Column], metadata: Sequence[str]) -> ArrowCalc | None:
    """Return ``operator`` over rows with ``columns`` and ``metadata``, or None if only Spark can compute it.

    The calc passes ``metadata`` on. Raise RunError for an expression that may not run.
    """
    return _in_arrow(operator, columns, metadata, _check_over(operator, [column.name for column in columns]))


def _check_over(operator: Calc, names: Iterable[str]) -> Check:
    """Return the check of the operator's expressions over these columns, which remembers what it has checked."""
    input_columns: dict[tuple[str, ...], str] = {(name,): name for name in names}

    @cache
    def check(text: str, where: str) -> CheckedExpression:
        return check_expression(text, input_columns, operator=operator.id, path=f"operators.{operator.id}.{where}")

    return check


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


def _in_arrow(operator: Calc, columns: Sequence[Column], metadata: Sequence[str], check: Check) -> ArrowCalc | None:
    schema = pa.schema([(column.name, to_arrow(column.type)) for column in columns])
    values: list[tuple[str, ArrowValue]] = []
    texts = [operator.filter or "", *(item.expression or "" for item in operator.select)]
    for index, item in enumerate(operator.select):
        value = _value(item, f"select[{index}].expression", schema, check)
        if value is None:
            return None
        values.append((item.name, value))
    condition = None
    if operator.filter is not None:
        expression = check(operator.filter, "filter")
        if not is_exact(expression, schema):
            return None
        condition = compile_filter(expression, schema)
    chosen = ((name, Chosen(name)) for name in metadata)
    return ArrowCalc(columns=(*values, *chosen), condition=condition, at_once=rows_at_once(texts))


def _value(item: SelectItem, where: str, schema: pa.Schema, check: Check) -> ArrowValue | None:
    """Return the function that computes the ``item`` at ``where`` in Arrow; None if only Spark can."""
    wanted = None if item.type is None else to_arrow(item.type)
    if item.expression is None and item.name in schema.names and wanted in (None, schema.field(item.name).type):
        return Chosen(item.name)
    expression = check(item.expression or quoted(item.name), where)
    columns = {quoted(name): name for name in schema.names}
    if expression.sql in columns:
        source = columns[expression.sql]
        if wanted in (None, schema.field(source).type):
            return Chosen(source)
    day = _DAY.fullmatch(expression.sql)
    if day is not None and day[1] in columns and wanted == pa.string():
        source = columns[day[1]]
        return Day(source) if schema.field(source).type == pa.timestamp("us") else None
    exact = None if wanted is None else exact_value(expression, schema, wanted)
    return None if exact is None else Computed(exact)


def _stream(operator: Calc, inputs: Sequence[EdgeRows], edges: Edges) -> EdgeRows:
    columns, below = edges.columns[operator.inputs[0]], inputs[0].in_arrow
    marks = inputs[0].marks and operator.id in edges.marks
    check = _check_over(operator, [column.name for column in columns])

    def in_spark() -> DataFrame:
        return _in_spark(operator, inputs[0].frame, edges, check, marks=marks)

    if below is not None:
        calc = _in_arrow(operator, columns, edges.metadata(operator.id).names, check)
        if calc is not None:
            return EdgeRows(in_spark, below.then(calc, edges.schema(operator.id)), marks=marks)
    rows = EdgeRows(in_spark, marks=marks)
    _ = rows.frame  # built now, so that errors are raised here
    return rows


BUILDER = OperatorBuilder(stream=_stream, batch=calc_in_spark, condition=lambda calc: calc.filter)
