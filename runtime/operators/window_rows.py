"""The kernel of a top N or a deduplicate within windows: the rows with the first numbers of each key and window.

Rows are numbered when the watermark closes their window, and emitted once. Until then, only the rows that can have one
of the first numbers are kept: a new row takes the slot of the row that it displaces. Among rows that are equal in the
order, arrival decides. Input is insert-only, and late rows are dropped. Rows whose window closes in the batch in which
they come, as above a window aggregate, are never stored.

State layout, format 1: tables ``rows@end`` (hash of key, window and slot; key; window; slot; the other columns; place
in the order of arrival; 1; last write). A row lies in the time bucket of the end of its window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hintplan.plans.declarations.windows import Window, WindowColumns
from hintplan.plans.evidence.ages import NONE
from hintplan.runtime.kernels.lateness import lateness
from hintplan.runtime.kernels.numbering import Numbering
from hintplan.runtime.kernels.sorting import sorted_by
from hintplan.runtime.kernels.windows import closing_time, milliseconds
from hintplan.runtime.operator import Inheritance, InputSpec, Result, SegmentStore, Watermarks
from hintplan.runtime.operator import hash_column as hash_name
from hintplan.runtime.operators.first_rows import slots_of
from hintplan.runtime.operators.open_windows import CLOSES, OpenWindows, commit_windows, open_windows
from hintplan.runtime.state.identity import hashed_groups, without_chunks
from hintplan.runtime.state.inherit import inherit_tables
from hintplan.runtime.state.keyed import KeyedState
from hintplan.runtime.state.layout import HASH, SUFFIX_MASK, Int64s, StateLayout, int64s, prefixed_hash
from hintplan.runtime.state.under_keys import stored_under

NAME = "rows"
SLOT, PLACE, ROWS = "__slot", "__place", "__rows"
_WORTH_IT = 0.8
"""If more than this share of rows would be left, a task stops dropping rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowRowsOperator:
    """A numbering of the rows of each ``key`` and ``window``, whose columns are ``attached``."""

    columns: pa.Schema
    key: tuple[str, ...]
    window: Window
    attached: WindowColumns
    numbering: Numbering

    @property
    def of_window(self) -> tuple[str, ...]:
        """The columns whose rows are numbered together."""
        window = (self.attached.start, self.attached.end)
        return (*(name for name in self.key if name not in window), *window)

    @property
    def layout(self) -> StateLayout:
        identity = [*(self.columns.field(name) for name in self.of_window), pa.field(SLOT, pa.int64())]
        others = [field for field in self.columns if field.name not in self.of_window]
        payload = pa.schema([*others, pa.field(PLACE, pa.int64()), pa.field(CLOSES, pa.int64())])
        return StateLayout(name=NAME, identity=pa.schema(identity), payload=payload, key=self.of_window, by_time=True)

    @property
    def layouts(self) -> tuple[StateLayout, ...]:
        return (self.layout,)

    @property
    def inputs(self) -> tuple[InputSpec, ...]:
        first = FirstOfWindow(operator=self)
        return (InputSpec(columns=self.columns, hashes=(self.of_window,), changelog=False, presum=first),)

    @property
    def output(self) -> pa.Schema:
        return self.numbering.output(self.columns)

    @property
    def numbered_columns(self) -> pa.Schema:
        """The columns of rows that are numbered."""
        return pa.schema([*self.columns, (PLACE, pa.int64()), (HASH, pa.int64())])

    def process(
        self,
        deltas: Sequence[pa.Table | None],
        manifest: bytes | None,
        store: SegmentStore,
        now: int,
        watermarks: Watermarks,
    ) -> Result:
        windows = open_windows(self.layouts, manifest, store, window=self.window, now=now)
        waiting = windows[NAME]
        at_once, came, late_places, passed = None, 0, np.empty(0, np.int64), NONE
        rows = deltas[0]
        if rows is not None and rows.num_rows:
            batch = rows.combine_chunks()
            counts = int64s(batch, ROWS) if ROWS in batch.column_names else np.ones(batch.num_rows, np.int64)
            closes = closing_time(milliseconds(batch[self.attached.end]), self.window.zone)
            is_late, is_open = closes <= watermarks.before, closes > watermarks.after
            came, late_places = int(counts.sum()), np.flatnonzero(is_late)
            passed = lateness(closes[is_late], watermarks.before, counts[is_late])
            at_once = batch.filter(pa.array(~is_late & ~is_open))
            open_rows = np.flatnonzero(is_open)
            if open_rows.size:
                _wait(self, waiting, batch.take(pa.array(open_rows)).combine_chunks(), closes[open_rows], now)
        due = waiting.take_due(watermarks.after).select(self.numbered_columns.names)
        if at_once is not None and at_once.num_rows:
            due = pa.concat_tables([due, _placed(self, at_once, int(int64s(due, PLACE).max(initial=0)) + 1)])
        output = _numbered(self, due.combine_chunks())
        return commit_windows(
            windows, output, rows_in=came, late_rows=sum(passed), late_places=(late_places,), lateness=(passed,)
        )

    def inherit(self, store: Inheritance) -> bytes | None:
        return inherit_tables(store, self.layouts)


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstOfWindow:
    """Drops the rows of a task that cannot have one of the first numbers in their window.

    The first row of a key and window that is left carries the number of the rows that it and the dropped rows were.
    """

    operator: WindowRowsOperator

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([*self.operator.columns, pa.field(hash_name(0), pa.int64()), pa.field(ROWS, pa.int64())])

    @property
    def by_hash(self) -> bool:
        return True

    def sum_up(self, rows: pa.Table) -> pa.Table | None:
        batch = rows.combine_chunks()
        groups, first = _groups(self.operator, batch)
        chosen = _first_rows(self.operator, batch, groups, first)
        if len(chosen) > _WORTH_IT * batch.num_rows:
            return None
        counts, of_chosen = np.ones(len(chosen), np.int64), groups[chosen]
        dropped = np.bincount(groups, minlength=len(first)) - np.bincount(of_chosen, minlength=len(first))
        there, one = np.unique(of_chosen, return_index=True)
        counts[one] += dropped[there]
        return batch.take(pa.array(chosen)).append_column(ROWS, pa.array(counts))

    def lift(self, rows: pa.Table) -> pa.Table:
        return rows.append_column(ROWS, pa.array(np.ones(rows.num_rows, np.int64)))


