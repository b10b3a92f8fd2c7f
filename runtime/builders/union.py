"""A union, computed by Spark in a run; an input without some of the metadata columns gets default values in them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type

from hintplan.plans.operators import Union
from hintplan.runtime.builders.builder import OperatorBuilder, from_frames
from hintplan.runtime.builders.edges import Edges
from hintplan.runtime.engine.marks import KEEP, MARK, SOURCE, SPLIT
from hintplan.runtime.engine.row_order import ROW_ORDER
from hintplan.runtime.engine.rows import EdgeRows
from hintplan.runtime.operator import INSERT, KIND
from hintplan.runtime.spark.names import quoted

_ABSENT = {
    **dict(zip((KIND, *ROW_ORDER.names), (f"{INSERT}Y", "0L", "''", "0L"), strict=True)),
    SOURCE: "CAST(NULL AS INT)",
    SPLIT: "CAST(NULL AS STRING)",
    MARK: "CAST(NULL AS BIGINT)",
    KEEP: "true",
}
"""The values, in Spark SQL, of metadata columns that an input lacks."""


def _stream(operator: Union, inputs: Sequence[EdgeRows], edges: Edges) -> EdgeRows:
    schemas = [edges.schema(name) for name in operator.inputs]
    together = edges.backend.union(inputs, schemas, edges.schema(operator.id))
    if together is None:
        return from_frames(_union)(operator, inputs, edges)
    return EdgeRows(lambda: together.in_spark(operator.id), together, marks=operator.id in edges.marks)


def _union(operator: Union, inputs: Sequence[DataFrame], edges: Edges) -> DataFrame:
    data = [quoted(name) for name in edges.names(operator.id)]
    parts: list[DataFrame] = []
    for name, frame in zip(operator.inputs, inputs, strict=True):
        own, wanted = edges.spark_metadata(name).names, edges.spark_metadata(operator.id).names
        metadata = [F.col(n) if n in own else _absent(n, edges, operator.id) for n in wanted]
        parts.append(frame.select(*data, *metadata))
    return reduce(DataFrame.unionAll, parts)


def _absent(name: str, edges: Edges, operator_id: str) -> Column:
    """Return the value of a metadata column that an input lacks; rows of another source are NULL."""
    if name in _ABSENT:
        return F.expr(_ABSENT[name]).alias(name)
    kind = edges.late_columns(operator_id).field(name).type
    return F.lit(None).cast(from_arrow_type(kind, prefer_timestamp_ntz=True)).alias(name)


BUILDER = OperatorBuilder(stream=_stream, batch=_union)
