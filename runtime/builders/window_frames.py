"""Event time windows in batch jobs, as columns of Spark: slices, windows of slices, and sessions.

A slice is the part of a window that no start or end of a window divides: a TUMBLE has one, a HOP one per slide, a
CUMULATE one per step. A group of rows in one slice is in the same windows. If the size of a HOP is no multiple of its
slide, its slices are as long as their greatest common divisor.

    sliced = with_slices(frame, "ts", window)   # adds SLICE
    windows = with_windows(sliced, window)      # replaces it with START and END, a row for each window

All are wall clocks. With a TIMESTAMP_LTZ rowtime, they are wall clocks in the zone of the window. A row whose rowtime
is NULL is in no window, as in Flink's batch mode.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as SparkWindow
from pyspark.sql import functions as F

from hintplan.plans.declarations.windows import Window
from hintplan.runtime.expressions.comparable import comparable_column
from hintplan.runtime.spark.names import quoted
from hintplan.runtime.spark.wall_clocks import instant_column, wall_clock_column

SLICE, WALL, START, END = "__slice", "__wall", "__start", "__end"
"""The columns with the end of a slice, the wall clock of a row, and the window."""
_PART, _NUMBER, _WINDOW = "__part", "__number", "__window"


def with_slices(frame: DataFrame, time: str, window: Window) -> DataFrame:
    """Return ``frame`` with the end of each row's slice in ``SLICE``."""
    walls = _with_walls(frame, time, window)
    return _tumbling(walls, WALL, window.slice_ms, window.offset_ms, "end", SLICE).drop(WALL)


def with_windows(sliced: DataFrame, window: Window) -> DataFrame:
    """Return each row of ``sliced`` once per window that contains its slice, with ``START`` and ``END``."""
    count = window.size_ms // window.step_ms
    size = interval(window.size_ms)
    if count == 1 and window.slice_ms == window.size_ms:
        return sliced.withColumn(START, F.col(SLICE) - size).withColumnRenamed(SLICE, END)
    later = F.col(_NUMBER) * interval(window.step_ms)
    numbers = F.explode(F.sequence(F.lit(0), F.lit(count - 1)))
    if window.type == "hop" and window.slice_ms != window.step_ms:
        return _with_uneven_windows(sliced, window)
    if window.type == "hop":
        repeated = sliced.withColumn(_NUMBER, numbers).withColumn(END, F.col(SLICE) + later)
        return repeated.withColumn(START, F.col(END) - size).drop(SLICE, _NUMBER)
    # The longest window is the tumbling one with the same size and offset, around the start of the slice.
    begun = sliced.withColumn(_PART, F.col(SLICE) - interval(window.step_ms))
    longest = _tumbling(begun, _PART, window.size_ms, window.offset_ms, "end", _PART)
    repeated = longest.withColumn(_NUMBER, numbers).withColumn(END, F.col(SLICE) + later)
    started = repeated.where(F.col(END) <= F.col(_PART)).withColumn(START, F.col(_PART) - size)
    return started.drop(SLICE, _NUMBER, _PART)


def _with_uneven_windows(sliced: DataFrame, window: Window) -> DataFrame:
    """Return the same of a HOP whose size is no multiple of its slide: its windows begin at multiples of the slide.

    The last window of a slice begins in the same slide. A slice may be beyond the end of that window.
    """
    begun = sliced.withColumn(_PART, F.col(SLICE) - interval(window.slice_ms))
    last = _tumbling(begun, _PART, window.step_ms, window.offset_ms, "start", _PART)
    most = -(-window.size_ms // window.step_ms)
    repeated = last.withColumn(_NUMBER, F.explode(F.sequence(F.lit(0), F.lit(most - 1))))
    started = repeated.withColumn(START, F.col(_PART) - F.col(_NUMBER) * interval(window.step_ms))
    ended = started.withColumn(END, F.col(START) + interval(window.size_ms))
    return ended.where(F.col(SLICE) <= F.col(END)).drop(SLICE, _NUMBER, _PART)


def with_sessions(frame: DataFrame, time: str, window: Window, keys: Sequence[str]) -> DataFrame:
    """Return ``frame`` with the start of each row's session in ``START``, and the row's own wall clock in ``WALL``.

    A session ends ``gap`` after its last row. A row at that time still belongs to it, as in Flink.
    """
    walls = _tumbling(_with_walls(frame, time, window), WALL, 1, 0, "start", WALL)  # in whole milliseconds
    in_order = SparkWindow.partitionBy(*(comparable_column(walls, key) for key in keys)).orderBy(WALL)
    before = F.lag(WALL).over(in_order)
    begins = before.isNull() | (F.col(WALL) > before + interval(window.gap_ms))
    starts = walls.withColumn(_PART, F.when(begins, F.col(WALL)))
    until_now = in_order.rowsBetween(SparkWindow.unboundedPreceding, SparkWindow.currentRow)
    return starts.withColumn(START, F.last(_PART, ignorenulls=True).over(until_now)).drop(_PART)


def window_time(end: str, window: Window) -> Column:
    """Return the time of the window that ends at ``end``, its last millisecond, as a rowtime.

    If that wall clock comes twice in the zone of the window, it is the first of the two, as in Flink.
    """
    last = F.col(quoted(end)) - interval(1)
    return last if window.zone is None else instant_column(last, window.zone)


def interval(milliseconds: int) -> Column:
    """Return a duration as an interval of Spark."""
    seconds, rest = divmod(abs(milliseconds), 1000)
    return F.expr(f"INTERVAL '{'-' if milliseconds < 0 else ''}{seconds}.{rest:03}' SECOND")


def _with_walls(frame: DataFrame, time: str, window: Window) -> DataFrame:
    rowtime = F.col(quoted(time))
    wall = rowtime if window.zone is None else wall_clock_column(rowtime, window.zone)
    return frame.where(rowtime.isNotNull()).withColumn(WALL, wall)


def _tumbling(
    frame: DataFrame, time: str, size_ms: int, offset_ms: int, bound: Literal["start", "end"], name: str
) -> DataFrame:
    """Return ``frame`` with a bound of the tumbling window around the wall clock ``time``, in the column ``name``."""
    size, offset = f"{size_ms} milliseconds", f"{offset_ms} milliseconds"
    tumbling = frame.withColumn(_WINDOW, F.window(time, size, startTime=offset))
    return tumbling.withColumn(name, F.col(_WINDOW).getField(bound)).drop(_WINDOW)
