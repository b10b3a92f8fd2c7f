"""A correlate operator as a step between DataFrames: arguments in, ``mapInArrow``, metrics.

Constant arguments are computed by Spark, as columns. The only module of the package that builds DataFrames; works the
same in streams and batches, on Spark classic and Spark Connect.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from plans.declarations.tables import Column, Function
from plans.operators import Correlate
from runtime.engine.mapped import map_batches
from runtime.expressions.allowed import check_expression, quoted
from runtime.expressions.analysis import analysed, refusing
from runtime.expressions.arithmetic import spark_expression
from runtime.functions.metrics import FUNCTION_METRICS
from runtime.functions.plan import function_spec
from runtime.functions.task import call_functions
from runtime.kernels.found_rows import JoinedRows
from runtime.lookup.plan import LookupRun
from runtime.types import to_arrow, to_spark

__all__ = ["apply_function"]


def apply_function(
    op: Correlate,
    frame: DataFrame,
    columns: tuple[Column, ...],
    function: Function,
    run: LookupRun,
    *,
    beside: pa.Schema,
    observe_as: Callable[[str], Any] = str,
) -> DataFrame:
    """The rows of ``frame`` joined with what ``function`` returns for them.

    ``frame`` has ``columns``, and those ``beside`` them, which are passed on.

    RunError, naming the operator, for a constant or a class that may not run. Metrics are observed as what
    ``observe_as`` makes of the id.
    """
    types = {column.name: column.type for column in columns}
    read = {column.column for column in op.output if column.side == "left"}
    read |= {argument.column for argument in op.arguments if argument.column is not None}
    inputs: dict[str, tuple[SparkColumn, pa.DataType]] = {
        name: (F.col(quoted(name)), to_arrow(kind)) for name, kind in types.items() if name in read
    }
    arguments = []
    for index, (argument, kind) in enumerate(zip(op.arguments, function.arguments, strict=True)):
        if argument.column is not None:
            arguments.append(argument.column)
            continue
        path = f"operators.{op.id}.arguments[{index}].constant"
        constant = check_expression(argument.constant or "NULL", {}, operator=op.id, path=path)
        arguments.append(f"__argument{index}")
        with refusing(op.id, path):
            value = spark_expression(frame, constant.sql)
        inputs[f"__argument{index}"] = (value.cast(to_spark(kind)), to_arrow(kind))
    origins = [(column.side, column.column) for column in op.output]
    fields = [pa.field(column.name, to_arrow(column.type)) for column in op.output]
    for field in beside:
        inputs[field.name] = (F.col(field.name), field.type)
        origins.append(("left", field.name))
        fields.append(field)
    if not inputs:  # a function without arguments, of whose input nothing is kept: its rows must still be counted
        inputs["__row"] = (F.lit(None).cast("tinyint"), pa.int8())
    rows = JoinedRows(
        padded=op.join_type == "left",
        conditions=(),
        output=pa.schema(fields),
        origins=tuple(origins),
    )
    spec = function_spec(op, function, tuple(arguments), rows, run)
    with refusing(op.id, f"operators.{op.id}"):
        prepared = analysed(frame.select(*(column.alias(name) for name, (column, _) in inputs.items())))
    schema = pa.schema([(name, kind) for name, (_, kind) in inputs.items()])
    run_task = partial(call_functions, spec=spec, schema=schema)
    return map_batches(prepared, run_task, rows.output, observe_as(op.id), FUNCTION_METRICS)
