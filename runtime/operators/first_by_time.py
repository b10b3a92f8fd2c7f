"""The kernel of deduplicate at the watermark: the first row of each key by its rowtime, emitted once.

A row waits until the watermark passes it. Then it is emitted if its key has no row yet, and is never taken back. Among
rows with equal times arrival decides. The input is insert-only, and late rows are dropped. Rows of a key that has its
row are dropped, too, without being counted as late. A key is forgotten one TTL after its row was emitted; its next row
is a first row again. Rows that wait never expire.

State layout, format 1: table ``keys`` (leading bits of the hash of the key; key; 1; last write) has the keys with a
row. Tables ``waiting@middle`` (:mod:`hintplan.runtime.operators.waiting_rows`) have at most one row of each key and
batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from hintplan.runtime.kernels.lateness import lateness
from hintplan.runtime.kernels.windows import milliseconds
from hintplan.runtime.operator import Inheritance, InputSpec, Result, SegmentStore, Watermarks
from hintplan.runtime.operator import hash_column as hash_name
from hintplan.runtime.operators.waiting_rows import ARRIVAL, TIME, WaitingRows, waiting_layout
from hintplan.runtime.state.identity import Mask, hashed_groups, without_chunks
from hintplan.runtime.state.inherit import inherit_tables
from hintplan.runtime.state.keyed import KeyedState
from hintplan.runtime.state.layout import HASH, SUFFIX_MASK, Int64s, StateLayout, int64s
from hintplan.runtime.state.manifest import read_manifest
from hintplan.runtime.state.tables import keyed_table, result_of, rows_in

KEYS, WAITING = "keys", "waiting"


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstByTimeOperator:
    """A deduplicate at the watermark, bound to its columns, key, rowtime and TTL (ms, 0 never expires).

    Its own metric is the number of rows that it dropped in favour of another row of their key.
    """

    columns: pa.Schema
    key: tuple[str, ...]
    time: str
    ttl: int

    @property
    def layouts(self) -> tuple[StateLayout, ...]:
        identity = pa.schema([self.columns.field(name) for name in self.key])
        keys = StateLayout(name=KEYS, identity=identity, payload=pa.schema([]))
        return keys, waiting_layout(WAITING, self.columns, self.key)

    @property
    def inputs(self) -> tuple[InputSpec, ...]:
        # Tasks drop no rows: the first row of a key may be late, and the second not.
        return (InputSpec(columns=self.columns, hashes=(self.key,), changelog=False),)

    @property
    def output(self) -> pa.Schema:
        return self.columns

    def process(
        self,
        deltas: Sequence[pa.Table | None],
        manifest: bytes | None,
        store: SegmentStore,
        now: int,
        watermarks: Watermarks,
    ) -> Result:
        of_keys, of_waiting = self.layouts
        tables = read_manifest(manifest, self.layouts)
        keys = keyed_table(of_keys, tables[KEYS], store, ttl=self.ttl, now=now)
        waiting = WaitingRows(of_waiting, tables, store, now=now)
        due = waiting.take_due(watermarks.after)
        passed_over, late, late_times = 0, np.empty(0, np.int64), np.empty(0, np.int64)
        rows = deltas[0]
        if rows is not None and rows.num_rows:
            times = milliseconds(rows[self.time])
            batch = waiting.arrived(rows.select(self.columns.names), times, int64s(rows, hash_name(0)))
            late = np.flatnonzero(times <= watermarks.before)
            late_times = times[late]
            new = _first_of_each(self, _new(self, keys, batch.filter(pa.array(times > watermarks.before))))
            passed_over = batch.num_rows - len(late) - new.num_rows
            is_due = int64s(new, TIME) <= watermarks.after
            waiting.wait(new.filter(pa.array(~is_due)), watermarks.after)
            due = pa.concat_tables([due, new.filter(pa.array(is_due))])
        first = _first_of_each(self, _new(self, keys, due))
        passed_over += due.num_rows - first.num_rows
        _put(self, keys, first, now)
        output = first.take(pa.array(_in_order(first))).select(self.columns.names).cast(self.output)
        buckets = waiting.buckets.commit()
        result = result_of({KEYS: keys.commit(), **buckets}, output, rows_in(deltas), (passed_over,))
        return replace(
            result,
            late_rows=len(late),
            late_places=(late,),
            lateness=(lateness(late_times, watermarks.before),),
            waiting_rows=sum(table.rows for table in buckets.values()),
            uses=(keys.uses(),),
        )

    def inherit(self, store: Inheritance) -> bytes | None:
        return inherit_tables(store, self.layouts)


def _key_hashes(rows: pa.Table) -> Int64s:
    """Return the leading bits of the hash of each row's key; the others of a stored row are of its place."""
    return int64s(rows, HASH) & ~SUFFIX_MASK


def _new(operator: FirstByTimeOperator, keys: KeyedState, rows: pa.Table) -> pa.Table:
    """Return the rows whose key has no row yet."""
    rows = rows.combine_chunks()
    codes = keys.find(rows.select(list(operator.key)), _key_hashes(rows))
    keys.use(codes)
    return rows.filter(pa.array(~keys.live(codes))).combine_chunks()


def _first_of_each(operator: FirstByTimeOperator, rows: pa.Table) -> pa.Table:
    """Return the first row of each key."""
    groups, first = hashed_groups([without_chunks(rows[name]) for name in operator.key], _key_hashes(rows))
    if len(first) < rows.num_rows:
        order = _in_order(rows, groups)
        ends = np.cumsum(np.bincount(groups, minlength=len(first)))
        first = order[np.concatenate(([0], ends[:-1]))]
    return rows.take(pa.array(first)).combine_chunks()


def _in_order(rows: pa.Table, groups: Int64s | None = None) -> Int64s:
    """Return the places of ``rows`` sorted by their groups, if given, then by time and arrival."""
    keys = [int64s(rows, ARRIVAL), int64s(rows, TIME)]
    places: Int64s = np.lexsort([*keys, *([] if groups is None else [groups])])
    return places


def _put(operator: FirstByTimeOperator, keys: KeyedState, first: pa.Table, now: int) -> None:
    """Store the keys of ``first``, which have no live row."""
    identity, hashes = first.select(list(operator.key)), _key_hashes(first)
    present: Mask = keys.find(identity, hashes) >= 0
    ones, writes = np.ones(len(hashes), np.int64), np.full(len(hashes), now, np.int64)
    columns = [pa.array(hashes), *identity.columns, pa.array(ones), pa.array(writes)]
    keys.put(pa.table(columns, schema=keys.layout.schema), present)
