"""FIRST_VALUE, LAST_VALUE and LISTAGG of an aggregate whose rows may be taken back, or counted once.

What they yield stays in the group's row of state, as for insert-only input; with it stand, per table of
:mod:`runtime.kernels.ordered_values`, how many values came, and per first or last value its place. Only a group that
loses the value it shows, or any value of a list, is read as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from runtime.kernels.accumulators import Accumulator, combine, summed
from runtime.kernels.grouped import GroupedRows, RowValues
from runtime.kernels.ordered_values import OrderedChange, Placed, all_placed, update_ordered_values
from runtime.state.identity import encode_groups
from runtime.state.keyed import KeyedState
from runtime.state.layout import Int64s

Order = tuple[str, str | None, bool]
"""Argument, filter and DISTINCT of the calls that share a table of ordered values."""


def marks_of(order: Order, accumulators: Sequence[Accumulator]) -> tuple[str, ...]:
    """The int64 columns of a group's row besides ``accumulators``, which are those of ``order``."""
    argument, filter_, distinct = order
    arrived = f"__arrived({'distinct ' if distinct else ''}{argument})" + (f" where {filter_}" if filter_ else "")
    return (arrived, *(_at(a) for a in accumulators if a.function != "list"))


def _at(accumulator: Accumulator) -> str:
    return f"{accumulator.name} at"


def changed_in_order(
    order: Order,
    accumulators: Sequence[Accumulator],
    state: KeyedState,
    batch: GroupedRows,
    given: RowValues,
    old: Mapping[str, pa.Array],
    now: int,
) -> dict[str, pa.Array]:
    """The ``accumulators`` and their marks after a batch, by name; ``old`` is per group."""
    counter, *_ = marks_of(order, accumulators)
    numbered = np.asarray(pc.fill_null(old[counter], 0))
    change = update_ordered_values(state, batch, given, numbered, now, distinct=order[2])
    read = {a.name: _to_read(a, old, change) for a in accumulators}
    whole = all_placed(state, batch, np.unique(np.concatenate(list(read.values()))))
    new: dict[str, pa.Array] = {counter: pa.array(change.numbered)}
    size = len(batch.hashes)
    for accumulator in accumulators:
        again = np.zeros(size, np.bool_)
        again[read[accumulator.name]] = True
        mask = pa.array(again)
        added, places = _shown(accumulator, change.added, size)
        rest, rest_places = _shown(accumulator, whole, size)
        kept = combine(accumulator, old[accumulator.name], added)
        new[accumulator.name] = pc.if_else(mask, rest, kept)
        if accumulator.function != "list":
            both = (old[_at(accumulator)], places)
            stays = pc.coalesce(*(both if accumulator.function == "first" else reversed(both)))
            new[_at(accumulator)] = pc.if_else(mask, rest_places, stays)
    return new


def _to_read(accumulator: Accumulator, old: Mapping[str, pa.Array], change: OrderedChange) -> Int64s:
    """The groups of which ``accumulator`` must be found anew."""
    if accumulator.function == "list":
        return np.unique(change.lost_groups)
    shown = np.asarray(pc.fill_null(old[_at(accumulator)], -1))
    return np.unique(change.lost_groups[shown[change.lost_groups] == change.lost_places])


def _shown(accumulator: Accumulator, placed: Placed, size: int) -> tuple[pa.Array, pa.Array]:
    """What ``accumulator`` yields of ``placed`` for each of ``size`` groups, and at which place; NULL of none."""
    numbers, first = encode_groups([pa.array(placed.groups)])
    (folded,) = summed(numbers, [accumulator], [placed.values])
    last = np.append(first, len(placed.groups))[1:] - 1
    row = np.full(size, -1, np.int64)
    row[placed.groups[first]] = np.arange(len(first))
    spread = pa.array(row, mask=row < 0)
    places = pa.array(placed.places[first if accumulator.function == "first" else last], pa.int64())
    return folded.take(spread), places.take(spread)
