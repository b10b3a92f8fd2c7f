"""A window join: in streams the kernel on the engine, in batch jobs Spark's join by the keys and the window."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from hintplan.plans.operators import JoinKey, WindowJoin
from hintplan.runtime.builders.builder import OperatorBuilder
from hintplan.runtime.builders.edges import Edges
from hintplan.runtime.builders.join import joined, joined_on_engine


def _batch(operator: WindowJoin, inputs: Sequence[DataFrame], edges: Edges) -> DataFrame:
    left, right = operator.left_window, operator.right_window
    of_window = (JoinKey(left=left.start, right=right.start), JoinKey(left=left.end, right=right.end))
    return joined(operator, (*operator.keys, *of_window), inputs, edges)


BUILDER = OperatorBuilder(stream=joined_on_engine, batch=_batch)
