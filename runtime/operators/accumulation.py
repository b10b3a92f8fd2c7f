"""The accumulators of an aggregate, the state tables that keep them, and their change by the rows of a batch.

State layout, format 1:

- table ``groups``: hash of the keys; keys; accumulators; count of rows; last write
- a ``values(...)`` table per remembered argument
- an ``arrivals(...)`` table per argument whose order is remembered
- a ``values(rows of ...)`` table per list of arguments of a DISTINCT call of a user's function

An aggregate that remembers no argument can take rows that are already summed up
(:mod:`hintplan.runtime.kernels.partial`). The stored state is the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.plans.declarations.computations import AggregateCall
from hintplan.plans.settings.phases import PhaseStrategy
from hintplan.runtime.kernels.accumulators import (
    Accumulator,
    GivenRows,
    UsersCalls,
    accumulators_of,
    combine,
    contribution,
    function_rows,
    known,
    listed_columns,
    result,
    summed,
    used_rows,
)
from hintplan.runtime.kernels.changelog import last_emptied, overdrawn
from hintplan.runtime.kernels.in_steps import added_in_steps, has_range
from hintplan.runtime.kernels.mergeable import merged_parts
from hintplan.runtime.kernels.ordered_values import ordered_values_layout
from hintplan.runtime.kernels.partial import WEIGHT, PartialSums
from hintplan.runtime.kernels.slices import Slices, grouped_by
from hintplan.runtime.kernels.values import (
    VALUE,
    GroupedRows,
    RowValues,
    ValueChange,
    update_value_rows,
    update_values,
    values_layout,
)
from hintplan.runtime.operator import hash_column as hash_name
from hintplan.runtime.operators.in_order import Order, changed_in_order, marks_of
from hintplan.runtime.state.identity import Mask, encode_groups, equal_rows, without_chunks
from hintplan.runtime.state.layout import COUNT, HASH, WRITE, Int64s, StateLayout, int64s
from hintplan.runtime.state.stored_rows import StoredRows

GROUPS = "groups"

DistinctRows = tuple[tuple[str, ...], str | None]
"""The arguments and the filter of the DISTINCT calls that share a values table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accumulation:
    """The accumulators of the ``calls`` of an aggregate over ``columns``, by ``keys``, and the tables that keep them.

    ``columns`` are the columns of the input.
    """

    columns: pa.Schema
    changelog: bool
    keys: tuple[str, ...]
    calls: tuple[AggregateCall, ...]
    users: Mapping[str, UsersCalls] = field(default_factory=dict)
    """The adapters that call the user's aggregate functions, by function name."""

    @property
    def key_columns(self) -> pa.Schema:
        return pa.schema([self.columns.field(key) for key in self.keys])

    @property
    def accumulators(self) -> tuple[Accumulator, ...]:
        """The distinct accumulators of all calls, in the order in which the calls need them."""
        accumulators = {a.name: a for call in self.calls for a in self.needed(call)}
        return tuple(accumulators.values())

    def needed(self, call: AggregateCall) -> tuple[Accumulator, ...]:
        """Return the accumulators of a call."""
        return accumulators_of(call, self.columns, self.users, changelog=self.changelog)

    def remembered(self, accumulator: Accumulator) -> bool:
        """Return True if ``accumulator`` needs a values table.

        DISTINCT accumulators need one, and extremes (MIN, MAX) whose values may be retracted.
        """
        if accumulator.is_extreme:
            return self.changelog
        return accumulator.distinct and (accumulator.is_linear or accumulator.is_moments or accumulator.is_multiset)

    @property
    def distinct_rows(self) -> dict[DistinctRows, tuple[Accumulator, ...]]:
        """The accumulators of DISTINCT calls of the user's functions, by arguments and filter."""
        accumulators: dict[DistinctRows, tuple[Accumulator, ...]] = {}
        for a in self.accumulators:
            if a.user is not None and a.distinct:
                key = (a.arguments, a.filter)
                accumulators[key] = (*accumulators.get(key, ()), a)
        return accumulators

    @property
    def orders(self) -> dict[Order, tuple[Accumulator, ...]]:
        """The accumulators that need a table of ordered values.

        They depend on the order of rows, and their rows may be retracted or count only once (DISTINCT).
        """
        accumulators: dict[Order, tuple[Accumulator, ...]] = {}
        for a in self.accumulators:
            if a.is_in_order and (a.distinct or self.changelog):
                order = Order(a.argument or "", a.filter, a.distinct, a.keeps_null)
                accumulators[order] = (*accumulators.get(order, ()), a)
        return accumulators

    @property
    def stored(self) -> tuple[tuple[str, pa.DataType], ...]:
        """The columns of a group's row in addition to its keys: accumulators, and the marks of ordered accumulators."""
        marks = (mark for order, accumulators in self.orders.items() for mark in marks_of(order, accumulators))
        return (*((a.name, a.type) for a in self.accumulators), *((mark, pa.int64()) for mark in marks))

    @property
    def arguments(self) -> tuple[tuple[str, str | None], ...]:
        """The (argument, filter) pairs that have a values table."""
        pairs = {(a.argument or "", a.filter): None for a in self.accumulators if self.remembered(a)}
        return tuple(pairs)

    @property
    def groups_layout(self) -> StateLayout:
        return StateLayout(name=GROUPS, identity=self.key_columns, payload=pa.schema(self.stored))

    @property
    def layouts(self) -> tuple[StateLayout, ...]:
        values = (values_layout(a, f, self.key_columns, [self.columns.field(a).type]) for a, f in self.arguments)
        arrivals = (
            ordered_values_layout(order.text, self.key_columns, self.columns.field(order.argument).type)
            for order in self.orders
        )
        rows = (
            values_layout(f"rows of {listed_columns(a)}", f, self.key_columns, [self.columns.field(n).type for n in a])
            for a, f in self.distinct_rows
        )
        return (self.groups_layout, *values, *arrivals, *rows)

    @property
    def hashes(self) -> tuple[tuple[str, ...], ...]:
        """The columns of the hashes that the tables of values need, in the order of these tables."""
        arguments = (*(argument for argument, _ in self.arguments), *(order.argument for order in self.orders))
        return (*((argument,) for argument in arguments), *(arguments for arguments, _ in self.distinct_rows))

    @property
    def remembers(self) -> bool:
        """True if accumulators need values that rows had, so that accumulators alone cannot be merged."""
        return bool(self.arguments or self.orders or self.distinct_rows)

    def presum(self, phases: PhaseStrategy, slices: Slices | None = None) -> PartialSums | None:
        """Return the partial sums that tasks compute before the shuffle; None if the aggregate runs in one phase.

        With ``slices``, rows are summed up by key and slice.
        """
        if phases == "ONE_PHASE" or self.remembers:
            return None
        if self.changelog and any(a.is_moments for a in self.accumulators):
            return None
        users = [a.user for a in self.accumulators if a.user is not None]
        if users and (self.changelog or not all(user.merges for user in users)):
            return None
        return PartialSums(
            columns=self.columns,
            changelog=self.changelog,
            keys=self.keys,
            accumulators=self.accumulators,
            required=phases == "TWO_PHASE",
            slices=slices,
        )

    def results(self, types: Sequence[pa.DataType], state: Mapping[str, pa.Array], wanted: Mask) -> list[pa.Array]:
        """Return the value of each call, of Arrow type ``types``, from the accumulators of groups in ``state``.

        Values of groups that are not ``wanted`` are arbitrary.
        """
        return [
            result(call, kind, self.needed(call), state, wanted) for call, kind in zip(self.calls, types, strict=True)
        ]


