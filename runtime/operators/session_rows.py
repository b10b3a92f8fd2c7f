"""The kernel of SESSION without an aggregate: rows wait until their session closes, then they have its window.

Sessions are merged and closed as in :mod:`hintplan.runtime.operators.session`. Late rows are dropped. A session that
grows does not move its rows: they lie by their own time, and are looked up by key when the session closes.

State layout, format 1: tables ``sessions@end`` as of the aggregate, without accumulators, and ``rows@end`` (hash of key
and row; all columns; count; last write). A row lies in the time bucket of its own wall clock, and is deleted when it is
emitted. A bucket is dropped with the last of its rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hintplan.plans.declarations.windows import Window
from hintplan.plans.evidence.ages import NONE, Counts
from hintplan.runtime.kernels.lateness import lateness
from hintplan.runtime.kernels.windows import milliseconds, wall_clock
from hintplan.runtime.operator import Inheritance, InputSpec, Result, SegmentStore, Watermarks
from hintplan.runtime.operator import hash_column as hash_name
from hintplan.runtime.operators.open_sessions import (
    END,
    START,
    KeyedIntervals,
    MergedSessions,
    merge,
    sessions_layout,
    store_sessions,
    stored_rows,
)
from hintplan.runtime.operators.open_windows import OpenWindows, commit_windows, open_windows
from hintplan.runtime.operators.window_function import Names, walls, window_columns
from hintplan.runtime.state.identity import hashed_groups, without_chunks
from hintplan.runtime.state.inherit import inherit_tables
from hintplan.runtime.state.layout import COUNT, HASH, Int64s, StateLayout, int64s, prefixed_hash
from hintplan.runtime.state.tables import rows_in
from hintplan.runtime.state.time_buckets import TimeBuckets
from hintplan.runtime.state.under_keys import add_copies, stored_under, write_again

WAITING = "rows"
_GAPS = 4
"""The width of a bucket of rows, in gaps: most sessions then lie in one or two buckets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRowsOperator:
    """SESSION by ``keys`` of the rowtime ``time``, with the id ``operator``.

    ``output`` is the schema of the input and of the columns ``names`` with start, end and rowtime of a session.
    """

    operator: str
    columns: pa.Schema
    keys: tuple[str, ...]
    time: str
    window: Window
    names: Names
    output: pa.Schema

    @property
    def layouts(self) -> tuple[StateLayout, StateLayout]:
        keys = pa.schema([self.columns.field(key) for key in self.keys])
        rows = StateLayout(name=WAITING, identity=self.columns, payload=pa.schema([]), key=self.keys, by_time=True)
        return sessions_layout(keys, pa.schema([])), rows

    @property
    def inputs(self) -> tuple[InputSpec, ...]:
        hashes = (self.keys, tuple(self.columns.names))
        return (InputSpec(columns=self.columns, hashes=hashes, changelog=False),)

    def process(
        self,
        deltas: Sequence[pa.Table | None],
        manifest: bytes | None,
        store: SegmentStore,
        now: int,
        watermarks: Watermarks,
    ) -> Result:
        windows = open_windows(self.layouts, manifest, store, window=self.window, now=now)
        sessions, waiting = windows.values()
        output, closed, late, passed = [self.output.empty_table()], [], np.empty(0, np.int64), NONE
        rows = deltas[0]
        if rows is not None and rows.num_rows:
            batch = rows.combine_chunks()
            at_once, new, late, passed = _update(self, sessions, waiting.buckets, batch, watermarks, now)
            output.append(at_once)
            closed.append(new)
        closed.append(sessions.take_due(watermarks.after))
        output += _emitted(self, waiting.buckets, pa.concat_tables(closed).combine_chunks(), now)
        return commit_windows(
            windows,
            pa.concat_tables(output),
            rows_in=rows_in(deltas),
            late_rows=len(late),
            late_places=(late,),
            lateness=(passed,),
            counted=(WAITING,),
            due=sessions.due() if self.window.processing_time else None,
        )

    def inherit(self, store: Inheritance) -> bytes | None:
        return inherit_tables(store, self.layouts)

    @property
    def width(self) -> int:
        """The width of a bucket of rows in ms."""
        return _GAPS * self.window.gap_ms


