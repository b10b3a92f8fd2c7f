"""A deduplicate: in streams the kernel on the engine, in batch jobs Spark's ``row_number``."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from hintplan.plans.operators import Deduplicate
from hintplan.runtime.build.builder import OperatorBuilder, with_state
from hintplan.runtime.build.edges import Edges
from hintplan.runtime.expressions.comparable import comparable_column, with_normal_floats
from hintplan.runtime.operators.deduplicate import COUNTS
from hintplan.runtime.spark.names import quoted

_NUMBER = "__number"


def _batch(operator: Deduplicate, inputs: Sequence[DataFrame], edges: Edges) -> DataFrame:
    time = F.col(quoted(operator.time or ""))
    order = time.asc_nulls_first() if operator.keep == "first" else time.desc_nulls_last()
    window = Window.partitionBy(*(comparable_column(inputs[0], name) for name in operator.key)).orderBy(order)
    frame = with_normal_floats(inputs[0])
    return frame.withColumn(_NUMBER, F.row_number().over(window)).where(F.col(_NUMBER) == 1).drop(_NUMBER)


BUILDER = OperatorBuilder(stream=with_state(counts=COUNTS), batch=_batch)