class GroupChange(NamedTuple):
    """The groups of a batch and their accumulators before and after it, by name.

    ``was`` and ``is_`` mark the groups that had and that have rows. ``order`` sorts groups by their first row.
    ``hashes`` are the hashes of the groups' keys.
    """

    keys: pa.Table
    old: dict[str, pa.Array]
    new: dict[str, pa.Array]
    was: Mask
    is_: Mask
    order: Int64s
    hashes: Int64s


def change_groups(
    operator: Accumulation, states: Mapping[str, StoredRows], batch: pa.Table, weights: Int64s | None, now: int
) -> GroupChange:
    """Add the rows of ``batch`` with these ``weights`` (+1 and -1, or None if all are +1) to the groups in ``states``.

    A retraction is ignored if there is no row to retract.
    """
    groups_state = states[GROUPS]
    hashes = batch[hash_name(0)].to_numpy()
    groups, first = grouped_by(batch, operator.keys, hashes)
    keys, hashes = batch.select(list(operator.keys)).take(first), hashes[first]
    codes = groups_state.find(keys, hashes)
    live = groups_state.live(codes)
    old, old_count = _stored(operator, groups_state, codes, live)
    if weights is not None:
        retracted = np.bincount(groups[weights < 0], minlength=len(first))
        if (retracted > old_count).any():
            counted = ~overdrawn(groups, weights, old_count)
            if not counted.all():
                return change_groups(operator, states, batch.filter(pa.array(counted)), weights[counted], now)
    if not len(first):
        return GroupChange(keys, old, old, live, live, first, hashes)
    groups_state.use(codes)
    places, kept = _by_place(first, batch.num_rows), old
    if weights is not None:
        last = last_emptied(groups, weights, old_count)
        if (last >= 0).any():
            _forget(operator, states, keys, hashes, np.flatnonzero((last >= 0) & (old_count > 0)), now)
            kept, old_count = _begun_anew(operator, old, last >= 0), np.where(last >= 0, 0, old_count)
            tail = np.arange(batch.num_rows) > last[groups]
            batch, groups, weights = batch.filter(pa.array(tail)).combine_chunks(), groups[tail], weights[tail]
    change = np.bincount(groups, weights=weights, minlength=len(first)).astype(np.int64)
    new_count = old_count + change
    grouped = GroupedRows(keys=keys, hashes=hashes, groups=groups, weights=weights)
    new = _changed(operator, states, batch, grouped, kept, old_count, now)
    new |= _folded(operator, batch, grouped, kept, old_count)
    new = {name: new[name] for name, _ in operator.stored}
    rows = [pa.array(hashes), *keys.columns, *new.values(), pa.array(new_count), pa.array(np.full(len(first), now))]
    table = pa.table(rows, [HASH, *operator.keys, *new, COUNT, WRITE]).cast(operator.groups_layout.schema)
    groups_state.put(table, codes >= 0)
    return GroupChange(keys, old, new, live, new_count > 0, places, hashes)


