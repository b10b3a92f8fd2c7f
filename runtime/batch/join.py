"""A join as Spark's own: keys by ``=``, so NULL never matches, and the rest of the condition with it.

native_join(join, left, right, left_names, right_names)
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from plans.operators import Join
from runtime.batch.floats import normal_floats
from runtime.expressions.allowed import check_expression, quoted
from runtime.expressions.analysis import analysed, refusing
from runtime.expressions.arithmetic import spark_expression

__all__ = ["native_join"]

_SPARK_TYPES = {"semi": "left_semi", "anti": "left_anti"}


def native_join(
    operator: Join, left: DataFrame, right: DataFrame, left_names: Sequence[str], right_names: Sequence[str]
) -> DataFrame:
    """``left`` joined with ``right``; the names are those of their columns, which may occur on both sides.

    RunError, naming the operator, for a condition that may not run.
    """
    # Columns get names of their own first: both sides may have a column `id`, or even be the same DataFrame.
    sides = {"l": (left, left_names), "r": (right, right_names)}
    named = {
        side: normal_floats(frame).select(*(F.col(quoted(name)).alias(f"__{side}_{name}") for name in names))
        for side, (frame, names) in sides.items()
    }
    conditions = [F.col(quoted(f"__l_{key.left}")) == F.col(quoted(f"__r_{key.right}")) for key in operator.keys]
    if operator.condition is not None:
        known: dict[tuple[str, ...], str] = {
            (side, name): f"__{side}_{name}" for side, (_, names) in sides.items() for name in names
        }
        path = f"operators.{operator.id}.condition"
        checked = check_expression(operator.condition, known, operator=operator.id, path=path)
        pairs = named["l"].crossJoin(named["r"])
        with refusing(operator.id, path):
            conditions.append(spark_expression(pairs, checked.sql))
            analysed(pairs.where(conditions[-1]))
    on = reduce(lambda a, b: a & b, conditions) if conditions else F.lit(True)
    joined = named["l"].join(named["r"], on, _SPARK_TYPES.get(operator.join_type, operator.join_type))
    return joined.select(
        *(F.col(quoted(f"__{column.side[0]}_{column.column}")).alias(column.name) for column in operator.output)
    )
