"""The kernel of an aggregate over session windows: rows of a key with gaps of less than a duration between them.

The rows of a batch and the open sessions of their keys are merged; sessions that touch are one. The watermark closes a
session as a whole: a row behind it counts if its session is still open. A session is emitted once, when it closes.
Input is insert-only. Tasks merge their rows to sessions before the shuffle, if that makes few rows of many.

State layout, format 1: tables ``sessions@end`` (hash of key and start; key; start, end and closing time in ms;
accumulators; 1; last write). Start and end are wall clocks of the window's zone. A session lies in the time bucket of
its closing time. When it grows into another bucket, it leaves the old one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from hintplan.plans.declarations.computations import AggregateCall
from hintplan.plans.declarations.windows import Window
from hintplan.plans.evidence.ages import NONE, Counts
from hintplan.plans.settings.phases import PhaseStrategy
from hintplan.runtime.kernels.accumulators import UsersCalls
from hintplan.runtime.kernels.lateness import lateness
from hintplan.runtime.kernels.mergeable import MergeableCalls
from hintplan.runtime.kernels.sessions import merged_sessions
from hintplan.runtime.kernels.windows import wall_clock
from hintplan.runtime.operator import Inheritance, InputSpec, Result, SegmentStore, Watermarks
from hintplan.runtime.operator import hash_column as hash_name
from hintplan.runtime.operators.open_sessions import (
    END,
    SESSIONS,
    START,
    KeyedIntervals,
    merge,
    sessions_layout,
    store_sessions,
    stored_parts,
    stored_rows,
)
from hintplan.runtime.operators.open_windows import OpenWindows, commit_windows, open_windows
from hintplan.runtime.operators.window_function import Names, walls, window_columns, window_fields
from hintplan.runtime.state.identity import encode_groups, hashed_groups, without_chunks
from hintplan.runtime.state.inherit import inherit_tables
from hintplan.runtime.state.layout import Int64s, StateLayout, int64s

ROWS = "__rows"
_WORTH = 4
"""The rows per session from which merging them before the shuffle costs less than it saves, as of partial sums."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOperator:
    """An aggregate by ``keys`` over sessions of the rowtime ``time``, bound to its input columns and result types.

    Sessions of processing time have no ``time``: all rows of a batch have the time of the batch. ``operator`` is its
    id. ``names`` are the names of the output columns with start, end and rowtime of a session.
    """

    operator: str
    columns: pa.Schema
    keys: tuple[str, ...]
    time: str | None
    window: Window
    calls: tuple[AggregateCall, ...]
    types: tuple[pa.DataType, ...]
    names: Names
    phases: PhaseStrategy = "AUTO"
    users: Mapping[str, UsersCalls] = field(default_factory=dict)

    @property
    def key_columns(self) -> pa.Schema:
        return pa.schema([self.columns.field(key) for key in self.keys])

    @property
    def mergeable(self) -> MergeableCalls:
        return MergeableCalls(columns=self.columns, calls=self.calls, types=self.types, users=self.users)

    @property
    def layout(self) -> StateLayout:
        return sessions_layout(self.key_columns, self.mergeable.stored)

    @property
    def layouts(self) -> tuple[StateLayout, ...]:
        return (self.layout,)

    @property
    def inputs(self) -> tuple[InputSpec, ...]:
        return (InputSpec(columns=self.columns, hashes=(self.keys,), changelog=False, presum=self.presum),)

    @property
    def presum(self) -> SessionSums | None:
        """The sessions that tasks make of their rows before the shuffle; None in one phase."""
        if self.phases == "ONE_PHASE" or not self.mergeable.merges:
            return None
        return SessionSums(operator=self, required=self.phases == "TWO_PHASE")

    @property
    def output(self) -> pa.Schema:
        calls = (pa.field(call.name, kind) for call, kind in zip(self.calls, self.types, strict=True))
        return pa.schema([*self.key_columns, *calls, *window_fields(self.names, self.window.zone)])

    def process(
        self,
        deltas: Sequence[pa.Table | None],
        manifest: bytes | None,
        store: SegmentStore,
        now: int,
        watermarks: Watermarks,
    ) -> Result:
        windows = open_windows(self.layouts, manifest, store, window=self.window, now=now)
        sessions, closed, came = windows[SESSIONS], [], 0
        late_places, passed = np.empty(0, np.int64), NONE
        rows = deltas[0]
        if rows is not None and rows.num_rows:
            new, late_places, passed, came = _update(self, sessions, rows.combine_chunks(), watermarks, now)
            closed.append(new)
        closed.append(sessions.take_due(watermarks.after))
        output = _results(self, pa.concat_tables(closed))
        return commit_windows(
            windows,
            output,
            rows_in=came,
            late_rows=sum(passed),
            late_places=(late_places,),
            lateness=(passed,),
            due=sessions.due() if self.window.processing_time else None,
        )

    def inherit(self, store: Inheritance) -> bytes | None:
        return inherit_tables(store, self.layouts)

    @property
    def partial(self) -> pa.Schema:
        """The columns of sessions that tasks send: keys, accumulators, start, end, number of rows, hash of the keys."""
        numbers = [pa.field(name, pa.int64()) for name in (START, END, ROWS, hash_name(0))]
        return pa.schema([*self.key_columns, *self.mergeable.stored, *numbers])


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSums:
    """Merges the rows of a task to sessions of ``operator`` before the shuffle; if not ``required``, only if worth it.

    A late row of a session with a row that is not late counts either way.
    """

    operator: SessionOperator
    required: bool

    @property
    def schema(self) -> pa.Schema:
        return self.operator.partial

    @property
    def by_hash(self) -> bool:
        """False: the rows of a task come in order of time and have few keys, so values tell them apart faster."""
        return False

    def sum_up(self, rows: pa.Table) -> pa.Table | None:
        batch = rows.combine_chunks()
        columns = [without_chunks(batch[name]) for name in self.operator.keys]
        keys = encode_groups(columns)[0] if columns else np.zeros(batch.num_rows, np.int64)
        starts, ends = _intervals(self.operator, batch)
        sessions = merged_sessions(keys, starts, ends)
        size = len(sessions.keys)
        if not self.required and _WORTH * size > batch.num_rows:
            return None
        if self.operator.mergeable.are_large(batch, sessions.number, size):
            return None
        return self._sessions(batch, sessions.number, sessions.starts, sessions.ends)

    def lift(self, rows: pa.Table) -> pa.Table:
        batch = rows.combine_chunks()
        return self._sessions(batch, np.arange(batch.num_rows), *_intervals(self.operator, batch))

    def _sessions(self, batch: pa.Table, number: Int64s, starts: Int64s, ends: Int64s) -> pa.Table:
        size, calls = len(starts), self.operator.mergeable
        first = np.empty(size, np.int64)
        first[number[::-1]] = np.arange(len(number) - 1, -1, -1)
        columns = calls.folded(calls.stored.empty_table(), np.empty(0, np.int64), batch, number, size)
        hashes = [name for name in batch.column_names if name == hash_name(0)]
        of_rows = batch.select([*self.operator.keys, *hashes]).take(pa.array(first))
        count = np.bincount(number, minlength=size)
        keys, hash_columns = (of_rows.select(names).columns for names in (self.operator.keys, hashes))
        parts = [*keys, *columns.values(), starts, ends, count, *hash_columns]
        return pa.table(parts, schema=pa.schema(list(self.schema)[: len(parts)]))