def merge_groups(operator: Accumulation, rows: pa.Table) -> pa.Table:
    """Merge ``rows`` of the table of groups that have equal keys, in their order; the accumulators need no other table.

    The result is in order of ``END``, if it is one of the keys, and of hash.
    """
    rows = rows.combine_chunks()
    hashes = int64s(rows, HASH)
    groups, first = grouped_by(rows, operator.keys, hashes)
    size = len(first)
    merged = rows.take(pa.array(first))
    if size == rows.num_rows:
        return merged
    for a in operator.accumulators:
        column = merged_parts(a, without_chunks(rows[a.name]), groups, size).cast(a.type)
        merged = merged.set_column(merged.column_names.index(a.name), merged.schema.field(a.name), column)
    counts = np.zeros(size, np.int64)
    np.add.at(counts, groups, int64s(rows, COUNT))
    return merged.set_column(merged.column_names.index(COUNT), COUNT, pa.array(counts))


def _by_place(places: Int64s, size: int) -> Int64s:
    """Return the indices that sort ``places``, which are distinct and below ``size``."""
    index_at = np.full(size, -1, np.int64)
    index_at[places] = np.arange(len(places))
    order: Int64s = index_at[index_at >= 0]
    return order


def _stored(operator: Accumulation, state: StoredRows, codes: Int64s, live: Mask) -> tuple[dict[str, pa.Array], Int64s]:
    """Return the stored columns of each group, NULL for groups that are not ``live``, and each group's row count."""
    names = [*(name for name, _ in operator.stored), COUNT]
    rows = state.take(codes[live], names)
    if not live.all():
        rows = rows.take(pa.array(np.cumsum(live) - 1, mask=~live))
    columns = {name: without_chunks(rows[name]) for name in names}
    counts = np.asarray(pc.fill_null(columns.pop(COUNT), 0))
    if not live.all():
        columns |= {a.name: known(a, columns[a.name], pa.array(live)) for a in operator.accumulators}
    return columns, counts


