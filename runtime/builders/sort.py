"""A sort with or without a limit, for batch plans only, computed by Spark."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from hintplan.plans.operators import Sort, SortKey
from hintplan.runtime.builders.builder import OperatorBuilder
from hintplan.runtime.builders.edges import Edges
from hintplan.runtime.spark.names import quoted


def _batch(operator: Sort, inputs: Sequence[DataFrame], edges: Edges) -> DataFrame:
    (frame,) = inputs
    if operator.order:
        frame = frame.orderBy(*map(sorted_by, operator.order))
    if operator.offset:
        frame = frame.offset(operator.offset)
    return frame if operator.limit is None else frame.limit(operator.limit)


def sorted_by(key: SortKey, kind: str | None = None) -> Column:
    """Return a sort key as a column of Spark, cast to ``kind`` if it is given."""
    column = F.col(quoted(key.column)) if kind is None else F.col(quoted(key.column)).cast(kind)
    if key.direction == "asc":
        return column.asc_nulls_first() if key.nulls == "first" else column.asc_nulls_last()
    return column.desc_nulls_first() if key.nulls == "first" else column.desc_nulls_last()


BUILDER = OperatorBuilder(stream=None, batch=_batch)