def _groups(operator: WindowRowsOperator, batch: pa.Table) -> tuple[Int64s, Int64s]:
    """Return the number of each row's key and window, and the first row of each."""
    return hashed_groups([without_chunks(batch[name]) for name in operator.of_window], int64s(batch, hash_name(0)))


def _first_rows(operator: WindowRowsOperator, batch: pa.Table, groups: Int64s, first: Int64s) -> Int64s:
    """Return the places of the rows that can have one of the first numbers, in their order."""
    ends = operator.numbering.ends(batch, len(first))
    is_first = _numbers(operator, batch, groups, np.arange(len(groups)), ends) <= ends[groups]
    return np.flatnonzero(is_first)


def _numbers(operator: WindowRowsOperator, rows: pa.Table, groups: Int64s, places: Int64s, enough: Int64s) -> Int64s:
    """Return the number of each row in its group; 1 for all rows of a group that has not more rows than ``enough``."""
    sizes = np.bincount(groups, minlength=len(enough))
    numbers = np.ones(len(groups), np.int64)
    several = np.flatnonzero((sizes > enough)[groups])
    if several.size:
        read, groups = rows.select(operator.numbering.read), groups[several]
        order = operator.numbering.sorted(read.take(pa.array(several)), groups, places[several])
        in_order = groups[order]
        begins = np.flatnonzero(np.concatenate(([True], in_order[1:] != in_order[:-1])))
        lengths = np.diff(np.append(begins, len(order)))
        numbers[several[order]] = np.arange(1, len(order) + 1) - np.repeat(begins, lengths)
    return numbers


