"""The kernel of the window aggregate of TUMBLE, HOP and CUMULATE, and of windows that the input has as columns.

Rows are added to the groups of their key and slice (:mod:`hintplan.runtime.operators.accumulation`). A window is put
out, as +I, in the batch whose watermark passes its end: the groups of all of its slices, merged. A row is late if the
watermark had passed all of its windows before the batch. A window without rows is not put out, nor is a group whose
rows were all retracted.

- HOP: a batch reads each slice once, for all windows that it closes. A slice becomes one segment when it is first
  read, because few rows come after that. If a window has more than 64 slices, a bucket has as many of them as are
  needed for at most 64 buckets per window, a power of two. If its size is no multiple of its slide, as in GROUP BY, a
  slice is as long as their greatest common divisor. If the slide is longer than the size, rows between windows are
  dropped, and not counted as late.
- CUMULATE: the groups of a slice that closes are put out, and then merged into the next slice of the longest window.
  So there is a result for each step, with or without new rows. A row that is late for some windows goes to the first
  slice whose window is open.
- Accumulators that need the values of rows cannot be merged. Their rows are added to each of their windows instead.
- Windows in columns: a window is a slice. Rows whose window is due in their batch are never stored.
- Windows of processing time: all rows of a batch have its time, and so one slice.

State layout, format 1: the tables of the accumulation by time, one for each slice, without the slice's end. If a
bucket has several slices, its rows have the end of their slice, and the hash of their key and slice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import pyarrow as pa

from hintplan.plans.declarations.computations import AggregateCall
from hintplan.plans.declarations.windows import Window, WindowColumns
from hintplan.plans.evidence.ages import NONE, Counts
from hintplan.plans.settings.phases import PhaseStrategy
from hintplan.runtime.kernels.accumulators import UsersCalls
from hintplan.runtime.kernels.changelog import weights_of
from hintplan.runtime.kernels.lateness import lateness
from hintplan.runtime.kernels.partial import ROWS, WEIGHT, rows_behind
from hintplan.runtime.kernels.slices import Slices, distinct_ends
from hintplan.runtime.kernels.windows import (
    closing_time,
    first_window_ends,
    last_window_ends,
    milliseconds,
    slice_ends,
    wall_clock,
    window_starts,
    windows_of,
)
from hintplan.runtime.operator import FOREVER, Inheritance, InputSpec, Result, SegmentStore, Watermarks
from hintplan.runtime.operators.accumulation import GROUPS, Accumulation, GroupChange, change_groups, merge_groups
from hintplan.runtime.operators.window_function import Names, window_columns, window_fields
from hintplan.runtime.state.identity import without_chunks
from hintplan.runtime.state.inherit import inherit_tables
from hintplan.runtime.state.layout import HASH, SUFFIX_MASK, Int64s, StateLayout, bucket_end, int64s
from hintplan.runtime.state.manifest import StateTable, read_manifest
from hintplan.runtime.state.sliced import END, BucketWidth, SlicedState, stored_layout
from hintplan.runtime.state.tables import result_of
from hintplan.runtime.state.time_buckets import TimeBuckets

_MOST_BUCKETS = 64
"""The most buckets of the slices of a window."""
_MOST_ROWS = 1 << 20
"""The most rows of groups that are merged at once, unless a window has more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowAggregateOperator:
    """A window aggregate bound to its input columns and result types.

    The windows are over the rowtime ``time``, or the input has them in the columns ``attached``; windows of processing
    time have neither. ``operator`` is its id. ``names`` are the names of the output columns with start, end and rowtime
    of a window.
    """

    operator: str
    columns: pa.Schema
    changelog: bool
    keys: tuple[str, ...]
    calls: tuple[AggregateCall, ...]
    types: tuple[pa.DataType, ...]
    window: Window
    names: Names
    time: str | None = None
    attached: WindowColumns | None = None
    whole: bool = False
    """True to keep each window as one slice, so that a row is added to all of its windows."""
    phases: PhaseStrategy = "AUTO"
    users: Mapping[str, UsersCalls] = field(default_factory=dict)
    """The adapters that call the user's aggregate functions, by function name."""

    @property
    def group_keys(self) -> tuple[str, ...]:
        """The columns that distinguish groups with the same window end: sessions may have different starts."""
        if self.attached is None or self.window.type != "session":
            return self.keys
        return (*self.keys, self.attached.start)

    @property
    def accumulation(self) -> Accumulation:
        """The groups by key and slice."""
        return Accumulation(
            columns=self.columns.append(pa.field(END, pa.int64())),
            changelog=self.changelog,
            keys=(*self.group_keys, END),
            calls=self.calls,
            users=self.users,
        )

    @property
    def slices(self) -> Slices:
        column = self.time or "" if self.attached is None else self.attached.end
        return Slices(operator=self.operator, window=self.window, column=column, are_ends=self.attached is not None)

    @property
    def layouts(self) -> tuple[StateLayout, ...]:
        return tuple(stored_layout(layout, self.width) for layout in self.accumulation.layouts)

    @property
    def width(self) -> BucketWidth:
        """The width of buckets, which depends on the window alone."""
        if self.kind != "hop":
            return BucketWidth(step=1)
        slices = 1
        while self.window.size_ms > _MOST_BUCKETS * slices * self.window.slice_ms:
            slices *= 2
        return BucketWidth(step=self.window.slice_ms, offset=self.window.offset_ms, slices=slices)

    @property
    def inputs(self) -> tuple[InputSpec, ...]:
        accumulation = self.accumulation
        route = self.keys if self.attached is None else (*self.keys, self.attached.end)
        presum = accumulation.presum(self.phases, self.slices)
        hashes = (route, *accumulation.hashes)
        return (InputSpec(columns=self.columns, hashes=hashes, changelog=self.changelog, presum=presum),)

    @property
    def output(self) -> pa.Schema:
        keys = [self.columns.field(key) for key in self.keys]
        calls = (pa.field(call.name, kind) for call, kind in zip(self.calls, self.types, strict=True))
        return pa.schema([*keys, *calls, *window_fields(self.names, self.window.zone)])

    def process(
        self,
        deltas: Sequence[pa.Table | None],
        manifest: bytes | None,
        store: SegmentStore,
        now: int,
        watermarks: Watermarks,
    ) -> Result:
        rows, layouts = deltas[0], self.layouts
        tables = read_manifest(manifest, layouts)
        buckets = {layout.name: TimeBuckets(layout, tables, store, now=now) for layout in layouts}
        passed, places = NONE, np.empty(0, np.int64)
        if rows is not None and rows.num_rows:
            passed, places, _ = add_rows(self, buckets, rows, watermarks, now)
        output = _close(self, buckets, watermarks)
        groups, *others = (of_layout.commit() for of_layout in buckets.values())
        result = result_of({name: table for part in (groups, *others) for name, table in part.items()}, output, 0)
        waiting_rows = sum(table.rows for table in groups.values())
        return replace(
            result,
            rows_in=rows_behind(rows),
            late_rows=sum(passed),
            waiting_rows=waiting_rows,
            late_places=(places,),
            lateness=(passed,),
            due=next_due(self, groups, watermarks.after) if self.window.processing_time else None,
        )

    def inherit(self, store: Inheritance) -> bytes | None:
        return inherit_tables(store, self.layouts)

    @property
    def kind(self) -> Literal["single", "repeated", "hop", "cumulate"]:
        """The relation of slices and windows.

        - ``single``: a window is one slice.
        - ``repeated``: so it is, because each row is added to all of its windows. ``whole`` windows are, and windows
          of accumulators that need the values of rows.
        - ``hop`` and ``cumulate``: a window consists of several slices, whose groups are merged when it closes.
        """
        if self.attached is not None or self.window.type not in ("hop", "cumulate"):
            return "single"
        return "repeated" if self.whole or self.accumulation.remembers else self.window.type

    @property
    def has_gaps(self) -> bool:
        """True if there are times between windows, so that rows may belong to none."""
        return self.attached is None and self.window.type == "hop" and self.window.step_ms > self.window.size_ms

    def windows(self, ends: Int64s) -> tuple[Int64s, Int64s]:
        """Return all windows of each slice, as parallel places in ``ends`` and window ends, in order of both."""
        return (np.arange(len(ends)), ends) if self.attached is not None else windows_of(self.window, ends)

    def last_window_ends(self, ends: Int64s) -> Int64s:
        """Return the end of the last window of each slice."""
        return ends if self.attached is not None else last_window_ends(self.window, ends)

    def closing(self, ends: Int64s) -> Int64s:
        """Return the lowest watermark that closes the windows with these ``ends``."""
        return closing_time(ends, self.window.zone)


