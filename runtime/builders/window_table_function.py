"""A window table function: each row once for each of its windows.

In streams, TUMBLE, HOP and CUMULATE are a step in Arrow without state. It runs in the task that makes its rows, or on
batches that come from Spark; it drops no row, and passes the marks of event time on. SESSION is a kernel on the engine.
In batch jobs, Spark computes the windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import Window as SparkWindow
from pyspark.sql import functions as F

from hintplan.plans.operators import WindowTableFunction
from hintplan.runtime.builders.builder import OperatorBuilder, on_engine
from hintplan.runtime.builders.edges import Edges
from hintplan.runtime.builders.window_frames import (
    END,
    START,
    WALL,
    interval,
    window_time,
    with_sessions,
    with_slices,
    with_windows,
)
from hintplan.runtime.engine.marks import MARK_COLUMNS
from hintplan.runtime.engine.pack import as_it_is, with_their_marks
from hintplan.runtime.engine.rows import ArrowRows, EdgeRows
from hintplan.runtime.expressions.comparable import comparable_column
from hintplan.runtime.operators.window_function import WindowsOfRows
from hintplan.runtime.spark.names import quoted


def _stream(operator: WindowTableFunction, inputs: Sequence[EdgeRows], edges: Edges) -> EdgeRows:
    if operator.goes_by_time:
        return on_engine(operator, inputs, edges)
    (rows,) = inputs
    below = rows.in_arrow or _in_arrow(operator, rows.frame, edges, marks=rows.marks)
    schema = edges.schema(operator.id)
    names = (operator.start, operator.end, operator.window_time)
    step = WindowsOfRows(operator=operator.id, time=operator.time, window=operator.window, names=names, schema=schema)
    made = replace(below.then(step, schema), marks=rows.marks)
    return EdgeRows(lambda: made.in_spark(operator.id), made, marks=rows.marks)


def _in_arrow(operator: WindowTableFunction, frame: DataFrame, edges: Edges, *, marks: bool) -> ArrowRows:
    """Return the rows of a DataFrame as the step reads them."""
    schema = edges.schema(operator.inputs[0])
    chosen = frame.select(*map(quoted, (*schema.names, *(MARK_COLUMNS.names if marks else ()))))
    return ArrowRows(frame=chosen, read=with_their_marks if marks else as_it_is, schema=schema)


def _batch(operator: WindowTableFunction, inputs: Sequence[DataFrame], edges: Edges) -> DataFrame:
    (frame,) = inputs
    window = operator.window
    if window.type == "session":
        windows = _with_whole_sessions(operator, frame)
    else:
        windows = with_windows(with_slices(frame, operator.time, window), window)
    return windows.select(
        *map(quoted, edges.names(operator.inputs[0])),
        F.col(START).alias(operator.start),
        F.col(END).alias(operator.end),
        window_time(END, window).alias(operator.window_time),
    )


def _with_whole_sessions(operator: WindowTableFunction, frame: DataFrame) -> DataFrame:
    """Return ``frame`` with the session of each row in ``START`` and ``END``."""
    sessions = with_sessions(frame, operator.time, operator.window, operator.keys)
    session = SparkWindow.partitionBy(*(comparable_column(sessions, key) for key in operator.keys), START)
    return sessions.withColumn(END, F.max(WALL).over(session) + interval(operator.window.gap_ms))


BUILDER = OperatorBuilder(stream=_stream, batch=_batch)
