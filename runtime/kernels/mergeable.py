"""Aggregate calls whose accumulators can be merged: rows and accumulators of parts of a group are folded together.

Only inserted rows are folded. The distinct values of the DISTINCT calls with one list of arguments and one filter are
a list in the order of arrival, so they are merged like any other accumulator. The calls are computed from it when the
group is complete. A user's aggregate function needs a ``merge``.

    calls = MergeableCalls(columns=columns, calls=calls, types=types, users={})
    whole = calls.folded(stored, part_of, batch, row_of, groups)
    calls.results(whole, groups)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.plans.declarations.computations import AggregateCall
from hintplan.runtime.kernels.accumulators import (
    Accumulator,
    UsersCalls,
    accumulators_of,
    contribution,
    function_rows,
    known,
    listed_columns,
    result,
    summed,
    used_rows,
)
from hintplan.runtime.kernels.in_steps import added_in_steps, are_large, has_range
from hintplan.runtime.state.identity import encode_groups, without_chunks
from hintplan.runtime.state.layout import Int64s

Distinct = tuple[tuple[str, ...], str | None]
"""The arguments and the filter of DISTINCT calls that share a list of values."""

Columns = dict[str, pa.Array]


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeableCalls:
    """Aggregate calls with results of ``types`` over rows with ``columns``.

    ``users`` calls the user's aggregate functions, by function name.
    """

    columns: pa.Schema
    calls: tuple[AggregateCall, ...]
    types: tuple[pa.DataType, ...]
    users: Mapping[str, UsersCalls] = field(default_factory=dict)

    def needed(self, call: AggregateCall) -> tuple[Accumulator, ...]:
        """Return the accumulators of a call."""
        return accumulators_of(call, self.columns, self.users, changelog=False)

    @property
    def accumulators(self) -> tuple[Accumulator, ...]:
        """The accumulators of all calls without DISTINCT, each once."""
        every = {a.name: a for call in self.calls for a in self.needed(call) if not a.distinct}
        return tuple(every.values())

    @property
    def distinct(self) -> dict[Distinct, tuple[Accumulator, ...]]:
        """The accumulators of DISTINCT calls, by arguments and filter."""
        every: dict[Distinct, dict[str, Accumulator]] = {}
        for call in self.calls:
            for a in self.needed(call):
                if a.distinct:
                    every.setdefault((_arguments(a), a.filter), {})[a.name] = a
        return {key: tuple(accumulators.values()) for key, accumulators in every.items()}

    @property
    def stored(self) -> pa.Schema:
        """The columns in which accumulators and lists of distinct values are kept."""
        lists = [
            pa.field(_list_name(arguments, filter_), pa.list_(self._value_type(arguments)))
            for arguments, filter_ in self.distinct
        ]
        return pa.schema([*(pa.field(a.name, a.type) for a in self.accumulators), *lists])

    @property
    def merges(self) -> bool:
        """True if accumulators of all the user's functions can be merged."""
        return all(user.merges for user in self.users.values())

    def folded(self, parts: pa.Table, part_of: Int64s, rows: pa.Table, row_of: Int64s, size: int) -> Columns:
        """Return the stored columns of each of ``size`` groups, folded from ``parts`` and then from ``rows``.

        ``parts`` has stored columns. ``part_of`` and ``row_of`` are the groups of both, which keep their order.
        """
        columns: Columns = {}
        groups = np.concatenate((part_of, row_of))
        for a in self.accumulators:
            of_parts = without_chunks(parts[a.name])
            if not rows.num_rows:
                columns[a.name] = merged_parts(a, of_parts, part_of, size)
            elif a.user is not None:
                held, given = _users_merged(a, of_parts, part_of, size), function_rows(a, rows, row_of, None)
                columns[a.name] = a.user.folded(given, held, np.bincount(part_of, minlength=size) > 0)
            else:
                every = _joined(of_parts, contribution(a, rows, None))
                columns[a.name] = summed(groups, [a], [every], size)[0]
        for arguments, filter_ in self.distinct:
            name = _list_name(arguments, filter_)
            used = np.flatnonzero(used_rows(filter_, rows))
            of_rows = self._values(rows.take(pa.array(used)), arguments)
            columns[name] = _merged_lists(
                without_chunks(parts[name]), part_of, of_rows, row_of[used], size, several=len(arguments) > 1
            )
        return columns

    def results(self, stored: Mapping[str, pa.Array], size: int) -> list[pa.Array]:
        """Return the results of the calls for groups with these ``stored`` columns."""
        state, wanted = dict(stored), np.ones(size, np.bool_)
        for (arguments, filter_), accumulators in self.distinct.items():
            lists = stored[_list_name(arguments, filter_)]
            groups = np.repeat(np.arange(size), np.asarray(pc.list_value_length(lists)).astype(np.int64))
            rows = _unpacked(lists.flatten(), arguments)
            for a in accumulators:
                plain = replace(a, distinct=False, filter=None)
                if plain.user is not None:
                    given = function_rows(plain, rows, groups, None)
                    state[a.name] = plain.user.folded(given, pa.nulls(size, a.type), np.zeros(size, np.bool_))
                else:
                    state[a.name] = summed(groups, [plain], [contribution(plain, rows, None)], size)[0]
        return [
            pc.cast(result(call, kind, self.needed(call), state, wanted), kind)
            for call, kind in zip(self.calls, self.types, strict=True)
        ]

    def are_large(self, rows: pa.Table, groups: Int64s, size: int) -> bool:
        """Return True if sums of ``rows`` may exceed the range of their type (:mod:`.in_steps`)."""
        sums = [a for a in self.accumulators if a.user is None and has_range(a)]
        return bool(are_large(sums, groups, [contribution(a, rows, None) for a in sums], size).any())

    def _value_type(self, arguments: tuple[str, ...]) -> pa.DataType:
        fields = [self.columns.field(name) for name in arguments]
        if len(fields) == 1:
            return fields[0].type
        return pa.struct([pa.field(f"v{index}", column.type) for index, column in enumerate(fields)])

    def _values(self, rows: pa.Table, arguments: tuple[str, ...]) -> pa.Array:
        """Return the values, or tuples of values, of ``rows``."""
        columns = [without_chunks(rows[name]) for name in arguments]
        if len(columns) == 1:
            return columns[0]
        return pa.StructArray.from_arrays(columns, fields=list(self._value_type(arguments)))