def _begun_anew(operator: Accumulation, old: dict[str, pa.Array], anew: Mask) -> dict[str, pa.Array]:
    """Return the stored columns, reset to the values of a group without rows for groups that begin ``anew``."""
    kept_rows = pa.array(np.arange(len(anew)), mask=anew)
    kept = {name: column.take(kept_rows) for name, column in old.items()}
    return kept | {a.name: known(a, kept[a.name], pa.array(~anew)) for a in operator.accumulators}


def _forget(
    operator: Accumulation,
    states: Mapping[str, StoredRows],
    keys: pa.Table,
    hashes: Int64s,
    groups: Int64s,
    now: int,
) -> None:
    """Delete all remembered values of ``groups``, which have lost all rows that they had before the batch.

    If every retraction carried the values of the row that it retracts, only values that this batch retracts would be
    left.
    """
    for layout in operator.layouts[1:]:
        state, names = states[layout.name], layout.schema.names
        gone = [state.take(codes, names) for _, codes in state.scan(keys.take(groups), hashes[groups])]
        for rows in gone:
            size = rows.num_rows
            rows = rows.set_column(names.index(COUNT), COUNT, pa.array(np.zeros(size, np.int64)))
            rows = rows.set_column(names.index(WRITE), WRITE, pa.array(np.full(size, now, np.int64)))
            state.put(rows.cast(layout.schema), np.ones(size, np.bool_))


def _changed(
    operator: Accumulation,
    states: Mapping[str, StoredRows],
    batch: pa.Table,
    grouped: GroupedRows,
    old: dict[str, pa.Array],
    old_count: Int64s,
    now: int,
) -> dict[str, pa.Array]:
    """Return the stored columns of each group after ``batch``, by name.

    Accumulators of the user's functions are included only for DISTINCT calls; :func:`_folded` returns the others.
    """
    in_order = {a.name for accumulators in operator.orders.values() for a in accumulators}
    built_in = [a for a in operator.accumulators if a.user is None]
    plain = [a for a in built_in if not operator.remembered(a) and a.name not in in_order]
    if WEIGHT in batch.column_names:
        parts = [batch[a.name].combine_chunks() for a in plain]
    else:
        parts = [contribution(a, batch, grouped.weights) for a in plain]
    new = {
        a.name: added_in_steps(a, grouped.groups, part, old[a.name])
        if has_range(a)
        else combine(a, old[a.name], summed(grouped.groups, [a], [part], len(grouped.hashes))[0])
        for a, part in zip(plain, parts, strict=True)
    }
    for index, (argument, filter_) in enumerate(operator.arguments):
        state = states[operator.layouts[index + 1].name]
        change = update_values(state, grouped, _values(batch, argument, filter_, index + 1), now)
        for accumulator in built_in:
            if (accumulator.argument, accumulator.filter) == (argument, filter_) and operator.remembered(accumulator):
                before = old[accumulator.name]
                if accumulator.is_extreme:
                    new[accumulator.name] = _extreme(accumulator, state, grouped, before, change)
                else:
                    new[accumulator.name] = _distinct(accumulator, before, change, len(grouped.hashes))
    for index, (order, accumulators) in enumerate(operator.orders.items(), len(operator.arguments) + 1):
        state = states[operator.layouts[index].name]
        values = _values(batch, order.argument, order.filter, index)
        used = used_rows(order.filter, batch) if order.nulls else np.asarray(pc.is_valid(values.values))
        new |= changed_in_order(order, accumulators, state, grouped, values, used, old, now)
    for index, ((arguments, filter_), accumulators) in enumerate(
        operator.distinct_rows.items(), len(operator.arguments) + len(operator.orders) + 1
    ):
        state, hashes = states[operator.layouts[index].name], batch[hash_name(index)].to_numpy()
        columns = [batch[name].combine_chunks() for name in arguments]
        change = update_value_rows(state, grouped, columns, used_rows(filter_, batch), hashes, now)
        moved = np.flatnonzero(change.transition)
        rows = GivenRows(
            groups=change.groups[moved],
            arguments=tuple(column.take(pa.array(moved)) for column in change.columns),
            used=np.ones(len(moved), np.bool_),
            weights=change.transition[moved],
        )
        live = old_count > 0
        new |= {a.name: a.user.folded(rows, old[a.name], live) for a in accumulators if a.user is not None}
    return new


