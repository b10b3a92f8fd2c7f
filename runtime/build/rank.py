"""A rank: in streams the kernel on the engine, in batch jobs Spark's own numbering."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from plans.operators import Rank
from runtime.build.builder import OperatorBuilder, with_state
from runtime.build.edges import Edges
from runtime.build.sort import sorted_by
from runtime.expressions.normal_floats import normal_floats
from runtime.operators.first_rows import COUNTS
from runtime.spark.names import quoted

_NUMBER = "__number"


def _batch(operator: Rank, inputs: Sequence[DataFrame], edges: Edges) -> DataFrame:
    window = Window.partitionBy(*(F.col(quoted(name)) for name in operator.key)).orderBy(
        *(sorted_by(key) for key in operator.order)
    )
    number = operator.number or _NUMBER
    frame = normal_floats(inputs[0]).withColumn(number, F.row_number().over(window).cast("bigint"))
    frame = frame.where(F.col(quoted(number)).between(operator.rank_start, operator.rank_end))
    return frame.drop(_NUMBER) if operator.number is None else frame


BUILDER = OperatorBuilder(stream=with_state(counts=COUNTS), batch=_batch)