def _wait(operator: WindowRowsOperator, waiting: OpenWindows, batch: pa.Table, closes: Int64s, now: int) -> None:
    """Store the rows of ``batch`` that can have one of the first numbers in their window."""
    chosen = _first_rows(operator, batch, *_groups(operator, batch))
    batch, closes = batch.take(pa.array(chosen)), closes[chosen]
    for bucket, rows in waiting.by_bucket(closes):
        _keep(operator, bucket, batch.take(pa.array(rows)).combine_chunks(), closes[rows], now)


def _keep(operator: WindowRowsOperator, state: KeyedState, batch: pa.Table, closes: Int64s, now: int) -> None:
    """Store the rows of ``batch`` that are among the first of their window, in the slots of the rows they displace."""
    numbering, hashes = operator.numbering, int64s(batch, hash_name(0))
    group, first = _groups(operator, batch)
    windows = batch.select(list(operator.of_window)).take(pa.array(first))
    key, code = stored_under(state, windows, hashes[first])
    place = state.integers(code, PLACE)
    beyond = np.zeros(len(first), np.int64)
    np.maximum.at(beyond, key, place + 1)
    came = beyond[group] + np.arange(len(group))
    read = pa.concat_tables([state.take(code, numbering.read), batch.select(numbering.read)]).combine_chunks()
    ends = numbering.ends(batch, len(first))
    groups, places = np.concatenate((key, group)), np.concatenate((place, came))
    is_first = _numbers(operator, read, groups, places, ends) <= ends[groups]
    entering = np.flatnonzero(is_first[len(code) :])
    leaves = ~is_first[: len(code)]
    slots = slots_of(state, key, code, leaves, group[entering], len(first))
    rows = batch.take(pa.array(entering))
    _put(operator, state, rows, slots, (came[entering], closes[entering]), now)


def _put(
    operator: WindowRowsOperator,
    state: KeyedState,
    rows: pa.Table,
    slots: Int64s,
    numbers: tuple[Int64s, Int64s],
    now: int,
) -> None:
    layout = operator.layout
    identity = rows.select(list(operator.of_window)).append_column(SLOT, pa.array(slots))
    stored_at = prefixed_hash(int64s(rows, hash_name(0)), slots)
    present = state.find(identity, stored_at) >= 0
    others = [rows[field.name] for field in operator.columns if field.name not in operator.of_window]
    counts, writes = np.ones(len(slots), np.int64), np.full(len(slots), now, np.int64)
    data = [
        pa.array(stored_at),
        *identity.columns,
        *others,
        *map(pa.array, numbers),
        pa.array(counts),
        pa.array(writes),
    ]
    state.put(pa.table(data, schema=layout.schema), present)


def _placed(operator: WindowRowsOperator, batch: pa.Table, place: int) -> pa.Table:
    """Return rows of a batch with places from ``place`` on, and hashes."""
    places = np.arange(place, place + batch.num_rows)
    hashes = int64s(batch, hash_name(0))
    return pa.table(
        [*(batch[name] for name in operator.columns.names), pa.array(places), pa.array(hashes)],
        schema=operator.numbered_columns,
    )


def _numbered(operator: WindowRowsOperator, rows: pa.Table) -> pa.Table:
    """Return the output for ``rows``, which are all rows of their windows that can have a wanted number.

    The rows of a key and window are in the order of their numbers.
    """
    numbering = operator.numbering
    columns = [without_chunks(rows[name]) for name in operator.of_window]
    groups, first = hashed_groups(columns, int64s(rows, HASH) & ~SUFFIX_MASK)
    number = _numbers(operator, rows, groups, int64s(rows, PLACE), np.ones(len(first), np.int64))
    chosen = np.flatnonzero((number >= numbering.start) & (number <= numbering.ends(rows, len(number))))
    if numbering.end != numbering.start:
        chosen = chosen[sorted_by([groups[chosen], number[chosen]])]
    output = rows.select(operator.columns.names).take(pa.array(chosen))
    if numbering.number is not None:
        output = output.append_column(numbering.number, pa.array(number[chosen]))
    return output.cast(operator.output)
