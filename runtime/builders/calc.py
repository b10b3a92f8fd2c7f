"""A calc: Spark computes it, or Arrow if its input rows are already in Arrow.

Arrow computes a calc only if every expression has the same meaning there as in SQL and cannot fail
(:mod:`hintplan.runtime.expressions.exact`). The day of a TIMESTAMP as text is also allowed. Spark computes any other
calc as a whole. Expressions are checked before either evaluates them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hintplan.plans.declarations.tables import Column
from hintplan.plans.operators import Calc, SelectItem
from hintplan.runtime.builders.builder import OperatorBuilder, from_frames
from hintplan.runtime.builders.edges import Edges
from hintplan.runtime.engine.rows import EdgeRows
from hintplan.runtime.expressions.allowed import check_expression
from hintplan.runtime.expressions.analysis import SPARK_ERRORS, analysed, refusing
from hintplan.runtime.expressions.arithmetic import spark_expression
from hintplan.runtime.expressions.condition import compile_filter
from hintplan.runtime.expressions.exact import exact_value, is_exact
from hintplan.runtime.expressions.json_calls import rows_at_once
from hintplan.runtime.operators.calc import ArrowCalc, ArrowValue, Chosen, Computed, Day
from hintplan.runtime.spark.names import quoted
from hintplan.runtime.types import to_arrow, to_spark

_DAY = re.compile(r"date_format ?\( ?(`.+`) ?, ?'yyyy-MM-dd' ?\)", re.IGNORECASE | re.DOTALL)


def calc_in_spark(operator: Calc, inputs: Sequence[DataFrame], edges: Edges) -> DataFrame:
    """Return the rows of the only input that pass the filter, with the selected columns and their metadata."""
    (frame,) = inputs
    path = f"operators.{operator.id}"
    input_columns: dict[tuple[str, ...], str] = {(name,): name for name in edges.names(operator.inputs[0])}

    def expression(text: str, where: str) -> SparkColumn:
        checked = check_expression(text, input_columns, operator=operator.id, path=f"{path}.{where}")
        with refusing(operator.id, f"{path}.{where}"):
            return spark_expression(frame, checked.sql)

    def item(index: int, item: SelectItem) -> SparkColumn:
        if item.expression is None:
            return F.col(quoted(item.name))
        computed = expression(item.expression, f"select[{index}].expression")
        return (computed if item.type is None else computed.cast(to_spark(item.type))).alias(item.name)

    if operator.filter is not None:
        condition = expression(operator.filter, "filter")
        with refusing(operator.id, f"{path}.filter"):
            frame = analysed(frame.where(condition))
    selected = [item(index, selection) for index, selection in enumerate(operator.select)]
    try:
        return analysed(frame.select(*selected, *edges.metadata(operator.id).names))
    except SPARK_ERRORS:
        for index, column in enumerate(selected):
            with refusing(operator.id, f"{path}.select[{index}].expression"):
                analysed(frame.select(column))
        raise


def calc_in_arrow(operator: Calc, columns: Sequence[Column], metadata: Sequence[str]) -> ArrowCalc | None:
    """Return ``operator`` over rows with ``columns`` and ``metadata``, or None if only Spark can compute it.

    The calc passes ``metadata`` on. Raise RunError for an expression that may not run.
    """
    schema = pa.schema([(column.name, to_arrow(column.type)) for column in columns])
    input_columns: dict[tuple[str, ...], str] = {(name,): name for name in schema.names}
    path = f"operators.{operator.id}"

    def checked(text: str, where: str) -> str:
        return check_expression(text, input_columns, operator=operator.id, path=f"{path}.{where}").sql

    values: list[tuple[str, ArrowValue]] = []
    texts = [operator.filter or "", *(item.expression or "" for item in operator.select)]
    for index, item in enumerate(operator.select):
        where = f"select[{index}].expression"
        sql = quoted(item.name) if item.expression is None else checked(item.expression, where)
        value = _value(item, sql, schema, f"{path}.{where}")
        if value is None:
            return None
        values.append((item.name, value))
    condition = None
    if operator.filter is not None:
        sql = checked(operator.filter, "filter")
        if not is_exact(sql, schema):
            return None
        condition = compile_filter(sql, schema, path=f"{path}.filter")
    chosen = ((name, Chosen(name)) for name in metadata)
    return ArrowCalc(columns=(*values, *chosen), condition=condition, at_once=rows_at_once(texts))


def _value(item: SelectItem, sql: str, schema: pa.Schema, path: str) -> ArrowValue | None:
    """Return the function that computes ``item``, whose expression is ``sql``, in Arrow; None if only Spark can."""
    columns = {quoted(name): name for name in schema.names}
    wanted = None if item.type is None else to_arrow(item.type)
    if sql in columns:
        source = columns[sql]
        if wanted in (None, schema.field(source).type):
            return Chosen(source)
    day = _DAY.fullmatch(sql)
    if day is not None and day[1] in columns and wanted == pa.string():
        source = columns[day[1]]
        return Day(source) if schema.field(source).type == pa.timestamp("us") else None
    exact = None if wanted is None else exact_value(sql, schema, wanted, path=path)
    return None if exact is None else Computed(exact)


def _stream(operator: Calc, inputs: Sequence[EdgeRows], edges: Edges) -> EdgeRows:
    below = inputs[0].in_arrow
    if below is not None:
        calc = calc_in_arrow(operator, edges.columns[operator.inputs[0]], edges.metadata(operator.id).names)
        if calc is not None:
            in_arrow = below.then(calc, edges.schema(operator.id))
            return EdgeRows(lambda: calc_in_spark(operator, [inputs[0].frame], edges), in_arrow)
    return from_frames(calc_in_spark)(operator, inputs, edges)


BUILDER = OperatorBuilder(stream=_stream, batch=calc_in_spark, condition=lambda calc: calc.filter)