def _arguments(accumulator: Accumulator) -> tuple[str, ...]:
    return accumulator.arguments if accumulator.user is not None else (accumulator.argument or "",)


def _list_name(arguments: tuple[str, ...], filter_: str | None) -> str:
    return f"__distinct({listed_columns(arguments)})" + (f" where {filter_}" if filter_ else "")


def _joined(left: pa.Array, right: pa.Array) -> pa.Array:
    return pa.concat_arrays([left, without_chunks(right).cast(left.type)]) if len(left) else without_chunks(right)


def merged_parts(accumulator: Accumulator, parts: pa.Array, part_of: Int64s, size: int) -> pa.Array:
    """Return the accumulator of each of ``size`` groups, merged from its ``parts`` in their order.

    ``part_of`` are the groups of the parts.
    """
    if accumulator.user is not None:
        return _users_merged(accumulator, parts, part_of, size)
    if has_range(accumulator):
        nothing = known(accumulator, pa.nulls(size, accumulator.type), pa.array(np.zeros(size, np.bool_)))
        return added_in_steps(accumulator, part_of, parts, nothing)
    return summed(part_of, [accumulator], [parts], size)[0]


def _users_merged(accumulator: Accumulator, parts: pa.Array, part_of: Int64s, size: int) -> pa.Array:
    """Merge the parts of a user's function; groups with one part keep it."""
    assert accumulator.user is not None
    count = np.bincount(part_of, minlength=size)
    place = np.full(size, -1, np.int64)
    place[part_of] = np.arange(len(part_of))
    held = parts.take(pa.array(place, mask=count != 1))
    several = np.flatnonzero(count > 1)
    if several.size:
        # Merged by themselves, so that no other accumulator is created.
        number = np.full(size, -1, np.int64)
        number[several] = np.arange(len(several))
        here = np.flatnonzero(count[part_of] > 1)
        none = pa.nulls(len(several), accumulator.type)
        merged = accumulator.user.merged(
            number[part_of[here]], parts.take(pa.array(here)), none, np.zeros(len(several), np.bool_)
        )
        spread = np.arange(size)
        spread[several] = size + np.arange(len(several))
        held = pa.concat_arrays([held, merged.cast(held.type)]).take(pa.array(spread))
    return held


def _merged_lists(
    lists: pa.Array, part_of: Int64s, values: pa.Array, row_of: Int64s, size: int, *, several: bool
) -> pa.Array:
    """Return the list of distinct values of each of ``size`` groups, from its ``lists`` and then from its ``values``.

    ``several`` means that a value is a tuple of the values of several columns.
    """
    lengths = np.asarray(pc.list_value_length(lists)).astype(np.int64)
    groups = np.concatenate((np.repeat(part_of, lengths), row_of))
    every = pa.concat_arrays([lists.flatten(), values.cast(lists.type.value_type)])
    columns = every.flatten() if several else [every]
    _, first = encode_groups([pa.array(groups), *columns])
    first = first[np.argsort(groups[first], kind="stable")]
    offsets = np.concatenate(([0], np.cumsum(np.bincount(groups[first], minlength=size)))).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), every.take(pa.array(first)), type=lists.type)


def _unpacked(values: pa.Array, arguments: tuple[str, ...]) -> pa.Table:
    return pa.table(values.flatten() if len(arguments) > 1 else [values], list(arguments))
