"""The values of a group in the order in which they came, for FIRST_VALUE and its like that lose rows again.

One state table serves all calls over the same argument, filter and DISTINCT that pass over NULL, another those that do
not: value -> at which places of the group it stands, oldest first. A group numbers its rows as they come. As in Flink,
a retraction takes the oldest of equal values, one that finds nothing is dropped, and an entry expires by its own last
write. With DISTINCT a value has one place, from when it came until its last copy went.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.runtime.kernels.grouped import GroupedRows, RowValues
from hintplan.runtime.kernels.retraction import overdrawn
from hintplan.runtime.kernels.values import VALUE
from hintplan.runtime.state.identity import Mask, encode_groups
from hintplan.runtime.state.keyed import KeyedState
from hintplan.runtime.state.layout import COUNT, HASH, WRITE, Int64s, StateLayout, prefixed_hash

PLACES = "__places"


def ordered_values_layout(what: str, keys: pa.Schema, kind: pa.DataType) -> StateLayout:
    """The layout of the table of places of the values of ``what``, which are of type ``kind``, by group key."""
    name = f"arrivals{what}"
    identity = pa.schema([*keys, pa.field(VALUE, kind)])
    payload = pa.schema([(PLACES, pa.list_(pa.int64()))])
    return StateLayout(name=name, identity=identity, payload=payload, key=tuple(keys.names))


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """Values of groups at their places, by group and then by place."""

    groups: Int64s
    places: Int64s
    values: pa.Array

    @staticmethod
    def sorted(groups: Int64s, places: Int64s, values: pa.Array) -> Placed:
        order = np.lexsort((places, groups))
        return Placed(groups=groups[order], places=places[order], values=values.take(pa.array(order)))


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderedChange:
    """What a micro-batch did: what it ``added`` that is still there, and the places that it emptied.

    ``numbered`` is how many values each group has ever numbered; ``lost_groups`` and ``lost_places`` go together.
    """

    numbered: Int64s
    added: Placed
    lost_groups: Int64s
    lost_places: Int64s


def update_ordered_values(
    state: KeyedState, batch: GroupedRows, given: RowValues, used: Mask, numbered: Int64s, now: int, *, distinct: bool
) -> OrderedChange:
    """Apply the values ``given`` in a batch, those that are ``used``, to ``state``, and say what changed.

    ``numbered`` is how many values each group had before.
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
    old = np.zeros(len(first), np.int64)
    old[live] = state.integers(codes[live], COUNT)
    if len(rows) and weights.min() < 0:
        counted = ~overdrawn(entries, weights, old)
        entries, weights, groups = entries[counted], weights[counted], groups[counted]
    numbers = numbered[groups] + _rank(groups, weights > 0)
    count = old + np.bincount(entries, weights=weights, minlength=len(first)).astype(np.int64)
    # The places that there were, then those of the batch, each of an entry: by entry, oldest first.
    stored = state.take(codes[live], [PLACES])[PLACES].combine_chunks()
    before = np.repeat(np.flatnonzero(live), np.asarray(pc.list_value_length(stored)))
    was = np.asarray(stored.flatten())
    if distinct:
        entry, place, kept = _first_places(before, was, entries, numbers, weights, old, count)
    else:
        entry, place, kept = oldest_out(before, was, entries, numbers, weights)
    entries_now = identity.add_column(0, HASH, pa.array(hashes))
    entries_now = entries_now.append_column(PLACES, by_entry(entry[kept], place[kept], len(first)))
    entries_now = entries_now.append_column(COUNT, pa.array(count))
    entries_now = entries_now.append_column(WRITE, pa.array(np.full(len(first), now)))
    state.put(entries_now.cast(state.layout.schema), codes >= 0)
    is_new = place >= numbered[group[entry]]
    added, lost = kept & is_new, ~kept & ~is_new
    return OrderedChange(
        numbered=numbered + np.bincount(groups[weights > 0], minlength=len(numbered)),
        added=Placed.sorted(group[entry[added]], place[added], value.take(pa.array(entry[added]))),
        lost_groups=group[entry[lost]],
        lost_places=place[lost],
    )


def _rank(groups: Int64s, counted: Mask) -> Int64s:
    """For each counted row, how many counted rows of its group stand before it."""
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
    """Entry and place of all values, old and new, and which are left when each retraction took the oldest."""
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
    """As :func:`oldest_out`, with one place per value: where it came when it last was not there."""
    order = np.argsort(entries, kind="stable")
    entry, number, weight = entries[order], numbers[order], weights[order]
    total = np.cumsum(weight)
    starts = np.concatenate(([True], entry[1:] != entry[:-1])) if len(entry) else np.ones(0, np.bool_)
    running = total - (total - weight)[starts][np.cumsum(starts) - 1] + old[entry]
    came = (weight > 0) & (running == 1)  # from none to one
    place = np.full(len(old), -1, np.int64)
    place[before] = was
    place[entry[came]] = number[came]  # the last one counts
    present = np.flatnonzero(count > 0)
    replaced = np.flatnonzero((place[before] != was) | (count[before] == 0))
    return (
        np.concatenate((present, before[replaced])),
        np.concatenate((place[present], was[replaced])),
        np.concatenate((np.ones(len(present), np.bool_), np.zeros(len(replaced), np.bool_))),
    )


def by_entry(entry: Int64s, place: Int64s, entries: int) -> pa.ListArray:
    """The places of each of ``entries``."""
    offsets = np.concatenate(([0], np.cumsum(np.bincount(entry, minlength=entries)))).astype(np.int32)
    order = np.argsort(entry, kind="stable")
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(place[order]))


def all_placed(state: KeyedState, batch: GroupedRows, groups: Int64s) -> Placed:
    """All values of ``groups`` of those in ``batch``."""
    found = [(np.empty(0, np.int64), np.empty(0, np.int64), pa.array([], state.layout.schema.field(VALUE).type))]
    for place, code in state.scan(batch.keys.take(groups), batch.hashes[groups]):
        rows = state.take(code, [VALUE, PLACES])
        places = rows[PLACES].combine_chunks()
        row = np.repeat(np.arange(len(code)), np.asarray(pc.list_value_length(places)))
        values = rows[VALUE].combine_chunks().take(pa.array(row))
        found.append((groups[place[row]], np.asarray(places.flatten()), values))
    return Placed.sorted(
        np.concatenate([f[0] for f in found]),
        np.concatenate([f[1] for f in found]),
        pa.concat_arrays([f[2] for f in found]),
    )
