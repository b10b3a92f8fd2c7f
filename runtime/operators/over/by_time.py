"""The kernels of an over aggregate in the order of a time: each row is emitted once, with the results of its functions.

By rowtime, rows wait until the watermark passes them, and come out in order of time, then of arrival. Rows behind the
watermark are dropped. By processing time, rows come out at once in the order of arrival, and their time is the time of
their batch.

State layout, format 1: table ``waiting@end`` of a rowtime (:mod:`hintplan.runtime.operators.waiting_rows`), then table
``keys`` (:mod:`hintplan.runtime.operators.over.functions`). If the frame begins at a time, there is instead table
``recent@end`` (hash of key and arrival; key; arrival; time in ms; the columns that functions read; 1; last write): a
row lies in the bucket of its time, until no later row can have it in its frame.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from hintplan.plans.evidence.ages import NONE, Counts
from hintplan.runtime.kernels.frames import order_by
from hintplan.runtime.kernels.lateness import lateness
from hintplan.runtime.operator import FOREVER, Inheritance, InputSpec, Result, SegmentStore, Watermarks
from hintplan.runtime.operator import hash_column as hash_name
from hintplan.runtime.operators.over.functions import (
    DueRows,
    KeptRows,
    OverFunctions,
    results_of_keys,
    results_over_kept_rows,
)
from hintplan.runtime.operators.waiting_rows import ARRIVAL, TIME, WaitingRows, waiting_layout
from hintplan.runtime.operators.window_function import walls
from hintplan.runtime.state.inherit import inherit_tables
from hintplan.runtime.state.keyed import KeyedState
from hintplan.runtime.state.layout import HASH, Int64s, StateLayout, int64s
from hintplan.runtime.state.manifest import StateTable, read_manifest
from hintplan.runtime.state.observation import Observation
from hintplan.runtime.state.tables import result_of, rows_in
from hintplan.runtime.state.time_buckets import TimeBuckets
from hintplan.runtime.state.under_keys import stored_under

WAITING, RECENT = "waiting", "recent"
_BUCKETS = 8
"""The number of buckets of rows that a frame of time reaches back to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Over:
    """An over aggregate with the id ``operator``, bound to its functions; ``ttl`` is in ms, 0 never expires."""

    operator: str
    functions: OverFunctions
    ttl: int

    @property
    def kept_layout(self) -> StateLayout:
        """The layout of the table of keys, or of recent rows."""
        functions = self.functions
        if not functions.keeps_rows:
            return functions.layout
        columns, key = functions.columns, functions.key
        identity = [*(columns.field(name) for name in key), pa.field(ARRIVAL, pa.int64())]
        payload = [columns.field(name) for name in functions.arguments if name not in key]
        return StateLayout(
            name=RECENT,
            identity=pa.schema(identity),
            payload=pa.schema([pa.field(TIME, pa.int64()), *payload]),
            key=key,
            by_time=True,
        )

    @property
    def inputs(self) -> tuple[InputSpec, ...]:
        return (InputSpec(columns=self.functions.columns, hashes=(self.functions.key,), changelog=False),)

    @property
    def output(self) -> pa.Schema:
        calls = zip(self.functions.calls, self.functions.types, strict=True)
        return pa.schema([*self.functions.columns, *(pa.field(call.name, kind) for call, kind in calls)])


@dataclass(frozen=True, slots=True, kw_only=True)
class OverByRowtime(_Over):
    """An over aggregate in the order of the rowtime ``time``."""

    time: str

    @property
    def layouts(self) -> tuple[StateLayout, StateLayout]:
        return waiting_layout(WAITING, self.functions.columns, self.functions.key), self.kept_layout

    def process(
        self,
        deltas: Sequence[pa.Table | None],
        manifest: bytes | None,
        store: SegmentStore,
        now: int,
        watermarks: Watermarks,
    ) -> Result:
        tables = read_manifest(manifest, self.layouts)
        waiting = WaitingRows(self.layouts[0], tables, store, now=now)
        kept = _opened(self, tables, store, now)
        due, late, of_late = _due(self, waiting, deltas[0], watermarks)
        output = _emitted(self, kept, due, now, watermarks.after)
        stored = {**waiting.buckets.commit(), **kept.commit()}
        of_waiting = sum(table.rows for name, table in stored.items() if name.startswith(f"{WAITING}@"))
        return replace(
            result_of(stored, output, rows_in(deltas)),
            late_rows=len(late),
            late_places=(late,),
            lateness=(of_late,),
            waiting_rows=of_waiting,
        )

    def inherit(self, store: Inheritance) -> bytes | None:
        return inherit_tables(store, self.layouts)


@dataclass(frozen=True, slots=True, kw_only=True)
class OverByArrival(_Over):
    """An over aggregate in the order of arrival, by processing time."""

    @property
    def layouts(self) -> tuple[StateLayout]:
        return (self.kept_layout,)

    @property
    def arriving_layout(self) -> StateLayout:
        """The layout of rows with their arrival, which is above the arrivals of recent rows."""
        return waiting_layout(RECENT, self.functions.columns, self.functions.key)

    def process(
        self, deltas: Sequence[pa.Table | None], manifest: bytes | None, store: SegmentStore, now: int
    ) -> Result:
        tables = read_manifest(manifest, self.layouts)
        kept = _opened(self, tables, store, now)
        # No row waits, but each gets its arrival.
        arriving = WaitingRows(self.arriving_layout, tables, store, now=now)
        due = arriving.layout.schema.empty_table()
        if deltas[0] is not None and deltas[0].num_rows:
            rows = deltas[0].combine_chunks()
            times = np.full(rows.num_rows, now, np.int64)
            due = arriving.arrived(rows.select(self.functions.columns.names), times, int64s(rows, hash_name(0)))
        # The frame of the next batch may begin at the time of this one.
        output = _emitted(self, kept, due, now, now - 1)
        result = result_of(kept.commit(), output, rows_in(deltas))
        return result if kept.state is None else replace(result, uses=(kept.state.uses(),))

    def inherit(self, store: Inheritance) -> bytes | None:
        return inherit_tables(store, self.layouts)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """The state of earlier rows during one micro-batch: the table of keys, or the recent rows."""

    state: KeyedState | None
    recent: TimeBuckets | None

    def commit(self) -> dict[str, StateTable]:
        if self.recent is not None:
            return self.recent.commit()
        assert self.state is not None
        return {self.state.layout.name: self.state.commit()}


