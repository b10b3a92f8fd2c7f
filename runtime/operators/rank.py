"""The kernel of rank over a changelog: the rows of each key with certain numbers, as Flink's Rank with ROW_NUMBER.

A row's number is its place among the rows of its key. Rows that are equal in the order are numbered by arrival, the
first or the last to arrive first. Of equal rows, the first to arrive is retracted first. All rows are stored, because
any may move up. A retraction without its row is ignored.

A batch emits the net change of each key. With numbers in the output, or with only one wanted number, it emits the new
row of each number that has changed (-U directly followed by +U). Otherwise it emits -D for rows that left, then +I for
rows that entered.

State layout, format 1: table ``rows`` (hash of key and row; all columns; its places in the order of arrival; count;
last write).

Each change of a key rewrites all its rows up to the last wanted number. So they expire together, one TTL after the last
change, and no row moves up without a change; expiry emits nothing. A row behind the last number was never emitted, and
expires by its own last write. A change deletes the expired rows of its key, so that a longer TTL revives none of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.runtime.kernels.changelog import overdrawn, weights_of
from hintplan.runtime.kernels.numbering import Numbering, emitted, numbered_keys, occurrences
from hintplan.runtime.kernels.ordered_values import PLACES, by_entry, oldest_out
from hintplan.runtime.operator import Inheritance, InputSpec, Result, SegmentStore
from hintplan.runtime.operator import hash_column as hash_name
from hintplan.runtime.state.identity import distinct_rows
from hintplan.runtime.state.inherit import inherit_tables
from hintplan.runtime.state.keyed import KeyedState
from hintplan.runtime.state.layout import COUNT, SUFFIX_MASK, Int64s, StateLayout, prefixed_hash
from hintplan.runtime.state.tables import commit_states, open_tables, rows_in
from hintplan.runtime.state.under_keys import rows_at, stored_under, write_again

ROWS = "rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class RankOperator:
    """A rank over a changelog, bound to its input columns, key, numbering and TTL (ms, 0 never expires)."""

    columns: pa.Schema
    key: tuple[str, ...]
    numbering: Numbering
    ttl: int

    @property
    def layout(self) -> StateLayout:
        payload = pa.schema([(PLACES, pa.list_(pa.int64()))])
        return StateLayout(name=ROWS, identity=self.columns, payload=payload, key=self.key)

    @property
    def layouts(self) -> tuple[StateLayout, ...]:
        return (self.layout,)

    @property
    def inputs(self) -> tuple[InputSpec, ...]:
        return (InputSpec(columns=self.columns, hashes=(self.key, tuple(self.columns.names)), changelog=True),)

    @property
    def output(self) -> pa.Schema:
        return self.numbering.output(self.columns)

    def process(
        self, deltas: Sequence[pa.Table | None], manifest: bytes | None, store: SegmentStore, now: int
    ) -> Result:
        states = open_tables(self.layouts, manifest, store, ttls=(self.ttl,), now=now)
        rows = deltas[0]
        output = self.output.empty_table()
        if rows is not None and rows.num_rows:
            output = _update(self, states[ROWS], rows.combine_chunks(), now)
        # No row is dropped: any may move up.
        return commit_states(states, output, rows_in(deltas), metrics=(0,))

    def inherit(self, store: Inheritance) -> bytes | None:
        return inherit_tables(store, self.layouts)


def _update(operator: RankOperator, state: KeyedState, batch: pa.Table, now: int) -> pa.Table:
    weights = weights_of(batch)
    assert weights is not None
    hashes = prefixed_hash(batch[hash_name(0)].to_numpy(), batch[hash_name(1)].to_numpy())
    entries, first = distinct_rows(batch.select(operator.columns.names), hashes)
    rows, hashes = batch.select(operator.columns.names).take(first), hashes[first]
    codes = state.find(rows, hashes)
    live = state.live(codes)
    old = np.zeros(len(first), np.int64)
    old[live] = state.integers(codes[live], COUNT)
    if weights.min(initial=1) < 0:
        idle = overdrawn(entries, weights, old)
        if idle.any():
            return _update(operator, state, batch.filter(pa.array(~idle)), now)
    if not len(first):
        return operator.output.empty_table()

    key_of, first_of_key = numbered_keys(rows, operator.key)
    keys = rows.select(list(operator.key))
    keys = keys.take(first_of_key) if operator.key else keys
    key, code = stored_under(state, keys, hashes[first_of_key] & ~SUFFIX_MASK, expired=True)
    there = state.live(code)
    state.use(code)
    expired = code[~there & ~np.isin(code, codes)]
    key, code = key[there], code[there]
    places = state.take(code, [PLACES])[PLACES].combine_chunks()
    lengths, place = np.asarray(pc.list_value_length(places)).astype(np.int64), np.asarray(places.flatten())
    stored = np.repeat(np.arange(len(code)), lengths)
    beyond = np.zeros(len(first_of_key), np.int64)
    np.maximum.at(beyond, key[stored], place + 1)

    # Stored rows that the batch does not touch come first, by code, then the rows of the batch, by entry.
    mine = _places_of(codes[live], code)
    entry_of = np.full(len(code), -1, np.int64)
    entry_of[mine] = np.flatnonzero(live)
    untouched = np.flatnonzero(entry_of < 0)
    touched = entry_of[stored] >= 0
    entry, entry_place, kept = oldest_out(
        entry_of[stored[touched]], place[touched], entries, (beyond[key_of])[entries] + np.arange(len(entries)), weights
    )
    is_new = entry_place >= beyond[key_of[entry]]
    rank_of_other = np.cumsum(entry_of < 0) - 1
    ranked = occurrences(
        operator.numbering,
        pa.concat_tables([state.take(code[untouched], operator.numbering.read), rows.select(operator.numbering.read)]),
        which=np.concatenate((rank_of_other[stored[~touched]], len(untouched) + entry)),
        keys=np.concatenate((key[stored[~touched]], key_of[entry])),
        places=np.concatenate((place[~touched], entry_place)),
        was=np.concatenate((np.ones(int((~touched).sum()), np.bool_), ~is_new)),
        is_=np.concatenate((np.ones(int((~touched).sum()), np.bool_), kept)),
    )
    output = emitted(operator.numbering, ranked, lambda chosen: rows_at(state, code[untouched], rows, chosen)[0])
    counted = np.unique(rank_of_other[stored[~touched]][ranked.up_to_end()[: int((~touched).sum())]])

    count = np.bincount(entry[kept], minlength=len(first))
    table = [pa.array(hashes), *rows.columns, by_entry(entry[kept], entry_place[kept], len(first)), pa.array(count)]
    table.append(pa.array(np.full(len(first), now, np.int64)))
    state.put(pa.table(table, schema=operator.layout.schema), codes >= 0)
    write_again(state, code[untouched][counted], now)
    write_again(state, expired, now, deleted=True)
    return output.select(operator.output.names)


def _places_of(codes: Int64s, among: Int64s) -> Int64s:
    """Return the position of each of ``codes`` in ``among``."""
    order = np.argsort(among)
    positions: Int64s = order[np.searchsorted(among[order], codes)]
    return positions
