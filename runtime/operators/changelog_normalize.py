"""The kernel of changelog-normalize, which turns upserts into a changelog: a row replaces the last row of its key.

The input has upserts (+I, +U) and deletes (-D) by key. A complete changelog also has -U rows, which the kernel ignores.
It sorts a batch into arrival order and emits the net change of each key: +I for a new key, -U directly followed by +U
for a changed row, -D with the previous row. With a TTL it also emits a row that equals the previous one, so that state
downstream stays alive, as Flink does. Without a TTL it does not. A key whose row has expired is new.

State layout, format 1: table ``rows`` (hash of the key; key; the other columns; 1, or 0 when deleted; last write).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hintplan.plans.declarations.row_kinds import RowKinds
from hintplan.runtime.kernels.changelog import changelog_between
from hintplan.runtime.operator import DELETE, KIND, UPDATE_BEFORE, Inheritance, InputSpec, Result, SegmentStore
from hintplan.runtime.operator import hash_column as hash_name
from hintplan.runtime.state.identity import encode_groups
from hintplan.runtime.state.inherit import inherit_tables
from hintplan.runtime.state.keyed import KeyedState
from hintplan.runtime.state.layout import StateLayout
from hintplan.runtime.state.tables import commit_states, open_tables, rows_in

ROWS = "rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangelogNormalizeOperator:
    """A changelog-normalize bound to its input columns, key, TTL (ms, 0 never expires) and emitted row kinds."""

    columns: pa.Schema
    key: tuple[str, ...]
    ttl: int
    kinds: RowKinds

    @property
    def layout(self) -> StateLayout:
        identity = pa.schema([self.columns.field(name) for name in self.key])
        payload = pa.schema([field for field in self.columns if field.name not in self.key])
        return StateLayout(name=ROWS, identity=identity, payload=payload)

    @property
    def layouts(self) -> tuple[StateLayout, ...]:
        return (self.layout,)

    @property
    def inputs(self) -> tuple[InputSpec, ...]:
        return (InputSpec(columns=self.columns, hashes=(self.key,), changelog=True),)

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
            output = _replace(self, states[ROWS], _last_of_each_key(self, rows.combine_chunks()), now)
        return commit_states(states, output, rows_in(deltas))

    def inherit(self, store: Inheritance) -> bytes | None:
        return inherit_tables(store, self.layouts)


def _last_of_each_key(operator: ChangelogNormalizeOperator, batch: pa.Table) -> pa.Table:
    """Return the last row of each key except ``-U`` rows, in the order in which the keys first came."""
    batch = batch.take(np.flatnonzero(batch[KIND].to_numpy() != UPDATE_BEFORE))
    if not batch.num_rows:
        return batch
    keys, first = encode_groups([batch[name].combine_chunks() for name in operator.key])
    last = np.empty(len(first), np.int64)
    last[keys] = np.arange(len(keys))
    return batch.take(last)


def _replace(operator: ChangelogNormalizeOperator, state: KeyedState, batch: pa.Table, now: int) -> pa.Table:
    """Store the new row of each key, and return the changes; keys are distinct."""
    hashes = batch[hash_name(0)].to_numpy()
    codes = state.find(batch.select(list(operator.key)), hashes)
    was = state.live(codes)
    state.use(codes)
    is_ = batch[KIND].to_numpy() != DELETE
    stored = state.take(codes[was], operator.columns.names)
    before = stored.take(pa.array(np.cumsum(was) - 1, mask=~was))
    after = batch.select(operator.columns.names)
    layout = operator.layout
    data = [after[field.name] for field in (*layout.identity, *layout.payload)]
    counts, writes = is_.astype(np.int64), np.full(len(is_), now, np.int64)
    state.put(pa.table([pa.array(hashes), *data, pa.array(counts), pa.array(writes)], layout.schema.names), codes >= 0)
    backs = "-U" in operator.kinds
    return changelog_between(before, after, was, is_, updates_before=backs, equal_rows=bool(operator.ttl))
