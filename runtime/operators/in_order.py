"""FIRST_VALUE, LAST_VALUE, LISTAGG and ARRAY_AGG of an aggregate whose rows may be retracted or count only once.

The results stay in the group's row of state, as for insert-only input. The row also has, per table of
:mod:`hintplan.runtime.kernels.ordered_values`, the number of values that arrived, and the place of each first or last
value. The whole group is read only if it loses its current first or last value, or any value of a list or an array.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.runtime.kernels.accumulators import Accumulator, combine, summed
from hintplan.runtime.kernels.folds.lists import one_each
from hintplan.runtime.kernels.ordered_values import OrderedChange, PlacedValues, all_placed, update_ordered_values
from hintplan.runtime.kernels.values import GroupedRows, RowValues
from hintplan.runtime.state.identity import Mask, encode_groups
from hintplan.runtime.state.layout import Int64s
from hintplan.runtime.state.stored_rows import StoredRows


class Order(NamedTuple):
    """The properties of calls that share a table of ordered values; with ``nulls``, NULL counts as a value."""

    argument: str
    filter: str | None
    distinct: bool
    nulls: bool

    @property
    def text(self) -> str:
        """The text that identifies the table, and the marks in a group's row."""
        text = f"({'distinct ' if self.distinct else ''}{self.argument}{' or NULL' if self.nulls else ''})"
        return text + (f" where {self.filter}" if self.filter else "")


def marks_of(order: Order, accumulators: Sequence[Accumulator]) -> tuple[str, ...]:
    """Return the names of the int64 columns that the ``accumulators`` of ``order`` need in a group's row."""
    return (f"__arrived{order.text}", *(_at(a) for a in accumulators if not a.is_of_all))


def _at(accumulator: Accumulator) -> str:
    return f"{accumulator.name} at"


def changed_in_order(
    order: Order,
    accumulators: Sequence[Accumulator],
    state: StoredRows,
    batch: GroupedRows,
    given: RowValues,
    used: Mask,
    old: Mapping[str, pa.Array],
    now: int,
) -> dict[str, pa.Array]:
    """Return the ``accumulators`` and their marks after a batch, by name.

    ``used`` marks the rows of the batch that count. ``old`` holds the stored columns per group.
    """
    counter, *_ = marks_of(order, accumulators)
    numbered = np.asarray(pc.fill_null(old[counter], 0))
    change = update_ordered_values(state, batch, given, used, numbered, now, distinct=order.distinct)
    read = {a.name: _to_read(a, old, change) for a in accumulators}
    whole = all_placed(state, batch, np.unique(np.concatenate(list(read.values()))))
    new: dict[str, pa.Array] = {counter: pa.array(change.numbered)}
    size = len(batch.hashes)
    for accumulator in accumulators:
        again = np.zeros(size, np.bool_)
        again[read[accumulator.name]] = True
        mask = pa.array(again)
        added, places = _shown(accumulator, change.added, size)
        reread, reread_places = _shown(accumulator, whole, size)
        kept = combine(accumulator, old[accumulator.name], added)
        new[accumulator.name] = pc.if_else(mask, reread, kept)
        if not accumulator.is_of_all:
            both = (old[_at(accumulator)], places)
            stays = pc.coalesce(*(both if accumulator.function == "first" else reversed(both)))
            new[_at(accumulator)] = pc.if_else(mask, reread_places, stays)
    return new


def _to_read(accumulator: Accumulator, old: Mapping[str, pa.Array], change: OrderedChange) -> Int64s:
    """Return the groups whose ``accumulator`` must be computed again from the table of ordered values."""
    if accumulator.is_of_all:
        return np.unique(change.lost_groups)
    shown = np.asarray(pc.fill_null(old[_at(accumulator)], -1))
    return np.unique(change.lost_groups[shown[change.lost_groups] == change.lost_places])


def _shown(accumulator: Accumulator, placed: PlacedValues, size: int) -> tuple[pa.Array, pa.Array]:
    """Return the result of ``accumulator`` over ``placed`` for each of ``size`` groups, and the place of that value.

    Both are NULL for groups without values.
    """
    numbers, first = encode_groups([pa.array(placed.groups)])
    values = placed.values
    if accumulator.function == "array":
        values = one_each(values, np.ones(len(values), np.bool_))
    (folded,) = summed(numbers, [accumulator], [values])
    last = np.append(first, len(placed.groups))[1:] - 1
    row = np.full(size, -1, np.int64)
    row[placed.groups[first]] = np.arange(len(first))
    spread = pa.array(row, mask=row < 0)
    places = pa.array(placed.places[first if accumulator.function == "first" else last], pa.int64())
    return folded.take(spread), places.take(spread)
