"""Rows that the plan contains, computed by Spark.

A stream computes them from a source of hintplan's that emits one row once.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from hintplan.plans.operators import Values
from hintplan.runtime.builders.builder import OperatorBuilder, from_frames
from hintplan.runtime.builders.edges import Edges
from hintplan.runtime.expressions.allowed import check_expression
from hintplan.runtime.expressions.spark_columns import SPARK_ERRORS, analysed, refusing, sql_over
from hintplan.runtime.spark.names import quoted
from hintplan.runtime.types import to_spark


def _stream(operator: Values, inputs: Sequence[DataFrame], edges: Edges) -> DataFrame:
    return _rows(operator, edges.backend.one_row(operator.id), edges)


def _batch(operator: Values, inputs: Sequence[DataFrame], edges: Edges) -> DataFrame:
    return _rows(operator, edges.spark.range(1), edges)


def _rows(operator: Values, frame: DataFrame, edges: Edges) -> DataFrame:
    """Return the rows for each row of ``frame``; RunError, which names the operator, for a value that may not run."""
    types = [_written(to_spark(column.type)) for column in operator.columns]
    names = edges.names(operator.id)
    cells: list[str] = []
    rows: list[str] = []
    for index, row in enumerate(operator.rows):
        values = []
        for place, (text, kind) in enumerate(zip(row, types, strict=True)):
            path = f"operators.{operator.id}.rows[{index}][{place}]"
            checked = check_expression(text, {}, operator=operator.id, path=path)
            with refusing(operator.id, path):
                values.append(f"CAST(({sql_over(frame, checked)}) AS {kind})")
        cells += values
        rows.append(f"struct({', '.join(f'{v} AS {quoted(n)}' for v, n in zip(values, names, strict=True))})")
    try:
        return analysed(frame.select(F.expr(f"inline(array({', '.join(rows)}))")))
    except SPARK_ERRORS:
        for number, cell in enumerate(cells):
            index, place = divmod(number, len(names))
            with refusing(operator.id, f"operators.{operator.id}.rows[{index}][{place}]"):
                analysed(frame.select(F.expr(cell)))
        raise


def _written(kind: DataType) -> str:
    """Return ``kind`` as text for an expression; unlike ``simpleString``, it quotes the names of fields."""
    match kind:
        case StructType():
            return f"struct<{', '.join(f'{quoted(field.name)}: {_written(field.dataType)}' for field in kind.fields)}>"
        case ArrayType():
            return f"array<{_written(kind.elementType)}>"
        case MapType():
            return f"map<{_written(kind.keyType)}, {_written(kind.valueType)}>"
    return kind.simpleString()


BUILDER = OperatorBuilder(stream=from_frames(_stream), batch=_batch)
