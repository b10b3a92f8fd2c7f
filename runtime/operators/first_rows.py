"""The kernel of rank over insert-only input: it keeps the rows of each key with the first numbers in an order.

Unlike :mod:`hintplan.runtime.operators.rank`, it does not store rows behind the last wanted number, because they never
come back. A new row takes the slot of the row that it displaces. If a new row enters, all rows of its key are
rewritten, so that they expire together, one TTL after the last row entered. A row that does not enter rewrites none.

State layout, format 1: table ``first`` (hash of key and slot; key; slot; the other columns; place in the order of
arrival; 1; last write).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from hintplan.runtime.kernels.numbering import Numbering, emitted, first_of_each_key, numbered_keys, occurrences
from hintplan.runtime.operator import Inheritance, InputSpec, Result, SegmentStore
from hintplan.runtime.operator import hash_column as hash_name
from hintplan.runtime.operators.task_filter import TaskFilter
from hintplan.runtime.state.identity import Mask
from hintplan.runtime.state.inherit import inherit_tables
from hintplan.runtime.state.keyed import KeyedState
from hintplan.runtime.state.layout import Int64s, StateLayout, prefixed_hash
from hintplan.runtime.state.tables import commit_states, open_tables, rows_in
from hintplan.runtime.state.under_keys import rows_at, stored_under, write_again

FIRST = "first"
SLOT, PLACE = "__slot", "__place"
COUNTS = ("rows_passed_over",)
"""The kernel's own metric: input rows that were not among the first rows of their key after the batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstRowsOperator:
    """A rank over insert-only input, bound to its input columns, key, numbering and TTL (ms, 0 never expires)."""

    columns: pa.Schema
    key: tuple[str, ...]
    numbering: Numbering
    ttl: int

    @property
    def layout(self) -> StateLayout:
        identity = [*(self.columns.field(name) for name in self.key), pa.field(SLOT, pa.int64())]
        other_columns = [field for field in self.columns if field.name not in self.key]
        payload = pa.schema([*other_columns, pa.field(PLACE, pa.int64())])
        return StateLayout(name=FIRST, identity=pa.schema(identity), payload=payload, key=self.key)

    @property
    def layouts(self) -> tuple[StateLayout, ...]:
        return (self.layout,)

    @property
    def inputs(self) -> tuple[InputSpec, ...]:
        chosen = partial(first_of_each_key, self.numbering, key=self.key)
        thinned = TaskFilter(columns=self.columns, chosen=chosen)
        return (InputSpec(columns=self.columns, hashes=(self.key,), changelog=False, presum=thinned),)

    @property
    def output(self) -> pa.Schema:
        return self.numbering.output(self.columns)

    def process(
        self, deltas: Sequence[pa.Table | None], manifest: bytes | None, store: SegmentStore, now: int
    ) -> Result:
        states = open_tables(self.layouts, manifest, store, ttls=(self.ttl,), now=now)
        rows, came = deltas[0], rows_in(deltas)
        output, kept = self.output.empty_table(), 0
        if rows is not None and rows.num_rows:
            first = first_of_each_key(self.numbering, rows.combine_chunks(), self.key)
            output, kept = _update(self, states[FIRST], first, now)
        return commit_states(states, output, came, metrics=(came - kept,))

    def inherit(self, store: Inheritance) -> bytes | None:
        return inherit_tables(store, self.layouts)


def _update(operator: FirstRowsOperator, state: KeyedState, batch: pa.Table, now: int) -> tuple[pa.Table, int]:
    """Store the rows of ``batch`` that are among the first; return the changes and the number of stored rows."""
    numbering = operator.numbering
    rows, hashes = batch.select(operator.columns.names), batch[hash_name(0)].to_numpy()
    key_of, first_of_key = numbered_keys(rows, operator.key)
    keys = rows.select(list(operator.key))
    keys = keys.take(first_of_key) if operator.key else keys
    key, code = stored_under(state, keys, hashes[first_of_key], expired=True)
    live = state.live(code)
    state.use(code)
    expired, key, code = code[~live], key[live], code[live]
    place = state.integers(code, PLACE)
    beyond = np.zeros(len(first_of_key), np.int64)
    np.maximum.at(beyond, key, place + 1)
    came = beyond[key_of] + np.arange(len(key_of))
    # Stored rows come first, by code, then the rows of the batch.
    size = len(code) + len(key_of)
    is_stored = np.arange(size) < len(code)
    sort_rows = pa.concat_tables([state.take(code, numbering.read), rows.select(numbering.read)])
    ranked = occurrences(
        numbering,
        sort_rows,
        which=np.arange(size),
        keys=np.concatenate((key, key_of)),
        places=np.concatenate((place, came)),
        was=is_stored,
        is_=np.ones(size, np.bool_),
    )
    output = emitted(numbering, ranked, lambda chosen: rows_at(state, code, rows, chosen)[0])
    first = ranked.up_to_end()
    entering = np.flatnonzero(first[len(code) :])
    stays = first[: len(code)]
    slots = slots_of(state, key, code, ~stays, key_of[entering], len(first_of_key))
    write_again(state, expired, now, deleted=True)
    write_again(state, code[stays & np.isin(key, key_of[entering])], now)
    _put(operator, state, rows.take(entering), hashes[entering], slots, came[entering], now)
    return output.select(operator.output.names), len(entering)


def slots_of(state: KeyedState, key: Int64s, code: Int64s, leaves: Mask, entering: Int64s, keys: int) -> Int64s:
    """Return a slot for each row that enters, given its key, among the stored rows with these ``key`` and ``code``.

    A row takes the slot of a row that ``leaves``, or else a slot that no live row of the key has.
    """
    taken = state.integers(code, SLOT)
    free = np.zeros(keys, np.int64)
    np.maximum.at(free, key, taken + 1)
    leaving = np.flatnonzero(leaves)
    leaving = leaving[np.argsort(key[leaving], kind="stable")]
    begins = np.searchsorted(key[leaving], np.arange(keys))
    several = np.bincount(key[leaving], minlength=keys)
    order = np.argsort(entering, kind="stable")
    nth = np.empty(len(entering), np.int64)
    counts = np.bincount(entering, minlength=keys)
    nth[order] = np.arange(len(entering)) - (np.cumsum(counts) - counts)[entering[order]]
    is_reused = nth < several[entering]
    slots = free[entering] + nth - several[entering]
    reused = entering[is_reused]
    slots[is_reused] = taken[leaving[begins[reused] + nth[is_reused]]]
    return slots


def _put(
    operator: FirstRowsOperator,
    state: KeyedState,
    rows: pa.Table,
    hashes: Int64s,
    slots: Int64s,
    places: Int64s,
    now: int,
) -> None:
    layout = operator.layout
    identity = rows.select(list(operator.key)).append_column(SLOT, pa.array(slots))
    others = [rows[field.name] for field in operator.columns if field.name not in operator.key]
    stored_at = prefixed_hash(hashes, slots)
    present = state.find(identity, stored_at) >= 0
    counts, writes = np.ones(len(slots), np.int64), np.full(len(slots), now, np.int64)
    data = [pa.array(stored_at), *identity.columns, *others, pa.array(places), pa.array(counts), pa.array(writes)]
    state.put(pa.table(data, schema=layout.schema), present)
