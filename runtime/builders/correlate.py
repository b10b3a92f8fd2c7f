"""A correlate as a step between DataFrames: arguments in, ``mapInArrow``, metrics.

Spark computes constant arguments, as columns. The step is the same in streams and batch jobs, on classic Spark and
Spark Connect.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hintplan.plans.operators import Correlate
from hintplan.runtime.builders.builder import OperatorBuilder, from_frames
from hintplan.runtime.builders.edges import Edges
from hintplan.runtime.engine.marks import MARK_COLUMNS
from hintplan.runtime.expressions.allowed import check_expression
from hintplan.runtime.expressions.spark_columns import analysed, refusing, spark_expression
from hintplan.runtime.functions.metrics import FUNCTION_METRICS
from hintplan.runtime.functions.plan import function_spec
from hintplan.runtime.functions.task import call_functions
from hintplan.runtime.kernels.found_rows import JoinedRows
from hintplan.runtime.spark.names import quoted
from hintplan.runtime.types import to_arrow, to_spark


def call_function(op: Correlate, inputs: Sequence[DataFrame], edges: Edges) -> DataFrame:
    """Return the rows of the only input, joined with the rows that the function returns for them.

    Raise RunError, which names the operator, for a constant or a class that may not run.
    """
    (frame,) = inputs
    function = edges.plan.functions[op.function]
    types = {column.name: column.type for column in edges.columns[op.inputs[0]]}
    read = {column.column for column in op.output if column.side == "left"}
    read |= {argument.column for argument in op.arguments if argument.column is not None}
    computed: dict[str, tuple[SparkColumn, pa.DataType]] = {
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
            value = spark_expression(frame, constant)
        computed[f"__argument{index}"] = (value.cast(to_spark(kind)), to_arrow(kind))
    origins = [(column.side, column.column) for column in op.output]
    fields = [pa.field(column.name, to_arrow(column.type)) for column in op.output]
    for field in edges.metadata(op.id):
        computed[field.name] = (F.col(field.name), field.type)
        origins.append(("left", field.name))
        fields.append(field)
    if not computed:  # a call without arguments and kept columns still needs a row per input row
        computed["__row"] = (F.lit(None).cast("tinyint"), pa.int8())
    rows = JoinedRows(
        padded=op.join_type == "left",
        conditions=(),
        output=pa.schema(fields),
        origins=tuple(origins),
    )
    given = edges.backend.given_function(op.function)
    spec = function_spec(op, function, tuple(arguments), rows, edges.lookups, edges.pins.get(op.id), given=given)
    marks = op.id in edges.marks
    with refusing(op.id, f"operators.{op.id}"):
        chosen = (column.alias(name) for name, (column, _) in computed.items())
        prepared = analysed(frame.select(*chosen, *(MARK_COLUMNS.names if marks else ())))
    schema = pa.schema([(name, kind) for name, (_, kind) in computed.items()])
    run_task = partial(call_functions, spec=spec, schema=schema)
    return edges.backend.mapped(
        prepared, run_task, rows.output, op.id, edges.observe_as(op.id), FUNCTION_METRICS, marks=marks
    )


BUILDER = OperatorBuilder(stream=from_frames(call_function), batch=call_function)
