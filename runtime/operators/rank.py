"""Of the rows of each key those with certain numbers in an order, as Flink's Rank with ROW_NUMBER.

A row has the number of its place among the rows of its key; of rows that the order does not tell apart the one that
arrived first comes first, and of equal rows the first is taken back first. If rows are only added, those beyond the
last number wanted are not kept, for none of them comes back; else all rows are kept. A batch emits what it does to each
key in the end: with numbers, or if only one is wanted, what stands at each number at which another row stood before (-U
directly followed by +U), otherwise -D of what left and then +I of what came. A row to be taken back that is not there
is passed over. A row expires by its own last write, and nothing is emitted for it: those behind it move up when their
key is next changed. State layout, format 1: table ``rows`` (hash of key and row; all columns; its places in the order
of arrival; count; last write).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from plans.declarations.row_kinds import INSERT_ONLY, RowKind
from plans.operators import SortKey
from runtime.kernels.ordered_values import PLACES, by_entry, oldest_out
from runtime.kernels.replacement import replaced
from runtime.kernels.retraction import overdrawn, weights_of
from runtime.kernels.sorting import sorted_rows
from runtime.operator import DELETE, INSERT, KIND, Inheritance, InputSpec, Result, SegmentStore
from runtime.operator import hash_column as hash_name
from runtime.state.identity import Mask, distinct_rows, encode_groups
from runtime.state.inherit import inherit_tables
from runtime.state.keyed import KeyedState
from runtime.state.layout import COUNT, SUFFIX_MASK, Int64s, StateLayout, prefixed_hash
from runtime.state.manifest import read_manifest, write_manifest
from runtime.state.under_keys import rows_at, stored_under, write_again

ROWS = "rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class RankOperator:
    """Bound to its input columns, key, order, the numbers it passes on, TTL (ms, 0 for ever) and row kinds.

    ``number`` is the column with the number, None if it has none; ``changelog`` says that its input has row kinds.
    """

    columns: pa.Schema
    key: tuple[str, ...]
    order: tuple[SortKey, ...]
    start: int
    end: int
    number: str | None
    changelog: bool
    ttl: int
    kinds: tuple[RowKind, ...]

    @property
    def layout(self) -> StateLayout:
        payload = pa.schema([(PLACES, pa.list_(pa.int64()))])
        return StateLayout(name=ROWS, identity=self.columns, payload=payload, key=self.key)

    @property
    def layouts(self) -> tuple[StateLayout, ...]:
        return (self.layout,)

    @property
    def inputs(self) -> tuple[InputSpec, ...]:
        hashes = (self.key, tuple(self.columns.names))
        return (InputSpec(columns=self.columns, hashes=hashes, changelog=self.changelog),)

    @property
    def sorted_by(self) -> list[str]:
        """The columns of the order."""
        return [key.column for key in self.order]

    @property
    def output(self) -> pa.Schema:
        number = [] if self.number is None else [pa.field(self.number, pa.int64())]
        kind = [] if self.kinds == INSERT_ONLY else [pa.field(KIND, pa.int8())]
        return pa.schema([*self.columns, *number, *kind])

    def process(
        self, deltas: Sequence[pa.Table | None], manifest: bytes | None, store: SegmentStore, now: int
    ) -> Result:
        layout = self.layout
        table = read_manifest(manifest, {ROWS: layout.fingerprint})[ROWS]
        state = KeyedState(layout, table, store, ttl=self.ttl, now=now)
        rows = deltas[0]
        output = self.output.empty_table()
        if rows is not None and rows.num_rows:
            output = _update(self, state, rows.combine_chunks(), now)
        committed = state.commit()
        return Result(
            output=output,
            manifest=write_manifest({ROWS: committed}),
            rows_in=rows.num_rows if rows is not None else 0,
            state_rows=committed.rows,
            state_bytes=sum(segment.size for segment in committed.segments),
        )

    def inherit(self, store: Inheritance) -> bytes | None:
        return inherit_tables(store, self.layouts)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Occurrences:
    """The rows of some keys, each as often as it occurs, in their order: ``which`` row it is, and its key.

    ``was`` says which were there before the batch, ``is_`` which are after it; ``given`` is where each stood before
    they were sorted.
    """

    given: Int64s
    which: Int64s
    keys: Int64s
    was: Mask
    is_: Mask

    def numbers(self, there: Mask) -> Int64s:
        """The number of each among those that are ``there``, from 1; what is not there has that of the one before."""
        total = np.cumsum(there)
        begins = np.concatenate(([True], self.keys[1:] != self.keys[:-1]))[: len(self.keys)]
        found: Int64s = total - (total - there)[begins][np.cumsum(begins) - 1]
        return found

    def from_first_to(self, end: int) -> Mask:
        """Whether each has a number up to ``end`` after the batch, as they were given."""
        found = np.zeros(len(self.given), np.bool_)
        found[self.given] = self.is_ & (self.numbers(self.is_) <= end)
        return found


Rows = Callable[[Int64s], pa.Table]
"""The rows of these, NULL for -1."""


def _update(operator: RankOperator, state: KeyedState, batch: pa.Table, now: int) -> pa.Table:
    weights = weights_of(batch)
    if weights is None:
        batch = _first_of_each_key(operator, batch)
        weights = np.ones(batch.num_rows, np.int64)
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

    key_of, first_of_key = _keys(operator, rows)
    keys = rows.select(list(operator.key))
    keys = keys.take(first_of_key) if operator.key else keys
    key, code = stored_under(state, keys, hashes[first_of_key] & ~SUFFIX_MASK)
    places = state.take(code, [PLACES])[PLACES].combine_chunks()
    lengths, place = np.asarray(pc.list_value_length(places)).astype(np.int64), np.asarray(places.flatten())
    stored = np.repeat(np.arange(len(code)), lengths)
    beyond = np.zeros(len(first_of_key), np.int64)
    np.maximum.at(beyond, key[stored], place + 1)

    # What the batch does not touch, by code, and then the rows of the batch, by entry.
    mine = _places_of(codes[live], code)
    entry_of = np.full(len(code), -1, np.int64)
    entry_of[mine] = np.flatnonzero(live)
    others = np.flatnonzero(entry_of < 0)
    touched = entry_of[stored] >= 0
    entry, entry_place, kept = oldest_out(
        entry_of[stored[touched]], place[touched], entries, (beyond[key_of])[entries] + np.arange(len(entries)), weights
    )
    is_new = entry_place >= beyond[key_of[entry]]
    rank_of_other = np.cumsum(entry_of < 0) - 1
    found = _sorted(
        operator,
        pa.concat_tables([state.take(code[others], operator.sorted_by), rows.select(operator.sorted_by)]),
        which=np.concatenate((rank_of_other[stored[~touched]], len(others) + entry)),
        keys=np.concatenate((key[stored[~touched]], key_of[entry])),
        places=np.concatenate((place[~touched], entry_place)),
        was=np.concatenate((np.ones(int((~touched).sum()), np.bool_), ~is_new)),
        is_=np.concatenate((np.ones(int((~touched).sum()), np.bool_), kept)),
    )
    emit = _moves if operator.number is None and operator.start < operator.end else _at_each_number
    output = emit(operator, found, lambda chosen: rows_at(state, code[others], rows, chosen)[0])

    if not operator.changelog:  # what is beyond the last number never comes back
        wanted = found.from_first_to(operator.end)
        kept &= wanted[len(wanted) - len(entry) :]
        needed = np.zeros(len(others), np.bool_)
        needed[rank_of_other[stored[~touched]][wanted[: len(wanted) - len(entry)]]] = True
        write_again(state, code[others[~needed]], now, deleted=True)
    count = np.bincount(entry[kept], minlength=len(first))
    table = [pa.array(hashes), *rows.columns, by_entry(entry[kept], entry_place[kept], len(first)), pa.array(count)]
    table.append(pa.array(np.full(len(first), now, np.int64)))
    state.put(pa.table(table, schema=operator.layout.schema), codes >= 0)
    return output.select(operator.output.names)


def _keys(operator: RankOperator, rows: pa.Table) -> tuple[Int64s, Int64s]:
    """The key of each row as a number, and the first row of each key."""
    if not operator.key:
        return np.zeros(rows.num_rows, np.int64), np.zeros(min(1, rows.num_rows), np.int64)
    return encode_groups([rows[name].combine_chunks() for name in operator.key])


def _sorted(
    operator: RankOperator, rows: pa.Table, *, which: Int64s, keys: Int64s, places: Int64s, was: Mask, is_: Mask
) -> _Occurrences:
    """Occurrences of ``rows`` in their order; ``places`` are those in the order of arrival."""
    order = sorted_rows(rows.combine_chunks().take(which), keys, operator.order, places)
    return _Occurrences(given=order, which=which[order], keys=keys[order], was=was[order], is_=is_[order])


def _first_of_each_key(operator: RankOperator, batch: pa.Table) -> pa.Table:
    """The rows of a batch, which are only added, that can have one of the first numbers; in their order."""
    groups, first = _keys(operator, batch)
    sizes = np.bincount(groups, minlength=len(first))
    if not len(first) or int(sizes.max()) <= operator.end:
        return batch
    order = sorted_rows(batch, groups, operator.order, np.arange(len(groups)))
    behind = np.arange(len(order)) - (np.cumsum(sizes) - sizes)[groups[order]]
    return batch.take(np.sort(order[behind < operator.end]))


def _places_of(codes: Int64s, among: Int64s) -> Int64s:
    """Where each of ``codes`` stands ``among`` others."""
    order = np.argsort(among)
    found: Int64s = order[np.searchsorted(among[order], codes)]
    return found


def _shown(operator: RankOperator, found: _Occurrences, there: Mask) -> tuple[Mask, Int64s]:
    """Which of those that are ``there`` have a number that is wanted, and all numbers."""
    numbers = found.numbers(there)
    return there & (numbers >= operator.start) & (numbers <= operator.end), numbers


def _moves(operator: RankOperator, found: _Occurrences, rows: Rows) -> pa.Table:
    """The rows that are no longer among those wanted, and then those that now are."""
    before, _ = _shown(operator, found, found.was)
    after, _ = _shown(operator, found, found.is_)
    size = int(found.which.max(initial=-1)) + 1
    change = np.bincount(found.which[after], minlength=size) - np.bincount(found.which[before], minlength=size)
    _, at = np.unique(found.which, return_index=True)
    in_order = found.which[np.sort(at)]
    change = change[in_order]
    gone = np.repeat(in_order[change < 0], -change[change < 0])
    came = np.repeat(in_order[change > 0], change[change > 0])
    kinds = np.concatenate((np.full(len(gone), DELETE, np.int8), np.full(len(came), INSERT, np.int8)))
    return rows(np.concatenate((gone, came))).append_column(KIND, pa.array(kinds))


def _at_each_number(operator: RankOperator, found: _Occurrences, rows: Rows) -> pa.Table:
    """What stands at the numbers at which another row stood before."""
    was, was_number = _shown(operator, found, found.was)
    is_, number = _shown(operator, found, found.is_)
    span = max(int(was_number.max(initial=0)), int(number.max(initial=0))) + 1
    was_slot, slot = (found.keys * span + was_number)[was], (found.keys * span + number)[is_]
    slots = np.union1d(was_slot, slot)
    before, after = np.full(len(slots), -1, np.int64), np.full(len(slots), -1, np.int64)
    before[np.searchsorted(slots, was_slot)] = found.which[was]
    after[np.searchsorted(slots, slot)] = found.which[is_]
    changed = before != after
    before, after = before[changed], after[changed]
    old, new = rows(before), rows(after)
    if operator.number is not None:
        numbers = pa.array(slots[changed] % span)
        old, new = old.append_column(operator.number, numbers), new.append_column(operator.number, numbers)
    return replaced(
        old,
        new,
        before >= 0,
        after >= 0,
        updates_before="-U" in operator.kinds,
        equal_rows=True,
    )
