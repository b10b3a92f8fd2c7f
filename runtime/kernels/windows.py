"""The arithmetic of windows over time, on int64 arrays of milliseconds.

Windows lie on wall clocks: on the times themselves, or, for TIMESTAMP_LTZ, on the clock of a time zone. A day in a zone
may have 23 or 25 hours. An hour that the clock shows twice is one window.

Windows of TUMBLE, HOP and CUMULATE consist of slices: no start and no end of a window is inside of a slice. A row
belongs to one slice, and a slice to one or more windows. If the slide of a HOP is longer than its size, some slices
belong to none. A slice and a window are known by their ends.

>>> hop = Window(type="hop", size="10 s", slide="5 s")
>>> slice_ends(hop, np.array([0, 4_999, 5_000, -1])).tolist()
[5000, 5000, 10000, 0]
>>> last_window_ends(hop, np.array([5_000])).tolist(), window_starts(hop, np.array([5_000, 10_000])).tolist()
([10000], [-5000, 0])
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.plans.declarations.windows import Window
from hintplan.runtime.state.layout import Int64s


def milliseconds(times: pa.Array | pa.ChunkedArray) -> Int64s:
    """Return timestamps without NULLs in ms since 1970."""
    micros: Int64s = np.asarray(pc.cast(pc.cast(times, pa.timestamp("us", times.type.tz)), pa.int64()))
    return micros // 1000


def timestamps(times: Int64s, kind: pa.DataType) -> pa.Array:
    """Return times in ms as timestamps of type ``kind``, which has microseconds."""
    return pc.cast(pa.array(times * 1000), kind)


def wall_clock(times: Int64s, zone: str | None) -> Int64s:
    """Return what a clock in ``zone`` shows at ``times``; without a zone, the times themselves."""
    if zone is None:
        return times
    local = pc.local_timestamp(pa.array(times).cast(pa.timestamp("ms", zone)))
    walls: Int64s = np.asarray(local.cast(pa.int64()))
    return walls


def closing_time(ends: Int64s, zone: str | None) -> Int64s:
    """Return the last time at which the clock in ``zone`` shows the ms before each of ``ends``.

    If the clock skips that ms, it is the first time after the gap, as in Flink. A window closes when the watermark
    reaches this time.
    """
    if zone is None:
        return ends - 1
    return _moments(ends - 1, zone, ambiguous="latest", nonexistent="latest")


def rowtimes(ends: Int64s, zone: str | None) -> Int64s:
    """Return the ``window_time`` of windows: the first moment at which the clock shows their last ms.

    If the clock skips that ms, it is shifted by the length of the gap, as in Java.
    """
    if zone is None:
        return ends - 1
    moments = _moments(ends - 1, zone, ambiguous="earliest", nonexistent="earliest")
    return ends - 1 - (wall_clock(moments, zone) - moments)


def _moments(walls: Int64s, zone: str, *, ambiguous: str, nonexistent: str) -> Int64s:
    """Return the times at which a clock shows ``walls``, or the last ms before it skips them, or the first after."""
    local = pa.array(walls).cast(pa.timestamp("ms"))
    times = pc.assume_timezone(local, zone, ambiguous=ambiguous, nonexistent=nonexistent)
    result: Int64s = np.asarray(times.cast(pa.int64()))
    return result


def slice_ends(window: Window, walls: Int64s) -> Int64s:
    """Return the end of the slice of each wall clock time."""
    step, offset = window.slice_ms, window.offset_ms
    return (walls - offset) // step * step + (step + offset)


def first_window_ends(window: Window, ends: Int64s) -> Int64s:
    """Return the end of the first window to which each slice belongs: the first one after its end, or with it."""
    if window.type == "cumulate" or window.slice_ms == window.step_ms:
        return ends
    first = window.size_ms + window.offset_ms
    return -((first - ends) // window.step_ms) * window.step_ms + first


def last_window_ends(window: Window, ends: Int64s) -> Int64s:
    """Return the end of the last window to which each slice belongs.

    It is before :func:`first_window_ends` if the slice belongs to none.
    """
    if window.type == "cumulate":
        return _starts(window, ends) + window.size_ms
    starts = ends - window.slice_ms
    if window.slice_ms != window.step_ms:
        starts = (starts - window.offset_ms) // window.step_ms * window.step_ms + window.offset_ms
    return starts + window.size_ms


def window_starts(window: Window, ends: Int64s) -> Int64s:
    """Return the start of the window that ends at each of ``ends``."""
    return _starts(window, ends) if window.type == "cumulate" else ends - window.size_ms


def _starts(window: Window, ends: Int64s) -> Int64s:
    """Return the start of the longest window of CUMULATE to which the slice with each of ``ends`` belongs."""
    size, offset = window.size_ms, window.offset_ms
    return (ends - 1 - offset) // size * size + offset


def windows_of(window: Window, ends: Int64s) -> tuple[Int64s, Int64s]:
    """Return all windows of each slice, as parallel places in ``ends`` and window ends, in order of both.

    >>> [part.tolist() for part in windows_of(Window(type="cumulate", size="3 s", step="1 s"), np.array([1000, 2000]))]
    [[0, 0, 0, 1, 1], [1000, 2000, 3000, 2000, 3000]]
    """
    first = first_window_ends(window, ends)
    counts = (last_window_ends(window, ends) - first) // window.step_ms + 1
    places = np.repeat(np.arange(len(ends)), counts)
    number = np.arange(len(places)) - np.repeat(np.cumsum(counts) - counts, counts)
    return places, first[places] + number * window.step_ms