def _opened(operator: _Over, tables: Mapping[str, StateTable], store: SegmentStore, now: int) -> _Kept:
    layout = operator.kept_layout
    if layout.by_time:
        return _Kept(state=None, recent=TimeBuckets(layout, tables, store, now=now))
    table, ttl = tables[layout.name], operator.ttl
    observation = Observation(table.observed, ttl=ttl, now=now)
    state = KeyedState(layout, table, store, ttl=ttl, now=now, observation=observation)
    return _Kept(state=state, recent=None)


def _due(
    operator: OverByRowtime, waiting: WaitingRows, rows: pa.Table | None, watermarks: Watermarks
) -> tuple[pa.Table, Int64s, Counts]:
    """Store the rows that wait, and return the rows that do not, and of the late rows, their places and lateness."""
    pieces = [waiting.take_due(watermarks.after)]
    late, of_late = np.empty(0, np.int64), NONE
    if rows is not None and rows.num_rows:
        batch = rows.combine_chunks()
        times = walls(batch, operator.time, None, operator.operator)
        is_late, is_due = times <= watermarks.before, times <= watermarks.after
        arrived = waiting.arrived(batch.select(operator.functions.columns.names), times, int64s(batch, hash_name(0)))
        waiting.wait(arrived.filter(pa.array(~is_due)), watermarks.after)
        pieces.append(arrived.filter(pa.array(is_due & ~is_late)))
        late, of_late = np.flatnonzero(is_late), lateness(times[is_late], watermarks.before)
    due = pa.concat_tables(pieces).combine_chunks()
    times = int64s(due, TIME)
    order = order_by(np.zeros(len(times), np.int64), times, int64s(due, ARRIVAL))
    return due.take(pa.array(order)), late, of_late


def _emitted(operator: _Over, kept: _Kept, rows: pa.Table, now: int, passed: int) -> pa.Table:
    """Return ``rows``, which are in their order, with their results, and store what later rows read.

    Later rows have times after ``passed``.
    """
    functions = operator.functions
    results = [pa.array([], kind) for kind in functions.types]
    if rows.num_rows:
        due = DueRows.of(rows, functions.key, int64s(rows, HASH), int64s(rows, TIME))
        if kept.recent is None:
            assert kept.state is not None
            results = results_of_keys(functions, kept.state, due, now)
        else:
            results = results_over_kept_rows(functions, due, _kept_rows(functions, kept.recent, due))
            _keep(functions, kept.recent, due, passed)
    if kept.recent is not None:
        _drop_passed(functions, kept.recent, passed)
    columns = [*(rows[name] for name in functions.columns.names), *results]
    return pa.table(columns, schema=operator.output)


def _kept_rows(functions: OverFunctions, recent: TimeBuckets, due: DueRows) -> KeptRows:
    """Return the recent rows of the keys of ``due``, from the time of the first frame of any key on."""
    names = [ARRIVAL, TIME, *functions.arguments]
    first = int(due.times.min()) - (functions.preceding or 0)
    keys, tables = [np.empty(0, np.int64)], [recent.layout.schema.empty_table().select(names)]
    for end in recent.ends():
        if end > first:
            state = recent.at(end)
            key, code = stored_under(state, due.keys, due.hashes)
            keys.append(key)
            tables.append(state.take(code, names))
    key, rows = np.concatenate(keys), pa.concat_tables(tables).combine_chunks()
    order = order_by(key, int64s(rows, TIME), int64s(rows, ARRIVAL))
    return KeptRows(
        counts=np.bincount(key, minlength=len(due.counts)),
        columns=rows.take(pa.array(order)),
        times=int64s(rows, TIME)[order],
    )


def _keep(functions: OverFunctions, recent: TimeBuckets, due: DueRows, passed: int) -> None:
    """Store the rows that may be in the frame of a later row."""
    stays = due.times + (functions.preceding or 0) > passed
    rows = due.rows.filter(pa.array(stays)).select(recent.layout.schema.names)
    ends = _bucket_ends(functions, due.times[stays])
    for end in np.unique(ends).tolist():
        here = rows.filter(pa.array(ends == end))
        recent.at(end).put(here, np.zeros(here.num_rows, np.bool_))


def _drop_passed(functions: OverFunctions, recent: TimeBuckets, passed: int) -> None:
    """Remove the buckets whose rows are in the frame of no row after ``passed``."""
    for end in recent.ends():
        if passed == FOREVER or end - 1 + (functions.preceding or 0) <= passed:
            recent.drop(end)


def _bucket_ends(functions: OverFunctions, times: Int64s) -> Int64s:
    width = max(1, (functions.preceding or 0) // _BUCKETS)
    ends: Int64s = (times // width + 1) * width
    return ends
