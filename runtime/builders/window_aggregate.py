"""A window aggregate: in streams the kernel on the engine, in batch jobs Spark's own aggregates with the same results.

In a batch job no row is late. Rows are aggregated by slice first if the calls allow it, so a HOP with many windows
repeats groups instead of rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hintplan.plans.declarations.types import parse_type
from hintplan.plans.declarations.windows import WALL_TIME
from hintplan.plans.operators import AggregateCall, WindowAggregate
from hintplan.runtime.builders.aggregate import called_aggregate, native_aggregate
from hintplan.runtime.builders.builder import OperatorBuilder, with_state
from hintplan.runtime.builders.edges import Edges
from hintplan.runtime.builders.window_frames import (
    END,
    SLICE,
    START,
    WALL,
    interval,
    window_time,
    with_sessions,
    with_slices,
    with_windows,
)
from hintplan.runtime.spark.names import quoted

_LAST = AggregateCall(name="__last", function="MAX", argument=WALL, type=WALL_TIME)
_EXACT = ("TINYINT", "SMALLINT", "INT", "BIGINT", "DOUBLE")
"""The types whose partial sums add up to the sum; a partial sum of DECIMAL may be too large, and thus NULL."""
Types = Mapping[str, str]


def _batch(operator: WindowAggregate, inputs: Sequence[DataFrame], edges: Edges) -> DataFrame:
    types = {column.name: column.type for column in edges.columns[operator.inputs[0]]}
    of_window = {SLICE: WALL_TIME, START: WALL_TIME, END: WALL_TIME, WALL: WALL_TIME}
    return _with_output(operator, _groups(operator, inputs[0], {**types, **of_window}, edges))


def _groups(operator: WindowAggregate, frame: DataFrame, types: Types, edges: Edges) -> DataFrame:
    """Return the groups of each window: the keys, ``START`` and ``END``, and the calls."""
    window, keys, calls = operator.window, operator.keys, operator.aggregates
    if operator.attached is not None:
        columns = operator.attached
        frame = frame.withColumns({START: F.col(quoted(columns.start)), END: F.col(quoted(columns.end))})
        return called_aggregate(operator, (*keys, START, END), calls, frame, types, edges)
    time = operator.time or ""
    if window.type == "session":
        sessions = with_sessions(frame, time, window, keys)
        groups = called_aggregate(operator, (*keys, START), (*calls, _LAST), sessions, types, edges)
        return groups.withColumn(END, F.col(_LAST.name) + interval(window.gap_ms))
    sliced = with_slices(frame, time, window)
    if window.type != "tumble" and all(_is_mergeable(call, types) for call in calls):
        sliced = native_aggregate((*keys, SLICE), calls, sliced, types)
        types = {**types, **{call.name: call.type for call in calls}}
        calls = tuple(map(_merging, calls))
    return called_aggregate(operator, (*keys, START, END), calls, with_windows(sliced, window), types, edges)


def _is_mergeable(call: AggregateCall, types: Types) -> bool:
    """Return True if the results of a call in slices can be aggregated to its result in their window."""
    if call.function == "SUM" and not call.distinct:
        return parse_type(types[call.argument or ""]).root in _EXACT
    return call.function in ("MIN", "MAX") or (call.function == "COUNT" and not call.distinct)


def _merging(call: AggregateCall) -> AggregateCall:
    """Return the call that aggregates the results of ``call``."""
    function = "SUM" if call.function == "COUNT" else call.function
    return replace(call, function=function, argument=call.name, distinct=False, filter=None)


def _with_output(operator: WindowAggregate, groups: DataFrame) -> DataFrame:
    """Return the keys, the calls, and the columns of the window under their output names."""
    columns = [F.col(quoted(name)) for name in (*operator.keys, *(call.name for call in operator.aggregates))]
    of_window = (
        (operator.start, F.col(START)),
        (operator.end, F.col(END)),
        (operator.window_time, window_time(END, operator.window)),
    )
    return groups.select(*columns, *(column.alias(name) for name, column in of_window if name is not None))


BUILDER = OperatorBuilder(stream=with_state(), batch=_batch)