def _folded(
    operator: Accumulation, batch: pa.Table, grouped: GroupedRows, old: dict[str, pa.Array], old_count: Int64s
) -> dict[str, pa.Array]:
    """Return the accumulators of the user's functions for each group after ``batch``, by name.

    DISTINCT calls are not included.
    """
    live = old_count > 0
    weights = None if WEIGHT in batch.column_names else grouped.weights
    new: dict[str, pa.Array] = {}
    for a in operator.accumulators:
        if a.user is None or a.distinct:
            continue
        if WEIGHT in batch.column_names:
            new[a.name] = a.user.merged(grouped.groups, batch[a.name].combine_chunks(), old[a.name], live)
        else:
            rows = function_rows(a, batch, grouped.groups, weights)
            new[a.name] = a.user.folded(rows, old[a.name], live)
    return new


def _values(batch: pa.Table, argument: str, filter_: str | None, number: int) -> RowValues:
    """Return ``argument`` of each row, NULL where ``filter_`` is not true, with its hashes from column ``number``."""
    values = batch[argument].combine_chunks()
    if filter_:
        is_used = pc.fill_null(batch[filter_], False).combine_chunks()
        values = pc.if_else(is_used, values, pa.scalar(None, values.type))
    return RowValues(values=values, hashes=batch[hash_name(number)].to_numpy())


def _distinct(accumulator: Accumulator, old: pa.Array, change: ValueChange, size: int) -> pa.Array:
    moved = np.flatnonzero(change.transition)
    rows = pa.table({accumulator.argument: change.values.take(moved)})
    plain = Accumulator(
        name=accumulator.name,
        function=accumulator.function,
        argument=accumulator.argument,
        filter=None,
        distinct=False,
        type=accumulator.type,
    )
    part = contribution(plain, rows, change.transition[moved])
    return combine(plain, old, _spread(plain, change.groups[moved], part, size))


def _extreme(
    accumulator: Accumulator,
    state: StoredRows,
    batch: GroupedRows,
    old: pa.Array,
    change: ValueChange,
) -> pa.Array:
    size = len(batch.hashes)
    there = np.flatnonzero(~change.gone)
    added = _spread(accumulator, change.groups[there], change.values.take(there), size)
    new = combine(accumulator, old, added)
    gone = np.flatnonzero(change.gone)
    group = change.groups[gone]
    is_extreme = equal_rows(pa.table([change.values], [VALUE]), gone, pa.table([old], [VALUE]), group)
    again = np.unique(group[is_extreme])
    if not again.size:
        return new
    # The extreme itself was retracted: search the group's remaining values for the next one.
    places, values = [np.empty(0, np.int64)], [change.values.slice(0, 0)]
    for place, code in state.scan(batch.keys.take(again), batch.hashes[again]):
        places.append(again[place])
        values.append(state.take(code, [VALUE])[VALUE].combine_chunks())
    next_extremes = _spread(accumulator, np.concatenate(places), pa.concat_arrays(values), size)
    searched = np.zeros(size, np.bool_)
    searched[again] = True
    return pc.if_else(pa.array(searched), next_extremes, new)


def _spread(accumulator: Accumulator, groups: Int64s, part: pa.Array, size: int) -> pa.Array:
    """Fold ``part`` per group and lay it out over all ``size`` groups; a group without a part gets 0 or NULL."""
    numbers, first = encode_groups([pa.array(groups)])
    (folded,) = summed(numbers, [accumulator], [part])
    place = np.full(size, -1, np.int64)
    place[groups[first]] = np.arange(len(first))
    spread = folded.take(pa.array(place, mask=place < 0))
    if not accumulator.is_linear:
        return spread
    return pc.if_else(pa.array(place < 0), pa.scalar(0, pa.int64()).cast(accumulator.type), spread)