def add_rows(
    operator: WindowAggregateOperator,
    buckets: Mapping[str, TimeBuckets],
    rows: pa.Table,
    watermarks: Watermarks,
    now: int,
) -> tuple[Counts, Int64s, GroupChange | None]:
    """Add ``rows`` to the groups of their slices.

    Return the lateness of late rows, their places, and the change of the groups. Rows that a task has summed up count
    each, and have one place.
    """
    batch = (rows if WEIGHT in rows.column_names else operator.slices.added_to(rows)).combine_chunks()
    before = watermarks.before
    if operator.window.processing_time:
        batch = _with_ends(batch, _slice_at(operator.window, watermarks.processing_time(now)))
    in_windows = _in_windows(operator, batch) if operator.has_gaps else None
    if in_windows is not None:
        batch = batch.take(pa.array(in_windows)).combine_chunks()
    ends, numbers = distinct_ends(batch)
    places, targets = _targets(operator, ends, before)
    counts = np.bincount(places, minlength=len(ends))
    passed, late_places, change = NONE, np.empty(0, np.int64), None
    if not counts.all():
        late_places = np.flatnonzero(counts[numbers] == 0)
        closes = operator.closing(operator.last_window_ends(ends))
        rows_of = int64s(batch, ROWS)[late_places] if ROWS in batch.column_names else None
        passed = lateness(closes[numbers[late_places]], before, rows_of)
    if len(places) != len(ends) or (targets != ends).any():
        batch = _moved(batch, numbers, counts, targets)
    if batch.num_rows:
        accumulation = operator.accumulation
        width = operator.width
        states = {layout.name: SlicedState(layout, buckets[layout.name], width) for layout in accumulation.layouts}
        weights = batch[WEIGHT].to_numpy() if WEIGHT in batch.column_names else weights_of(batch)
        change = change_groups(accumulation, states, batch, weights, now)
    return passed, late_places if in_windows is None else in_windows[late_places], change


