"""Ranks, deduplicates and over aggregates: in streams kernels on the engine, in batch jobs Spark's window functions.

An over aggregate has Flink's results: its aggregates are the group aggregates of
:mod:`hintplan.runtime.builders.aggregate`, over a window.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from hintplan.plans.declarations.types import parse_type
from hintplan.plans.operators import (
    AggregateCall,
    Deduplicate,
    OverAggregate,
    OverCall,
    Rank,
    SortKey,
    WindowDeduplicate,
    WindowRank,
)
from hintplan.plans.operators.over_aggregate import AGGREGATED, SHIFTS
from hintplan.runtime.builders.aggregate import native_call
from hintplan.runtime.builders.builder import OperatorBuilder, with_state
from hintplan.runtime.builders.edges import Edges
from hintplan.runtime.builders.sort import sorted_by
from hintplan.runtime.expressions.comparable import comparable_column, with_normal_floats
from hintplan.runtime.operators import deduplicate, first_rows
from hintplan.runtime.spark.names import quoted
from hintplan.runtime.types import to_spark

_NUMBER = "__number"
_DISTANT = "decimal(20, 0)"
"""A type for the integers, and for values as far from them as the bound of a frame may be."""


def _batch(operator: Rank, inputs: Sequence[DataFrame], edges: Edges) -> DataFrame:
    return ranked(operator, operator.key, inputs[0])


def ranked(operator: Rank | WindowRank, key: Sequence[str], rows: DataFrame) -> DataFrame:
    """Return the ``rows`` whose number in their group by ``key`` the operator passes on."""
    window = _window(rows, key, operator.order)
    number = operator.number or _NUMBER
    frame = with_normal_floats(rows).withColumn(number, F.row_number().over(window).cast("bigint"))
    end = F.col(quoted(operator.rank_end)) if isinstance(operator.rank_end, str) else F.lit(operator.rank_end)
    frame = frame.where(F.col(quoted(number)).between(operator.rank_start, end))
    return frame.drop(_NUMBER) if operator.number is None else frame


def _deduplicated(operator: Deduplicate, inputs: Sequence[DataFrame], edges: Edges) -> DataFrame:
    return deduplicated(operator, operator.key, inputs[0])


def deduplicated(operator: Deduplicate | WindowDeduplicate, key: Sequence[str], rows: DataFrame) -> DataFrame:
    """Return the first or the last of ``rows`` by time in each group by ``key``."""
    time = F.col(quoted(operator.time or ""))
    order = time.asc_nulls_first() if operator.keep == "first" else time.desc_nulls_last()
    window = _window(rows, key, ()).orderBy(order)
    frame = with_normal_floats(rows)
    return frame.withColumn(_NUMBER, F.row_number().over(window)).where(F.col(_NUMBER) == 1).drop(_NUMBER)


def _window(
    frame: DataFrame, key: Sequence[str], order: Sequence[SortKey], *, order_type: str | None = None
) -> WindowSpec:
    window = Window.partitionBy(*(comparable_column(frame, name) for name in key))
    return window.orderBy(*(sorted_by(sort_key, order_type) for sort_key in order)) if order else window


def _over(operator: OverAggregate, inputs: Sequence[DataFrame], edges: Edges) -> DataFrame:
    frame = operator.frame
    distances = frame is not None and frame.unit == "range" and bool(frame.start or frame.end)
    window = _window(inputs[0], operator.key, operator.order, order_type=_DISTANT if distances else None)
    if frame is not None:
        start = Window.unboundedPreceding if frame.start is None else frame.start
        end = Window.unboundedFollowing if frame.end is None else frame.end
        window = window.rowsBetween(start, end) if frame.unit == "rows" else window.rangeBetween(start, end)
    types = {column.name: column.type for column in edges.columns[operator.inputs[0]]}
    rows = with_normal_floats(inputs[0])
    return rows.select(
        *(rows[quoted(name)] for name in types), *(_call(call, window, types) for call in operator.calls)
    )


def _call(call: OverCall, window: WindowSpec, types: Mapping[str, str]) -> Column:
    if call.function in AGGREGATED:
        plain = AggregateCall(name=call.name, function=call.function, argument=call.argument, type=call.type)
        kind = parse_type(types[call.argument]) if call.argument is not None else None
        return native_call(plain, kind, lambda function: function.over(window))
    if call.function in SHIFTS:
        return _shifted(call, window).cast(to_spark(call.type)).alias(call.name)
    arguments = () if call.count is None else (F.lit(call.count),)
    number = F.call_function(call.function.lower(), *arguments).over(window)
    return number.cast(to_spark(call.type)).alias(call.name)


def _shifted(call: OverCall, window: WindowSpec) -> Column:
    """Return the value of a row before or behind this row.

    An existing row may have NULL there; the default applies only if there is no such row.
    """
    there = F.struct(F.col(quoted(call.argument or "")).alias("value"))
    shifted = (F.lag if call.function == "LAG" else F.lead)(there, call.count or 0).over(window)
    value = shifted.getField("value")
    return value if call.default is None else F.when(shifted.isNull(), F.col(quoted(call.default))).otherwise(value)


BUILDER = OperatorBuilder(stream=with_state(counts=first_rows.COUNTS), batch=_batch)
OVER_BUILDER = OperatorBuilder(stream=with_state(), batch=_over)
DEDUPLICATE_BUILDER = OperatorBuilder(stream=with_state(counts=deduplicate.COUNTS), batch=_deduplicated)
