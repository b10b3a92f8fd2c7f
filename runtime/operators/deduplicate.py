"""The kernel of deduplicate: it keeps the first or last row of each key, by time or by arrival, as Flink does.

The input is insert-only. A new row replaces the kept row if its time is earlier (first), or equal or later (last).
Among rows with equal times arrival decides, and NULL is earlier than every time. A batch emits the net change of each
key: +I for a new key, -U directly followed by +U for a changed row. The TTL counts from the last row that was kept.
With a TTL the kernel also emits a row that equals the previous one, so that state downstream stays alive; without a TTL
it does not. A key whose row has expired is new.

State layout, format 1: table ``rows`` (hash of the key; key; the other columns, none if the first by arrival is kept;
1; last write).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import pyarrow as pa

from hintplan.plans.declarations.row_kinds import INSERT_ONLY, RowKinds
from hintplan.runtime.kernels.changelog import changelog_between
from hintplan.runtime.operator import KIND, Inheritance, InputSpec, Result, SegmentStore
from hintplan.runtime.operator import hash_column as hash_name
from hintplan.runtime.operators.task_filter import TaskFilter
from hintplan.runtime.state.identity import Mask, hashed_groups, without_chunks
from hintplan.runtime.state.inherit import inherit_tables
from hintplan.runtime.state.keyed import KeyedState
from hintplan.runtime.state.layout import Int64s, StateLayout
from hintplan.runtime.state.tables import commit_states, open_tables, rows_in

ROWS = "rows"
COUNTS = ("rows_passed_over",)
"""The kernel's own metric: input rows that were dropped in favour of another row of their key."""
_BEFORE_ALL = np.iinfo(np.int64).min


@dataclass(frozen=True, slots=True, kw_only=True)
class DeduplicateOperator:
    """A deduplicate bound to its columns, key, time, kept row, TTL (ms, 0 never expires) and emitted row kinds."""

    columns: pa.Schema
    key: tuple[str, ...]
    time: str | None
    keep: Literal["first", "last"]
    ttl: int
    kinds: RowKinds

    @property
    def layout(self) -> StateLayout:
        identity = pa.schema([self.columns.field(name) for name in self.key])
        payload = [] if self.only_adds else [field for field in self.columns if field.name not in self.key]
        return StateLayout(name=ROWS, identity=identity, payload=pa.schema(payload))

    @property
    def layouts(self) -> tuple[StateLayout, ...]:
        return (self.layout,)

    @property
    def only_adds(self) -> bool:
        """True if no later row can replace an emitted row."""
        return self.keep == "first" and self.time is None

    @property
    def inputs(self) -> tuple[InputSpec, ...]:
        thinned = TaskFilter(columns=self.columns, chosen=partial(_one_of_each_key, self))
        return (InputSpec(columns=self.columns, hashes=(self.key,), changelog=False, presum=thinned),)

    @property
    def output(self) -> pa.Schema:
        return pa.schema([*self.columns, *([] if self.kinds == INSERT_ONLY else [pa.field(KIND, pa.int8())])])

    def process(
        self, deltas: Sequence[pa.Table | None], manifest: bytes | None, store: SegmentStore, now: int
    ) -> Result:
        states = open_tables(self.layouts, manifest, store, ttls=(self.ttl,), now=now)
        rows, came = deltas[0], rows_in(deltas)
        output, kept = self.output.empty_table(), 0
        if rows is not None and rows.num_rows:
            output, kept = _keep(self, states[ROWS], _one_of_each_key(self, rows.combine_chunks()), now)
        return commit_states(states, output, came, metrics=(came - kept,))

    def inherit(self, store: Inheritance) -> bytes | None:
        return inherit_tables(store, self.layouts)


def _one_of_each_key(operator: DeduplicateOperator, batch: pa.Table) -> pa.Table:
    """Return the row of each key that the batch would keep, in arrival order."""
    columns = [without_chunks(batch[name]) for name in operator.key]
    keys, chosen = hashed_groups(columns, batch[hash_name(0)].to_numpy())
    times = np.zeros(0, np.int64) if operator.time is None else _times(operator, batch)
    if (times[1:] < times[:-1]).any():
        order = np.lexsort((times, keys))  # stable: rows with equal times stay in arrival order
        ends = np.cumsum(np.bincount(keys, minlength=len(chosen)))
        chosen = order[ends - 1] if operator.keep == "last" else order[np.concatenate(([0], ends[:-1]))]
    elif operator.keep == "last":
        chosen[keys] = np.arange(len(keys))
    return batch.take(pa.array(np.sort(chosen)))


def _times(operator: DeduplicateOperator, rows: pa.Table) -> Int64s:
    times = rows[operator.time].cast(pa.int64()).fill_null(_BEFORE_ALL)
    values: Int64s = times.to_numpy()
    return values


def _keep(operator: DeduplicateOperator, state: KeyedState, batch: pa.Table, now: int) -> tuple[pa.Table, int]:
    """Store the rows that replace others; return the changes and the number of stored rows. Keys are distinct."""
    hashes = batch[hash_name(0)].to_numpy()
    codes = state.find(batch.select(list(operator.key)), hashes)
    was = state.live(codes)
    state.use(codes)
    after = batch.select(operator.columns.names)
    if operator.only_adds:
        _put(operator, state, after.filter(pa.array(~was)), hashes[~was], codes[~was] >= 0, now)
        return _added(operator, after.filter(pa.array(~was))), int((~was).sum())
    stored = state.take(codes[was], operator.columns.names)
    before = stored.take(pa.array(np.cumsum(was) - 1, mask=~was))
    wins = ~was | _takes_the_place(operator, before, after)
    before, after, was = before.filter(pa.array(wins)), after.filter(pa.array(wins)), was[wins]
    _put(operator, state, after, hashes[wins], codes[wins] >= 0, now)
    backs = "-U" in operator.kinds
    every = np.ones(len(was), np.bool_)
    changes = changelog_between(before, after, was, every, updates_before=backs, equal_rows=bool(operator.ttl))
    return changes, len(was)


def _takes_the_place(operator: DeduplicateOperator, before: pa.Table, after: pa.Table) -> Mask:
    """Return True for each key whose new row replaces the previous one."""
    if operator.time is None:
        return np.ones(after.num_rows, np.bool_)  # the last by arrival
    old, new = _times(operator, before), _times(operator, after)
    wins: Mask = new < old if operator.keep == "first" else new >= old
    return wins


def _put(
    operator: DeduplicateOperator, state: KeyedState, rows: pa.Table, hashes: Int64s, present: Mask, now: int
) -> None:
    layout = operator.layout
    data = [rows[field.name] for field in (*layout.identity, *layout.payload)]
    counts, writes = np.ones(len(hashes), np.int64), np.full(len(hashes), now, np.int64)
    state.put(pa.table([pa.array(hashes), *data, pa.array(counts), pa.array(writes)], layout.schema.names), present)


def _added(operator: DeduplicateOperator, rows: pa.Table) -> pa.Table:
    return rows.cast(operator.output)
