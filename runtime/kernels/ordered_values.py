"""The values of a group in order of arrival, for FIRST_VALUE and similar calls under retraction.

One state table serves all calls with the same argument, filter and DISTINCT that ignore NULL, and another one the calls
that do not. An entry maps a value to its places in the group, oldest first; a group numbers its rows as they arrive.

As in Flink, a retraction removes the oldest of equal values, or is dropped if there is none. An entry expires by its
own last write. With DISTINCT, a value has one place, from its arrival until its last copy is gone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.runtime.kernels.changelog import overdrawn
from hintplan.runtime.kernels.values import VALUE, GroupedRows, RowValues
from hintplan.runtime.state.identity import Mask, encode_groups
from hintplan.runtime.state.layout import COUNT, HASH, WRITE, Int64s, StateLayout, prefixed_hash
from hintplan.runtime.state.stored_rows import StoredRows

PLACES = "__places"


def ordered_values_layout(what: str, keys: pa.Schema, kind: pa.DataType) -> StateLayout:
    """Return the layout of the state table of places of the values of ``what``, of type ``kind``, by group key."""
    name = f"arrivals{what}"
    identity = pa.schema([*keys, pa.field(VALUE, kind)])
    payload = pa.schema([(PLACES, pa.list_(pa.int64()))])
    return StateLayout(name=name, identity=identity, payload=payload, key=tuple(keys.names))


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedValues:
    """Values of groups at their places, sorted by group and place."""

    groups: Int64s
    places: Int64s
    values: pa.Array

    @staticmethod
    def sorted(groups: Int64s, places: Int64s, values: pa.Array) -> PlacedValues:
        order = np.lexsort((places, groups))
        return PlacedValues(groups=groups[order], places=places[order], values=values.take(pa.array(order)))


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderedChange:
    """The change that a micro-batch made: the values it ``added`` that still exist, and the places it emptied.

    ``numbered`` is the number of values that each group has ever numbered. ``lost_groups`` and ``lost_places`` are
    parallel.
    """

    numbered: Int64s
    added: PlacedValues
    lost_groups: Int64s
    lost_places: Int64s


def update_ordered_values(
    state: StoredRows, batch: GroupedRows, given: RowValues, used: Mask, numbered: Int64s, now: int, *, distinct: bool
) -> OrderedChange:
    """Apply the values ``given`` in a batch, if they are ``used``, to ``state``; return the change.

    ``numbered`` is the number of values that each group had numbered before.
    """
    rows = np.flatnonzero(used)
    groups, values, value_hashes = batch.groups[rows], given.values.take(pa.array(rows)), given.hashes[rows]
    weights = np.ones(len(rows), np.int64) if batch.weights is None else batch.weights[rows]
    entries, first = encode_groups([pa.array(groups), values])
    group, value = groups[first], values.take(pa.array(first))
    hashes = prefixed_hash(batch.hashes[group], value_hashes[first])
    names = [*batch.keys.column_names, VALUE]
    identity = pa.table([*batch.keys.take(group).columns, value], names)  # there may be no keys
    codes = state.find(identity, hashes)
    live = state.live(codes)
    state.use(codes)
    old = np.zeros(len(first), np.int64)
    old[live] = state.integers(codes[live], COUNT)
    if len(rows) and weights.min() < 0:
        counted = ~overdrawn(entries, weights, old)
        entries, weights, groups = entries[counted], weights[counted], groups[counted]
    numbers = numbered[groups] + _rank(groups, weights > 0)
    count = old + np.bincount(entries, weights=weights, minlength=len(first)).astype(np.int64)
    # For each entry, its stored places come before the places of the batch: oldest first.
    stored = state.take(codes[live], [PLACES])[PLACES].combine_chunks()
    before = np.repeat(np.flatnonzero(live), np.asarray(pc.list_value_length(stored)))
    stored_places = np.asarray(stored.flatten())
    if distinct:
        entry, place, kept = _first_places(before, stored_places, entries, numbers, weights, old, count)
    else:
        entry, place, kept = oldest_out(before, stored_places, entries, numbers, weights)
    entries_now = identity.add_column(0, HASH, pa.array(hashes))
    entries_now = entries_now.append_column(PLACES, by_entry(entry[kept], place[kept], len(first)))
    entries_now = entries_now.append_column(COUNT, pa.array(count))
    entries_now = entries_now.append_column(WRITE, pa.array(np.full(len(first), now)))
    state.put(entries_now.cast(state.layout.schema), codes >= 0)
    is_new = place >= numbered[group[entry]]
    added, lost = kept & is_new, ~kept & ~is_new
    return OrderedChange(
        numbered=numbered + np.bincount(groups[weights > 0], minlength=len(numbered)),
        added=PlacedValues.sorted(group[entry[added]], place[added], value.take(pa.array(entry[added]))),
        lost_groups=group[entry[lost]],
        lost_places=place[lost],
    )


def _rank(groups: Int64s, counted: Mask) -> Int64s:
    """Return, for each counted row, the number of counted rows of its group before it."""
    order = np.argsort(groups, kind="stable")
    group, one = groups[order], counted[order].astype(np.int64)
    before = np.cumsum(one) - one
    starts = np.concatenate(([True], group[1:] != group[:-1])) if len(group) else np.ones(0, np.bool_)
    rank = np.empty(len(groups), np.int64)
    rank[order] = before - before[starts][np.cumsum(starts) - 1]
    return rank


def oldest_out(
    before: Int64s, was: Int64s, entries: Int64s, numbers: Int64s, weights: Int64s
) -> tuple[Int64s, Int64s, Mask]:
    """Return entry and place of all values, old and new, and a mask of the values that remain.

    Each retraction removes the oldest value of its entry.
    """
    plus = weights > 0
    entry = np.concatenate((before, entries[plus]))
    place = np.concatenate((was, numbers[plus]))
    order = np.argsort(entry, kind="stable")
    entry, place = entry[order], place[order]
    taken = np.bincount(entries[~plus], minlength=int(entry.max(initial=-1)) + 1)
    return entry, place, _rank(entry, np.ones(len(entry), np.bool_)) >= taken[entry]


def _first_places(
    before: Int64s, was: Int64s, entries: Int64s, numbers: Int64s, weights: Int64s, old: Int64s, count: Int64s
) -> tuple[Int64s, Int64s, Mask]:
    """Return the result of :func:`oldest_out` with one place per value: where its count last rose from 0 to 1."""
    order = np.argsort(entries, kind="stable")
    entry, number, weight = entries[order], numbers[order], weights[order]
    total = np.cumsum(weight)
    starts = np.concatenate(([True], entry[1:] != entry[:-1])) if len(entry) else np.ones(0, np.bool_)
    running = total - (total - weight)[starts][np.cumsum(starts) - 1] + old[entry]
    came = (weight > 0) & (running == 1)  # the count rises from 0 to 1
    place = np.full(len(old), -1, np.int64)
    place[before] = was
    place[entry[came]] = number[came]  # numpy keeps the last
    present = np.flatnonzero(count > 0)
    replaced = np.flatnonzero((place[before] != was) | (count[before] == 0))
    return (
        np.concatenate((present, before[replaced])),
        np.concatenate((place[present], was[replaced])),
        np.concatenate((np.ones(len(present), np.bool_), np.zeros(len(replaced), np.bool_))),
    )


def by_entry(entry: Int64s, place: Int64s, entries: int) -> pa.ListArray:
    """Return the places of each of ``entries`` as a list."""
    offsets = np.concatenate(([0], np.cumsum(np.bincount(entry, minlength=entries)))).astype(np.int32)
    order = np.argsort(entry, kind="stable")
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(place[order]))


def all_placed(state: StoredRows, batch: GroupedRows, groups: Int64s) -> PlacedValues:
    """Return all values of these ``groups`` of the batch."""
    parts = [(np.empty(0, np.int64), np.empty(0, np.int64), pa.array([], state.layout.schema.field(VALUE).type))]
    for place, code in state.scan(batch.keys.take(groups), batch.hashes[groups]):
        rows = state.take(code, [VALUE, PLACES])
        places = rows[PLACES].combine_chunks()
        row = np.repeat(np.arange(len(code)), np.asarray(pc.list_value_length(places)))
        values = rows[VALUE].combine_chunks().take(pa.array(row))
        parts.append((groups[place[row]], np.asarray(places.flatten()), values))
    return PlacedValues.sorted(
        np.concatenate([f[0] for f in parts]),
        np.concatenate([f[1] for f in parts]),
        pa.concat_arrays([f[2] for f in parts]),
    )
