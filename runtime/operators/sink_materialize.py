"""The kernel of sink-materialize: it keeps all rows by the sink's key and emits the latest of each key, as Flink does.

The input is a multiset: +I and +U add a row behind all others of its key, -U and -D retract an equal row. The sink
holds the last added row of each key. When that row is retracted, the row before it takes its place. A batch emits the
net change of each key: +I, +U, or -D with the row that the sink had. A retraction without its row is ignored. The TTL
counts from the last change of a key: with a TTL, a change rewrites all rows of its key.

State layout, format 1: table ``rows`` (hash of key and row; all columns; place in the order of addition; count; last
write).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hintplan.runtime.kernels.changelog import overdrawn
from hintplan.runtime.operator import DELETE, INSERT, KIND, UPDATE_AFTER, Inheritance, InputSpec, Result, SegmentStore
from hintplan.runtime.operator import hash_column as hash_name
from hintplan.runtime.state.identity import Mask, distinct_rows, encode_groups, equal_rows
from hintplan.runtime.state.inherit import inherit_tables
from hintplan.runtime.state.keyed import KeyedState
from hintplan.runtime.state.layout import COUNT, Int64s, StateLayout, prefixed_hash
from hintplan.runtime.state.tables import commit_states, open_tables, rows_in
from hintplan.runtime.state.under_keys import rows_at, stored_under, write_again

ROWS = "rows"
PLACE = "__place"


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkMaterializeOperator:
    """A sink-materialize bound to its columns, sink key, TTL (ms, 0 never expires), and whether rows have kinds."""

    columns: pa.Schema
    key: tuple[str, ...]
    changelog: bool
    ttl: int

    @property
    def layout(self) -> StateLayout:
        return StateLayout(name=ROWS, identity=self.columns, payload=pa.schema([(PLACE, pa.int64())]), key=self.key)

    @property
    def layouts(self) -> tuple[StateLayout, ...]:
        return (self.layout,)

    @property
    def inputs(self) -> tuple[InputSpec, ...]:
        return (
            InputSpec(columns=self.columns, hashes=(self.key, tuple(self.columns.names)), changelog=self.changelog),
        )

    @property
    def output(self) -> pa.Schema:
        return pa.schema([*self.columns, pa.field(KIND, pa.int8())])

    def process(
        self, deltas: Sequence[pa.Table | None], manifest: bytes | None, store: SegmentStore, now: int
    ) -> Result:
        states = open_tables(self.layouts, manifest, store, ttls=(self.ttl,), now=now)
        rows = deltas[0]
        output = self.output.empty_table()
        if rows is not None and rows.num_rows:
            batch = rows.combine_chunks()
            weights = np.ones(batch.num_rows, np.int64)
            if self.changelog:
                kinds = batch[KIND].to_numpy()
                weights = np.where((kinds == INSERT) | (kinds == UPDATE_AFTER), np.int64(1), np.int64(-1))
            output = _update(self, states[ROWS], batch, weights, now)
        return commit_states(states, output, rows_in(deltas))

    def inherit(self, store: Inheritance) -> bytes | None:
        return inherit_tables(store, self.layouts)


def _update(
    operator: SinkMaterializeOperator, state: KeyedState, batch: pa.Table, weights: Int64s, now: int
) -> pa.Table:
    hashes = prefixed_hash(batch[hash_name(0)].to_numpy(), batch[hash_name(1)].to_numpy())
    data = batch.select(operator.columns.names)
    entries, first = distinct_rows(data, hashes)
    rows = data.take(first)
    codes = state.find(rows, hashes[first])
    live = state.live(codes)
    old = np.zeros(len(first), np.int64)
    old[live] = state.integers(codes[live], COUNT)
    if weights.min(initial=1) < 0:
        idle = overdrawn(entries, weights, old)
        if idle.any():
            return _update(operator, state, batch.filter(pa.array(~idle)), weights[~idle], now)
    if not len(first):
        return operator.output.empty_table()
    new = old + np.bincount(entries, weights=weights, minlength=len(first)).astype(np.int64)

    key_of, first_of_key = encode_groups([rows[name].combine_chunks() for name in operator.key])
    keys = rows.select(list(operator.key)).take(first_of_key)
    key, code = stored_under(state, keys, batch[hash_name(0)].to_numpy()[first][first_of_key], expired=True)
    state.use(code)
    there = state.live(code)
    key, code = key[there], code[there]
    stored_place = state.integers(code, PLACE)
    beyond = np.zeros(len(first_of_key), np.int64)
    np.maximum.at(beyond, key, stored_place + 1)
    plus = np.flatnonzero(weights > 0)
    last_added = np.full(len(first), -1, np.int64)
    last_added[entries[plus]] = plus
    place = beyond[key_of] + last_added
    kept = live & (last_added < 0)
    place[kept] = state.integers(codes[kept], PLACE)

    is_untouched = ~np.isin(code, codes[live])
    remaining = np.flatnonzero(new > 0)
    # Candidates for each key: stored rows that this batch does not touch, by code, then touched rows, by entry.
    latest = _latest(
        len(first_of_key),
        np.concatenate((key[is_untouched], key_of[remaining])),
        np.concatenate((stored_place[is_untouched], place[remaining])),
    )
    untouched, added = code[is_untouched], rows.take(remaining)
    before, was = rows_at(state, code, added, _latest(len(first_of_key), key, stored_place))
    after, is_ = rows_at(state, untouched, added, latest)
    if operator.ttl:
        # The sink may still hold a row that has expired here. A row that came and went in this batch deletes it.
        came = np.zeros(len(first_of_key), np.bool_)
        came[key_of[last_added >= 0]] = True
        gone = came & ~was & ~is_
        every = np.arange(len(gone))
        before = pa.concat_tables([before, rows.take(first_of_key)]).combine_chunks()
        before = before.take(np.where(gone, every + len(gone), every))
        was = was | gone
    output = _emit(operator, before, after, was, is_)

    written = np.full(len(first), now, np.int64)
    stored = [pa.array(hashes[first]), *rows.columns, pa.array(place), pa.array(new), pa.array(written)]
    state.put(pa.table(stored, schema=operator.layout.schema), codes >= 0)
    if operator.ttl:
        write_again(state, untouched, now)
    return output


def _latest(keys: int, key: Int64s, place: Int64s) -> Int64s:
    """Return, for each key, the index of its candidate with the highest place; -1 if it has none."""
    order = np.lexsort((place, key))
    latest = np.full(keys, -1, np.int64)
    latest[key[order]] = order
    return latest


def _emit(operator: SinkMaterializeOperator, before: pa.Table, after: pa.Table, was: Mask, is_: Mask) -> pa.Table:
    every = np.arange(len(was))
    changed = (was | is_) & ~(was & is_ & equal_rows(before, every, after, every))
    place = np.where(is_, every + len(every), every)[changed]
    kinds = np.where(is_, np.where(was, UPDATE_AFTER, INSERT), DELETE)[changed]
    rows = pa.concat_tables([before, after]).combine_chunks().take(place)
    return rows.append_column(operator.output.field(KIND), pa.array(kinds.astype(np.int8)))