def _in_windows(operator: WindowAggregateOperator, batch: pa.Table) -> Int64s:
    """Return the places of the rows of ``batch`` that belong to a window."""
    ends = int64s(batch, END)
    return np.flatnonzero(first_window_ends(operator.window, ends) <= last_window_ends(operator.window, ends))


def _slice_at(window: Window, time: int) -> int:
    """Return the end of the slice of ``time``."""
    return int(slice_ends(window, wall_clock(np.array([time]), window.zone))[0])


def next_due(operator: WindowAggregateOperator, groups: Mapping[str, StateTable], after: int) -> int | None:
    """Return the time at which the clock closes the next window that has ``groups``; None if there are none."""
    ends = np.array(sorted(map(bucket_end, groups)), np.int64)
    if operator.kind == "hop":
        ends = _due_windows(operator, ends, Watermarks(after, FOREVER))
    return int(operator.closing(ends[:1])[0]) + 1 if len(ends) else None


def _targets(operator: WindowAggregateOperator, ends: Int64s, before: int) -> tuple[Int64s, Int64s]:
    """Return the slices to which rows of the slices ``ends`` are added, as parallel places in ``ends`` and slice ends.

    Slices whose windows all closed by ``before`` have none.
    """
    places, window_ends = operator.windows(ends)
    is_open = operator.closing(window_ends) > before
    places, window_ends = places[is_open], window_ends[is_open]
    if operator.kind == "repeated":
        return places, window_ends
    first = np.flatnonzero(np.concatenate(([True], places[1:] != places[:-1]))[: len(places)])
    return places[first], ends[places[first]] if operator.kind == "hop" else window_ends[first]


