"""The kernel of a group window with early or late fire: it emits the result of a window more than once.

Each group is emitted when its window closes. With early fire, it is also emitted while the window is open, after its
rows have changed it. With late fire, the window takes rows for some more event time, the lateness, and its groups are
emitted again. A result that changes is an update of what was emitted before; an equal result is not emitted. A group
that has lost all of its rows is taken back.

- A delay of 0 ms emits the changes of a batch with the batch. A longer delay is processing time: a changed group is
  emitted in the first batch whose time is at least that long after its first change that was not emitted. A new group
  of a closed window never waits, as in Flink.
- A group of a window of a HOP is kept for each of its windows, because each window has results of its own.

State layout, format 1: the tables of the window aggregate, one for each window; and tables ``waiting@end`` (hash of the
key; key; result that was last emitted, and whether one was; 1; time of the first change that waits) of the groups whose
change is not emitted yet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from hintplan.plans.declarations.row_kinds import RowKinds
from hintplan.plans.evidence.ages import NONE
from hintplan.runtime.kernels.changelog import changelog_between
from hintplan.runtime.kernels.partial import rows_behind
from hintplan.runtime.kernels.windows import window_starts
from hintplan.runtime.operator import FOREVER, KIND, NEVER, Inheritance, InputSpec, Result, SegmentStore, Watermarks
from hintplan.runtime.operators.accumulation import GROUPS, GroupChange
from hintplan.runtime.operators.window_aggregate import WindowAggregateOperator, add_rows, next_due
from hintplan.runtime.operators.window_function import window_columns
from hintplan.runtime.state.identity import Mask, encode_groups, without_chunks
from hintplan.runtime.state.inherit import inherit_tables
from hintplan.runtime.state.layout import COUNT, HASH, WRITE, Int64s, StateLayout, bucket_end, int64s
from hintplan.runtime.state.manifest import StateTable, read_manifest
from hintplan.runtime.state.sliced import END, BucketWidth, SlicedState, stored_layout
from hintplan.runtime.state.tables import result_of
from hintplan.runtime.state.time_buckets import TimeBuckets

WAITING = "waiting"
_EMITTED = "__emitted"
_WINDOW = BucketWidth(step=1)
_NO_DELAY = -(1 << 62)
"""A delay that has passed, even if the clock was set back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FiredWindowsOperator:
    """A group window with ``early`` or ``late`` fire over the rows of ``windows``, which emits ``kinds``.

    The delays are in ms of processing time, the lateness in ms of event time.
    """

    windows: WindowAggregateOperator
    kinds: RowKinds
    early: bool
    late: bool
    early_delay: int
    late_delay: int
    lateness: int

    @property
    def waiting_layout(self) -> StateLayout:
        """The table of groups whose change waits, with ``END`` as a column."""
        calls = zip(self.windows.calls, self.windows.types, strict=True)
        results = [pa.field(call.name, kind) for call, kind in calls]
        payload = pa.schema([*results, pa.field(_EMITTED, pa.bool_())])
        return StateLayout(name=WAITING, identity=self.windows.accumulation.key_columns, payload=payload)

    @property
    def layouts(self) -> tuple[StateLayout, ...]:
        return (*self.windows.layouts, stored_layout(self.waiting_layout, _WINDOW))

    @property
    def inputs(self) -> tuple[InputSpec, ...]:
        return self.windows.inputs

    @property
    def output(self) -> pa.Schema:
        return self.windows.output.append(pa.field(KIND, pa.int8()))

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
        passed, places, change = NONE, np.empty(0, np.int64), None
        if rows is not None and rows.num_rows:
            kept = Watermarks(before=self._kept_from(watermarks.before), after=watermarks.after)
            passed, places, change = add_rows(self.windows, buckets, rows, kept, now)
        changes = list(self._changes(buckets, change, watermarks, now))
        self._drop(buckets, watermarks.after)
        output = self._emitted(changes)
        committed = {name: of_layout.commit() for name, of_layout in buckets.items()}
        result = result_of({name: table for part in committed.values() for name, table in part.items()}, output, 0)
        return replace(
            result,
            rows_in=rows_behind(rows),
            late_rows=sum(passed),
            waiting_rows=sum(table.rows for table in committed[GROUPS].values()),
            late_places=(places,),
            lateness=(passed,),
            due=self._due(committed, watermarks.after),
        )

    def inherit(self, store: Inheritance) -> bytes | None:
        return inherit_tables(store, self.layouts)

    def _kept_from(self, watermark: int) -> int:
        """Return the watermark that windows which are gone at ``watermark`` close with."""
        return watermark if watermark in (NEVER, FOREVER) else max(watermark - self.lateness, NEVER)

    def _due(self, tables: Mapping[str, Mapping[str, StateTable]], after: int) -> int | None:
        """Return the time of the next result without new rows: of a change that waits, or of a window of the clock."""
        times = []
        for name, table in tables[WAITING].items():
            is_closed = int(self.windows.closing(np.array([bucket_end(name)]))[0]) <= after
            first = min(segment.first_write for segment in table.segments)
            times.append(first + (self.late_delay if is_closed else self.early_delay))
        if self.windows.window.processing_time:
            closes = next_due(self.windows, tables[GROUPS], after)
            times += [] if closes is None else [closes]
        return min(times, default=None)

    def _delay(self, closes: Int64s, watermarks: Watermarks) -> Int64s:
        """Return the delay of changes in windows that close at ``closes``; none if this batch closes or drops them."""
        at_once = (closes > watermarks.before) & (closes <= watermarks.after)
        at_once |= closes <= self._kept_from(watermarks.after)
        delays = np.where(closes <= watermarks.before, self.late_delay, self.early_delay)
        return np.where(at_once, _NO_DELAY, delays)

    def _changes(
        self,
        buckets: Mapping[str, TimeBuckets],
        change: GroupChange | None,
        watermarks: Watermarks,
        now: int,
    ) -> Iterator[_Changes]:
        """Yield the changes to emit, and keep the changes that wait."""
        touched = None if change is None or not len(change.was) else self._touched(buckets, change, now)
        yield from self._ended(buckets, touched, watermarks, now)
        if not self.early:
            ends = np.array(buckets[GROUPS].ends(), np.int64)
            closes = self.windows.closing(ends)
            for end in ends[(closes > watermarks.before) & (closes <= watermarks.after)].tolist():
                yield self._closed(buckets, end)
        if touched is None:
            return
        closes = self.windows.closing(touched.ends)
        is_closed = closes <= watermarks.before
        emits = is_closed if not self.early else np.ones(len(closes), np.bool_)
        at_once = (touched.since + self._delay(closes, watermarks) <= now) | (is_closed & ~touched.was)
        if (emits & at_once).any():
            yield touched.only(emits & at_once)
        self._keep(buckets, touched.only(emits & ~at_once & ~touched.waited), now)

    def _ended(
        self, buckets: Mapping[str, TimeBuckets], touched: _Changes | None, watermarks: Watermarks, now: int
    ) -> Iterator[_Changes]:
        """Yield the changes whose wait has ended, except of groups that are ``touched``, and keep the others."""
        waiting = buckets[WAITING]
        ends = np.array(waiting.ends(), np.int64)
        delays = self._delay(self.windows.closing(ends), watermarks)
        for end, delay in zip(ends.tolist(), delays.tolist(), strict=True):
            state = waiting.at(end)
            if state.first_write is None or state.first_write + delay > now:
                continue
            rows = state.rows()
            ended = int64s(rows, WRITE) + delay <= now
            due = rows.filter(pa.array(ended))
            others = due if touched is None else _without(due, touched.groups, end, self.windows.group_keys)
            if others.num_rows:
                yield self._waited(buckets, others, end)
            if ended.all():
                waiting.drop(end)
            else:
                state.replace(rows.filter(pa.array(~ended)))

    def _touched(self, buckets: Mapping[str, TimeBuckets], change: GroupChange, now: int) -> _Changes:
        """Return the groups that the batch changes, with the results that were last emitted."""
        before = self._results(change.old, change.was)
        after = self._results(change.new, change.is_)
        groups = change.keys.append_column(HASH, pa.array(change.hashes))
        state = SlicedState(self.waiting_layout, buckets[WAITING], _WINDOW)
        codes = state.find(change.keys, int64s(groups, HASH))
        waited, was, since = codes >= 0, change.was, np.full(len(codes), now, np.int64)
        if waited.any():
            stored = state.take(codes[waited], before.column_names)
            since[waited] = state.integers(codes[waited], WRITE)
            was = was.copy()
            was[waited] = np.asarray(without_chunks(stored[_EMITTED]))
            place = np.arange(len(was))
            place[waited] = len(was) + np.arange(int(waited.sum()))
            before = pa.concat_tables([before, stored]).combine_chunks().take(pa.array(place))
        return _Changes(groups=groups, before=before, after=after, was=was, is_=change.is_, waited=waited, since=since)

    def _waited(self, buckets: Mapping[str, TimeBuckets], rows: pa.Table, end: int) -> _Changes:
        """Return the change of groups that wait, whose ``rows`` are of the window that ends at ``end``."""
        rows = rows.combine_chunks()
        groups = buckets[GROUPS].at(end)
        keys = rows.select(list(self.windows.group_keys))
        codes = groups.find(keys, int64s(rows, HASH))
        is_ = codes >= 0
        names = [name for name, _ in self.windows.accumulation.stored]
        stored = groups.take(codes[is_], names)
        place = pa.array(np.cumsum(is_) - 1, mask=~is_)
        state = {name: without_chunks(stored[name]).take(place) for name in names}
        after = self._results(state, is_)
        ended = keys.append_column(END, pa.array(np.full(len(is_), end))).append_column(HASH, rows[HASH])
        was = np.asarray(without_chunks(rows[_EMITTED]))
        before = rows.select(after.column_names)
        return _Changes(groups=ended, before=before, after=after, was=was, is_=is_)

    def _closed(self, buckets: Mapping[str, TimeBuckets], end: int) -> _Changes:
        """Return the results of all groups of a window, of which none was emitted before."""
        rows = buckets[GROUPS].rows(end).combine_chunks()
        size = rows.num_rows
        is_ = np.ones(size, np.bool_)
        state = {name: without_chunks(rows[name]) for name, _ in self.windows.accumulation.stored}
        after = self._results(state, is_)
        groups = rows.select([*self.windows.group_keys, HASH]).append_column(END, pa.array(np.full(size, end)))
        return _Changes(groups=groups, before=after, after=after, was=~is_, is_=is_)

    def _results(self, state: Mapping[str, pa.Array], there: Mask) -> pa.Table:
        """Return the results of groups, and whether each is ``there``; results of others are arbitrary."""
        columns = self.windows.accumulation.results(self.windows.types, state, there)
        schema = self.waiting_layout.payload
        return pa.table([*columns, pa.array(there)], names=schema.names).cast(schema)

    def _keep(self, buckets: Mapping[str, TimeBuckets], changes: _Changes, now: int) -> None:
        """Store the results that were last emitted of groups whose change waits."""
        size = len(changes.was)
        if not size:
            return
        layout = self.waiting_layout
        keys = [changes.groups[name] for name in layout.identity.names]
        columns = [changes.groups[HASH], *keys, *changes.before.columns]
        columns += [pa.array(np.ones(size, np.int64)), pa.array(np.full(size, now, np.int64))]
        names = [HASH, *layout.identity.names, *layout.payload.names, COUNT, WRITE]
        rows = pa.table(columns, names=names).select(layout.schema.names).cast(layout.schema)
        SlicedState(layout, buckets[WAITING], _WINDOW).put(rows, np.zeros(size, np.bool_))

    def _drop(self, buckets: Mapping[str, TimeBuckets], after: int) -> None:
        """Drop the windows that take no more rows."""
        for of_layout in buckets.values():
            ends = np.array(of_layout.ends(), np.int64)
            for end in ends[self.windows.closing(ends) <= self._kept_from(after)].tolist():
                of_layout.drop(end)

    def _emitted(self, changes: Sequence[_Changes]) -> pa.Table:
        """Return the output for ``changes``."""
        parts = [self.output.empty_table()]
        for part in changes:
            before, after = (self._rows(part.groups, results) for results in (part.before, part.after))
            rows = changelog_between(
                before, after, part.was, part.is_, updates_before="-U" in self.kinds, equal_rows=False
            )
            parts.append(rows.select(self.output.names).cast(self.output))
        return pa.concat_tables(parts)

    def _rows(self, groups: pa.Table, results: pa.Table) -> pa.Table:
        """Return the output columns of groups with these results."""
        windows, ends = self.windows, int64s(groups, END)
        starts = window_starts(windows.window, ends)
        of_window = window_columns(windows.output, windows.names, windows.window.zone, starts, ends)
        columns = [*(groups[key] for key in windows.keys), *results.drop_columns(_EMITTED).columns, *of_window.values()]
        return pa.table(columns, names=windows.output.names).cast(windows.output).combine_chunks()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Changes:
    """Groups with their keys, ``END`` and ``HASH``, and their results ``before`` and ``after``.

    ``before`` was emitted last, where ``was`` is true. A group has rows where ``is_`` is true. Of the groups that a
    batch changes, ``waited`` marks those with an earlier change that waits, and ``since`` has the time of the first.
    """

    groups: pa.Table
    before: pa.Table
    after: pa.Table
    was: Mask
    is_: Mask
    waited: Mask = field(default_factory=lambda: np.empty(0, np.bool_))
    since: Int64s = field(default_factory=lambda: np.empty(0, np.int64))

    @property
    def ends(self) -> Int64s:
        return int64s(self.groups, END)

    def only(self, wanted: Mask) -> _Changes:
        """Return the ``wanted`` groups."""
        rows = pa.array(wanted)
        return _Changes(
            groups=self.groups.filter(rows),
            before=self.before.filter(rows),
            after=self.after.filter(rows),
            was=self.was[wanted],
            is_=self.is_[wanted],
            waited=self.waited[wanted],
            since=self.since[wanted],
        )


def _without(rows: pa.Table, groups: pa.Table, end: int, keys: Sequence[str]) -> pa.Table:
    """Return the ``rows`` of the window that ends at ``end`` whose keys are not among ``groups``."""
    names = [HASH, *keys]
    here = groups.filter(pa.array(int64s(groups, END) == end)).select(names)
    if not here.num_rows or not rows.num_rows:
        return rows
    both = pa.concat_tables([rows.select(names), here]).combine_chunks()
    numbers, _ = encode_groups([without_chunks(both[name]) for name in names])
    return rows.filter(pa.array(~np.isin(numbers[: rows.num_rows], numbers[rows.num_rows :])))