def _update(
    operator: SessionRowsOperator,
    windows: OpenWindows,
    waiting: TimeBuckets,
    batch: pa.Table,
    watermarks: Watermarks,
    now: int,
) -> tuple[pa.Table, pa.Table, Int64s, Counts]:
    """Merge the rows of ``batch`` with open sessions, and store the sessions that stay open and their rows.

    Return the rows of the batch whose session closes, the sessions that close and have stored rows, and of the late
    rows, their places and their lateness.
    """
    times, hashes = walls(batch, operator.time, operator.window.zone, operator.operator), int64s(batch, hash_name(0))
    key, first = hashed_groups([without_chunks(batch[name]) for name in operator.keys], hashes)
    intervals = KeyedIntervals(
        keys=batch.select(list(operator.keys)).take(pa.array(first)),
        hashes=hashes[first],
        key=key,
        starts=times,
        ends=times + operator.window.gap_ms,
    )
    sessions = merge(windows, intervals, operator.window, watermarks.before)
    number = sessions.of_interval
    is_due = sessions.closes <= watermarks.after
    stored = stored_rows(windows.layout, sessions, [], now)
    store_sessions(windows, sessions, stored, ~is_due, now)
    due = np.append(is_due, False)[number]  # a late row has session -1
    _wait(operator, waiting, batch, times, np.flatnonzero(~due & (number >= 0)), now)
    had_rows = np.zeros(len(is_due), np.bool_)
    had_rows[sessions.of_stored] = True
    return (
        _due(operator, batch, number, np.flatnonzero(due), sessions),
        stored.filter(pa.array(is_due & had_rows)),
        np.flatnonzero(number < 0),
        lateness(sessions.late_closes, watermarks.before),
    )


def _wait(
    operator: SessionRowsOperator, waiting: TimeBuckets, batch: pa.Table, times: Int64s, places: Int64s, now: int
) -> None:
    """Store the rows at ``places``."""
    width = operator.width
    ends = (times[places] // width + 1) * width
    for end in np.unique(ends).tolist():
        rows = batch.take(pa.array(places[ends == end]))
        hashes = prefixed_hash(int64s(rows, hash_name(0)), int64s(rows, hash_name(1)))
        add_copies(waiting.at(end), rows, hashes, {}, now)


def _due(
    operator: SessionRowsOperator, batch: pa.Table, number: Int64s, places: Int64s, sessions: MergedSessions
) -> pa.Table:
    """Return the rows at ``places`` with the windows of their sessions."""
    session = number[places]
    return _with_windows(operator, batch.take(pa.array(places)), sessions.starts[session], sessions.ends[session])


def _emitted(operator: SessionRowsOperator, waiting: TimeBuckets, closed: pa.Table, now: int) -> list[pa.Table]:
    """Remove the rows of ``closed`` sessions from state, and return them with their windows."""
    pieces = []
    starts, ends, hashes = int64s(closed, START), int64s(closed, END), int64s(closed, HASH)
    keys = closed.select(list(operator.keys))
    for bucket in waiting.ends() if closed.num_rows else ():
        # The rows of a session are from its start to a gap before its end.
        here = np.flatnonzero((starts < bucket) & (ends - operator.window.gap_ms >= bucket - operator.width))
        if not here.size:
            continue
        state = waiting.at(bucket)
        place, code = stored_under(state, keys.take(pa.array(here)), hashes[here])
        times = wall_clock(milliseconds(state.take(code, [operator.time])[operator.time]), operator.window.zone)
        session = here[place]
        is_in = (starts[session] <= times) & (times < ends[session])
        session, code = session[is_in], code[is_in]
        copies = np.repeat(np.arange(len(code)), state.integers(code, COUNT))
        rows = state.take(code[copies], operator.columns.names)
        pieces.append(_with_windows(operator, rows, starts[session[copies]], ends[session[copies]]))
        if len(code) == state.count:
            waiting.drop(bucket)
        else:
            write_again(state, code, now, deleted=True)
    return pieces


def _with_windows(operator: SessionRowsOperator, rows: pa.Table, starts: Int64s, ends: Int64s) -> pa.Table:
    window = window_columns(operator.output, operator.names, operator.window.zone, starts, ends)
    return pa.table([*(rows[name] for name in operator.columns.names), *window.values()], schema=operator.output)