def _moved(batch: pa.Table, numbers: Int64s, counts: Int64s, targets: Int64s) -> pa.Table:
    """Return the rows of slice number i ``counts[i]`` times, with the ends that ``targets`` has for the slice."""
    repeats = counts[numbers]
    rows = np.repeat(np.arange(len(numbers)), repeats)
    nth = np.arange(len(rows)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    first = np.cumsum(counts) - counts
    return _with_ends(batch.take(pa.array(rows)), targets[first[numbers[rows]] + nth]).combine_chunks()


def _with_ends(rows: pa.Table, ends: Int64s | int) -> pa.Table:
    column = pa.array(np.full(rows.num_rows, ends) if isinstance(ends, int) else ends)
    if END in rows.column_names:
        return rows.set_column(rows.column_names.index(END), END, column)
    return rows.append_column(END, column)


def _close(operator: WindowAggregateOperator, buckets: Mapping[str, TimeBuckets], watermarks: Watermarks) -> pa.Table:
    """Return the results of the windows that ``watermarks`` close, and drop the slices that no open window needs."""
    groups, after = buckets[GROUPS], watermarks.after
    if operator.kind == "hop":
        rows = _hopping(operator, groups, watermarks)
    elif operator.kind == "cumulate":
        rows = _cumulated(operator, groups, after)
    else:
        rows = [_with_ends(groups.rows(end), end) for end in _passed(operator, groups.ends(), after)]
    for of_layout in buckets.values():
        ends = np.array(of_layout.ends(), np.int64)
        last = last_window_ends(operator.window, ends) if operator.kind == "hop" else ends
        for end in ends[operator.closing(last) <= after].tolist():
            of_layout.drop(end)
    return _results(operator, pa.concat_tables(rows)) if rows else operator.output.empty_table()


def _passed(operator: WindowAggregateOperator, ends: Sequence[int], after: int) -> list[int]:
    """Return the ``ends`` of windows that ``after`` has closed."""
    every = np.array(ends, np.int64)
    passed: list[int] = every[operator.closing(every) <= after].tolist()
    return passed


def _hopping(operator: WindowAggregateOperator, groups: TimeBuckets, watermarks: Watermarks) -> list[pa.Table]:
    """Return the groups of the windows of HOP that ``watermarks`` close; each slice is read once."""
    due = _due_windows(operator, np.array(groups.ends(), np.int64), watermarks)
    if not len(due):
        return []
    size, width = operator.window.size_ms, operator.width
    rows = pa.concat_tables(
        _slices_of(groups, end, width)
        for end in groups.ends()
        if np.searchsorted(due, end - width.ms, "right") < np.searchsorted(due, end + size)
    )
    ends = int64s(rows, END)
    if (ends[1:] < ends[:-1]).any():  # the slices of a window must be in order of time
        order = np.argsort(ends, kind="stable")
        rows, ends = rows.combine_chunks().take(pa.array(order)), ends[order]
    first, last = np.searchsorted(ends, due - size, "right"), np.searchsorted(ends, due, "right")
    merged: list[pa.Table] = []
    waiting: list[pa.Table] = []
    for window_end, begin, end in zip(due.tolist(), first.tolist(), last.tolist(), strict=True):
        if waiting and sum(part.num_rows for part in waiting) + end - begin > _MOST_ROWS:
            merged.append(merge_groups(operator.accumulation, pa.concat_tables(waiting)))
            waiting = []
        waiting.append(_with_ends(rows.slice(begin, end - begin), window_end))
    return [*merged, merge_groups(operator.accumulation, pa.concat_tables(waiting))]


def _due_windows(operator: WindowAggregateOperator, buckets: Int64s, watermarks: Watermarks) -> Int64s:
    """Return the ends of the windows of HOP that have slices in ``buckets``, and that ``watermarks`` close."""
    if not len(buckets):
        return buckets
    window, width = operator.window, operator.width
    first = first_window_ends(window, buckets - (width.ms - width.step))
    last = last_window_ends(window, buckets)
    first[1:] = np.maximum(first[1:], last[:-1] + window.step_ms)
    counts = np.maximum(last - first, -window.step_ms) // window.step_ms + 1
    number = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    ends = np.repeat(first, counts) + number * window.step_ms
    closing = operator.closing(ends)
    due: Int64s = ends[(closing > watermarks.before) & (closing <= watermarks.after)]
    return due


def _slices_of(groups: TimeBuckets, end: int, width: BucketWidth) -> pa.Table:
    """Return the groups of a bucket, with the end of their slice and the hash of their key."""
    if width.is_slice:
        return _with_ends(groups.gathered(end), end)
    rows = groups.rows(end)
    hashes = int64s(rows, HASH) & ~SUFFIX_MASK
    return rows.set_column(rows.column_names.index(HASH), HASH, pa.array(hashes))


def _cumulated(operator: WindowAggregateOperator, groups: TimeBuckets, after: int) -> list[pa.Table]:
    """Return the groups of the windows of CUMULATE that ``after`` closes, and merge each into the next slice."""
    accumulation, window = operator.accumulation, operator.window
    waiting, parts = groups.ends(), []
    while waiting and _passed(operator, waiting[:1], after):
        end = waiting.pop(0)
        rows = groups.rows(end)
        parts.append(_with_ends(rows, end))
        if end == last_window_ends(window, np.array([end]))[0] or not rows.num_rows:
            continue
        following = groups.at(end + window.step_ms)
        both = [_with_ends(part, 0) for part in (rows, following.rows())]
        following.replace(merge_groups(accumulation, pa.concat_tables(both)).drop_columns(END))
        if waiting[:1] != [end + window.step_ms]:
            waiting.insert(0, end + window.step_ms)
    return parts


def _results(operator: WindowAggregateOperator, rows: pa.Table) -> pa.Table:
    """Return the output for ``rows`` of the table of groups with the end of their window."""
    rows = rows.combine_chunks()
    accumulation, ends = operator.accumulation, int64s(rows, END)
    state = {name: without_chunks(rows[name]) for name, _ in accumulation.stored}
    columns = [rows[key] for key in operator.keys]
    columns += accumulation.results(operator.types, state, np.ones(rows.num_rows, np.bool_))
    of_window = window_columns(
        operator.output, operator.names, operator.window.zone, _starts(operator, rows, ends), ends
    )
    return pa.table([*columns, *of_window.values()], names=operator.output.names).cast(operator.output)


def _starts(operator: WindowAggregateOperator, rows: pa.Table, ends: Int64s) -> Int64s:
    if operator.attached is not None and operator.window.type == "session":
        return milliseconds(rows[operator.attached.start])
    return window_starts(operator.window, ends)
