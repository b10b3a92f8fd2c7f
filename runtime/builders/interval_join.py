"""An interval join: in streams the kernel on the engine, in batch jobs Spark's own join with a condition on times."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from hintplan.plans.operators import IntervalJoin
from hintplan.plans.operators.contract.columns import parse
from hintplan.runtime.builders.builder import OperatorBuilder
from hintplan.runtime.builders.edges import Edges
from hintplan.runtime.builders.join import joined, joined_on_engine, side_column, with_condition_above
from hintplan.runtime.engine.rows import EdgeRows


def _stream(operator: IntervalJoin, inputs: Sequence[EdgeRows], edges: Edges) -> EdgeRows:
    operator = with_condition_above(operator, edges.conditions_above.get(operator.id), edges.columns)
    return joined_on_engine(operator, inputs, edges)


def _batch(operator: IntervalJoin, inputs: Sequence[DataFrame], edges: Edges) -> DataFrame:
    return joined(operator, operator.keys, inputs, edges, further=_near(operator, edges))


def _near(operator: IntervalJoin, edges: Edges) -> tuple[Column, Column]:
    """Return the conditions that the difference of the two times is within the bounds.

    Spark's arithmetic of TIMESTAMP_LTZ goes by the days of the session's time zone, so these are compared as numbers.
    """
    assert operator.times is not None, "a batch job goes by rowtimes"
    left_time, right_time = operator.times
    left, right = side_column("l", left_time), side_column("r", right_time)
    types = {column.name: column.type for column in edges.columns[operator.inputs[0]]}
    lower, upper = operator.bounds
    if parse(types[left_time]).root == "TIMESTAMP_LTZ":
        passed = F.unix_micros(left) - F.unix_micros(right)
        return passed >= F.lit(lower * 1000), passed <= F.lit(upper * 1000)
    return left - right >= _interval(lower), left - right <= _interval(upper)


def _interval(milliseconds: int) -> Column:
    """Return an INTERVAL DAY TO SECOND of Spark."""
    days, rest = divmod(milliseconds, 86_400_000)
    return F.make_dt_interval(F.lit(days), F.lit(0), F.lit(0), F.lit(Decimal(rest).scaleb(-3)))


BUILDER = OperatorBuilder(stream=_stream, batch=_batch)