def _keys(operator: SessionOperator, batch: pa.Table) -> tuple[Int64s, Int64s]:
    """Return the number of each row's key, and the first row of each key."""
    return hashed_groups([without_chunks(batch[name]) for name in operator.keys], int64s(batch, hash_name(0)))


def _intervals(operator: SessionOperator, batch: pa.Table) -> tuple[Int64s, Int64s]:
    """Return start and end of the window of each row, or of the part of a session that a task has made.

    With processing time, they count from the time of the batch.
    """
    if START in batch.column_names:
        return int64s(batch, START), int64s(batch, END)
    if operator.time is None:
        return np.zeros(batch.num_rows, np.int64), np.full(batch.num_rows, operator.window.gap_ms)
    starts = walls(batch, operator.time, operator.window.zone, operator.operator)
    return starts, starts + operator.window.gap_ms


def _update(
    operator: SessionOperator, windows: OpenWindows, batch: pa.Table, watermarks: Watermarks, now: int
) -> tuple[pa.Table, Int64s, Counts, int]:
    """Merge the rows of ``batch`` with open sessions, and store the sessions that stay open.

    Return the sessions that close, of the late rows their places and their lateness, and the number of rows.
    """
    rows_of = int64s(batch, ROWS) if ROWS in batch.column_names else np.ones(batch.num_rows, np.int64)
    key, first = _keys(operator, batch)
    starts, ends = _intervals(operator, batch)
    if operator.time is None:
        batch_time = wall_clock(np.array([watermarks.processing_time(now)]), operator.window.zone)
        starts, ends = starts + batch_time, ends + batch_time
    intervals = KeyedIntervals(
        keys=batch.select(list(operator.keys)).take(pa.array(first)),
        hashes=int64s(batch, hash_name(0))[first],
        key=key,
        starts=starts,
        ends=ends,
    )
    sessions = merge(windows, intervals, operator.window, watermarks.before)
    number, calls, size = sessions.of_interval, operator.mergeable, len(sessions.starts)
    is_late = number < 0
    if is_late.any():
        batch, number = batch.filter(pa.array(~is_late)).combine_chunks(), number[~is_late]
    parts = stored_parts(windows, sessions, calls.stored.names)
    if ROWS in batch.column_names:
        parts = pa.concat_tables([parts, batch.select(calls.stored.names)]).combine_chunks()
        part_of = np.concatenate((sessions.of_stored, number))
        folded = calls.folded(parts, part_of, operator.columns.empty_table(), np.empty(0, np.int64), size)
    else:
        folded = calls.folded(parts, sessions.of_stored, batch, number, size)
    is_due = sessions.closes <= watermarks.after
    rows = stored_rows(windows.layout, sessions, list(folded.values()), now)
    store_sessions(windows, sessions, rows, ~is_due, now)
    passed = lateness(sessions.late_closes, watermarks.before, rows_of[is_late])
    return rows.filter(pa.array(is_due)), np.flatnonzero(is_late), passed, int(rows_of.sum())


def _results(operator: SessionOperator, closed: pa.Table) -> pa.Table:
    """Return the output rows of sessions that close."""
    closed = closed.combine_chunks()
    columns = {name: without_chunks(closed[name]) for name in operator.mergeable.stored.names}
    results = operator.mergeable.results(columns, closed.num_rows)
    starts, ends = int64s(closed, START), int64s(closed, END)
    window = window_columns(operator.output, operator.names, operator.window.zone, starts, ends)
    return pa.table([*(closed[name] for name in operator.keys), *results, *window.values()], schema=operator.output)
