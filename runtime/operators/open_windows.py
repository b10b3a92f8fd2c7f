"""Rows of state that wait for the watermark to close their window: time buckets by the closing time of rows.

A row is closed by the watermark that reaches its closing time, the int64 column ``CLOSES`` in ms. Buckets are as wide
as the distance between two windows, or a multiple, so that few are open. A bucket whose rows are all due is
read and dropped. Due rows of another bucket are deleted, so the state has only rows of open windows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from hintplan.plans.declarations.windows import Window
from hintplan.plans.evidence.ages import Counts
from hintplan.runtime.operator import FOREVER, Result, SegmentStore
from hintplan.runtime.state.keyed import KeyedState
from hintplan.runtime.state.layout import Int64s, StateLayout
from hintplan.runtime.state.manifest import read_manifest, write_manifest
from hintplan.runtime.state.time_buckets import TimeBuckets
from hintplan.runtime.state.under_keys import write_again

CLOSES = "__closes"
_MOST_BUCKETS = 16
"""The most buckets for the windows of a row."""


class OpenWindows:
    """The rows of one layout that wait, during one micro-batch."""

    def __init__(self, buckets: TimeBuckets, window: Window, now: int) -> None:
        self.buckets = buckets
        self._now = now
        self._width = _width(window)
        self._offset = window.offset_ms % self._width

    @property
    def layout(self) -> StateLayout:
        return self.buckets.layout

    def bucket_of(self, closes: Int64s) -> Int64s:
        """Return the end of the bucket of rows with these closing times."""
        return (closes - self._offset) // self._width * self._width + (self._width + self._offset)

    def by_bucket(self, closes: Int64s) -> Iterator[tuple[KeyedState, Int64s]]:
        """Yield each bucket that has some of these closing times, with their places."""
        ends = self.bucket_of(closes)
        for end in np.unique(ends).tolist():
            yield self.buckets.at(end), np.flatnonzero(ends == end)

    def due(self) -> int | None:
        """Return the time at which the clock closes the first of the rows; None if there are none."""
        for end in self.buckets.ends():
            state = self.buckets.at(end)
            closes = state.integers(state.up_to(CLOSES, FOREVER), CLOSES)
            if len(closes):
                return int(closes.min()) + 1
        return None

    def take_due(self, after: int) -> pa.Table:
        """Remove the rows that the watermark ``after`` closes, and return them."""
        pieces = [self.layout.schema.empty_table()]
        for end in self.buckets.ends():
            if end - 1 <= after:
                pieces.append(self.buckets.rows(end))
                self.buckets.drop(end)
            elif end - self._width <= after:
                state = self.buckets.at(end)
                codes = state.up_to(CLOSES, after)
                pieces.append(state.take(codes, self.layout.schema.names))
                if len(codes) == state.count:
                    self.buckets.drop(end)
                else:
                    write_again(state, codes, self._now, deleted=True)
        return pa.concat_tables(pieces)


def open_windows(
    layouts: Sequence[StateLayout], manifest: bytes | None, store: SegmentStore, *, window: Window, now: int
) -> dict[str, OpenWindows]:
    """Return the waiting rows with ``layouts`` by name; RunError if stored columns differ."""
    tables = read_manifest(manifest, layouts)
    return {layout.name: OpenWindows(TimeBuckets(layout, tables, store, now=now), window, now) for layout in layouts}


def commit_windows(
    windows: Mapping[str, OpenWindows],
    output: pa.Table,
    *,
    rows_in: int,
    late_rows: int,
    late_places: tuple[Int64s, ...],
    lateness: tuple[Counts, ...],
    counted: Collection[str] | None = None,
    due: int | None = None,
) -> Result:
    """Commit the changes of a batch, and return its result.

    ``counted`` are the names of the layouts whose rows count as open windows, or None for all.
    """
    return commit_buckets(
        {name: each.buckets for name, each in windows.items()},
        output,
        rows_in=rows_in,
        late_rows=late_rows,
        late_places=late_places,
        lateness=lateness,
        counted=counted,
        due=due,
    )


def commit_buckets(
    buckets: Mapping[str, TimeBuckets],
    output: pa.Table,
    *,
    rows_in: int,
    late_rows: int,
    late_places: tuple[Int64s, ...],
    lateness: tuple[Counts, ...],
    counted: Collection[str] | None = None,
    due: int | None = None,
) -> Result:
    """Commit the changes of a batch in ``buckets``, which are by the name of their layout, and return its result.

    ``counted`` are the names of the layouts whose rows count as waiting, or None for all.
    """
    by_name = {name: each.commit() for name, each in buckets.items()}
    tables = {name: table for each in by_name.values() for name, table in each.items()}
    rows = {name: sum(table.rows for table in each.values()) for name, each in by_name.items()}
    segments = [segment for table in tables.values() for segment in table.segments]
    return Result(
        output=output,
        manifest=write_manifest(tables),
        rows_in=rows_in,
        state_rows=sum(rows.values()),
        state_bytes=sum(segment.size for segment in segments),
        oldest_write=min((segment.first_write for segment in segments), default=None),
        late_rows=late_rows,
        late_places=late_places,
        lateness=lateness,
        waiting_rows=sum(count for name, count in rows.items() if counted is None or name in counted),
        due=due,
    )


def _width(window: Window) -> int:
    """Return the width of buckets in ms.

    Sessions close one by one, so their buckets are searched for due rows: narrow ones cost files, wide ones time.
    """
    if window.type == "session":
        return max(1, window.gap_ms // 2)
    width = window.step_ms
    while window.size_ms > _MOST_BUCKETS * width:
        width *= 2
    return width
