"""Accumulators of group aggregates: the value stored per group, its change in a micro-batch, and the result it yields.

- COUNT, SUM and AVG are linear: the change is a weighted sum over the batch, for any mix of row kinds. DOUBLE and
  DECIMAL are added row by row where the order matters (:mod:`hintplan.runtime.kernels.in_steps`).
- Under retraction, a sum of floating-point numbers covers only the finite ones. NaN and either infinity are counted
  separately, because they could not be subtracted again.
- MIN and MAX keep the extreme; NaN is greater than all numbers. Under retraction, they need the values themselves, as
  do DISTINCT calls (:mod:`hintplan.runtime.kernels.values`).
- Variances and deviations are computed from the mean and the squared distances from it
  (:mod:`hintplan.runtime.kernels.folds.moments`).
- COLLECT counts each value, which is linear too (:mod:`hintplan.runtime.kernels.folds.multisets`).
- FIRST_VALUE, LAST_VALUE, LISTAGG and ARRAY_AGG depend on the order in which rows arrive. All but ARRAY_AGG ignore
  NULL. Under retraction or DISTINCT, they need the values in that order
  (:mod:`hintplan.runtime.kernels.ordered_values`).
- A user-defined aggregate function has one accumulator, of the type that it declares, and is also called with NULLs.
  Callers pass the object that calls it.

Result types and NULL rules are Flink's: AVG of an integer is truncated to that integer type, integer sums wrap around,
AVG of a DECIMAL rounds half up, SUM of no values is NULL.

A DECIMAL sum that needs more than 38 digits becomes NULL, and stays NULL as long as the group exists, because its
digits are lost. In that case Flink returns the sum of only the later values, which is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.plans.declarations.computations import VARIANCES, AggregateCall
from hintplan.runtime.kernels.folds import moments
from hintplan.runtime.kernels.folds.lists import concatenated, one_each
from hintplan.runtime.kernels.folds.multisets import added, counted_each
from hintplan.runtime.state.identity import Mask
from hintplan.runtime.state.layout import Int64s


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenRows:
    """Input rows of a user-defined aggregate function: the group of each row, and its arguments.

    The function is called for the rows that are ``used``. ``weights`` are +1 and -1, or None if all are +1.
    """

    groups: Int64s
    arguments: tuple[pa.Array, ...]
    used: Mask
    weights: Int64s | None = None

    def tuples(self) -> list[tuple[Any, ...]]:
        """Return the arguments of each row, as Python values."""
        if not self.arguments:
            return [()] * len(self.groups)
        return list(zip(*(a.to_pylist(maps_as_pydicts="strict") for a in self.arguments), strict=True))


class UsersCalls(Protocol):
    """The calls of a user-defined aggregate function, on columns of accumulators of ``type``; picklable.

    ``old`` has an accumulator for each group; it is valid only where the group is ``live``.
    """

    @property
    def type(self) -> pa.DataType: ...

    @property
    def merges(self) -> bool: ...

    def folded(self, rows: GivenRows, old: pa.Array, live: Mask) -> pa.Array: ...

    def merged(self, groups: Int64s, parts: pa.Array, old: pa.Array, live: Mask) -> pa.Array: ...

    def values(self, accumulators: pa.Array, wanted: Mask) -> pa.Array: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Accumulator:
    """One stored value per group: ``function`` of ``argument``, over the rows that satisfy ``filter``.

    ``function`` is one of:

    - count, sum, min, max, first, last, array, multiset, moments
    - list: texts joined with ``separator``
    - finite, finite moments: the same as sum and moments, over the finite values only
    - nan, inf, -inf: the number of such values

    Without an ``argument``, it counts rows. ``type`` is the Arrow type in state: int64, float64, decimal128(38, s), a
    list for array, a map for multiset, a struct for moments, or the argument's own type for min, max, first, last and
    list. A user-defined function has ``arguments`` instead, and ``user`` calls it.
    """

    name: str
    function: str
    argument: str | None
    filter: str | None
    distinct: bool
    separator: str = ""
    type: pa.DataType
    arguments: tuple[str, ...] = ()
    user: UsersCalls | None = None

    @property
    def is_in_order(self) -> bool:
        """True if the result depends on the order of rows."""
        return self.function in ("first", "last") or self.is_of_all

    @property
    def is_of_all(self) -> bool:
        """True if the result contains all values, in their order."""
        return self.function in ("list", "array")

    @property
    def is_moments(self) -> bool:
        """True if variances and deviations are computed from it."""
        return self.function in _MOMENTS

    @property
    def is_multiset(self) -> bool:
        """True if it counts how often each value occurs."""
        return self.function == "multiset"

    @property
    def keeps_null(self) -> bool:
        """True if NULL is a value like any other, and is not ignored."""
        return self.function == "array"

    @property
    def is_extreme(self) -> bool:
        return self.function in ("min", "max")

    @property
    def is_linear(self) -> bool:
        return self.function in ("count", "sum", *_FINITE_AND_NOT)


_NEEDS = {
    "COUNT": ("count",),
    "SUM": ("sum", "count"),
    "AVG": ("sum", "count"),
    "MIN": ("min",),
    "MAX": ("max",),
    "FIRST_VALUE": ("first",),
    "LAST_VALUE": ("last",),
    "LISTAGG": ("list",),
    "ARRAY_AGG": ("array",),
    "COLLECT": ("multiset",),
    **dict.fromkeys(VARIANCES, ("moments",)),
}
_MOMENTS = ("moments", "finite moments")
_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_FINITE_AND_NOT = ("finite", *_NOT_FINITE)


def accumulators_of(
    call: AggregateCall, columns: pa.Schema, users: Mapping[str, UsersCalls], *, changelog: bool
) -> tuple[Accumulator, ...]:
    """Return the accumulators that ``call`` needs; calls with equal needs share accumulators of equal names.

    ``changelog`` is True if rows may be retracted. ``users`` are the user-defined aggregate functions by name.
    """
    if call.is_users:
        return (_users_accumulator(call, users[call.function]),)
    needs = _NEEDS[call.function]
    if changelog and needs[0] in ("sum", "moments") and pa.types.is_floating(columns.field(call.argument).type):
        needs = (*_FINITE_AND_NOT, "count") if needs[0] == "sum" else ("finite moments", *_NOT_FINITE)
    return tuple(_accumulator(function, call, columns) for function in needs)


def _users_accumulator(call: AggregateCall, user: UsersCalls) -> Accumulator:
    arguments = listed_columns(call.arguments)
    name = f"__user {call.function}({'distinct ' if call.distinct else ''}{arguments})"
    return Accumulator(
        name=name + (f" where {call.filter}" if call.filter else ""),
        function="user",
        argument=None,
        filter=call.filter,
        distinct=call.distinct,
        type=user.type,
        arguments=call.arguments,
        user=user,
    )


def listed_columns(names: Sequence[str]) -> str:
    """Return the names in one unambiguous text."""
    return ", ".join(name if name.isidentifier() else f"`{name.replace('`', '``')}`" for name in names)


def _accumulator(function: str, call: AggregateCall, columns: pa.Schema) -> Accumulator:
    distinct = call.distinct and function not in ("min", "max")
    name = f"__{function}({'distinct ' if distinct else ''}{call.argument or '*'})"
    name += f" with {call.separator!r}" if call.separator is not None else ""
    name += f" where {call.filter}" if call.filter else ""
    kind = pa.int64()
    if call.argument and function != "count" and function not in _NOT_FINITE:
        argument = columns.field(call.argument).type
        if function == "max" and pa.types.is_floating(argument):
            name += " or NaN"  # earlier versions ignored NaN in a maximum, and stored it as __max(...)
        if function == "array":
            kind = pa.list_(argument)
        elif function == "multiset":
            kind = pa.map_(argument, pa.int32())
        elif function in _MOMENTS:
            kind = moments.TYPE
        elif function not in ("sum", "finite"):
            kind = argument
        elif pa.types.is_floating(argument):
            kind = pa.float64()
        elif pa.types.is_decimal(argument):
            kind = pa.decimal128(38, argument.scale)
    return Accumulator(
        name=name,
        function=function,
        argument=call.argument,
        filter=call.filter,
        distinct=distinct,
        separator=call.separator or "",
        type=kind,
    )


def function_rows(accumulator: Accumulator, rows: pa.Table, groups: Int64s, weights: Int64s | None) -> GivenRows:
    """Return the input of the user-defined function behind ``accumulator`` for ``rows``."""
    arguments = tuple(rows[name].combine_chunks() for name in accumulator.arguments)
    used = used_rows(accumulator.filter, rows)
    return GivenRows(groups=groups, arguments=arguments, used=used, weights=weights)


def used_rows(filter_: str | None, rows: pa.Table) -> Mask:
    """Return a mask of the ``rows`` for which the column ``filter_`` is true; all rows if it is None."""
    if filter_ is None:
        return np.ones(rows.num_rows, np.bool_)
    used: Mask = np.asarray(pc.fill_null(rows[filter_], False))
    return used


def folded_anew(accumulator: Accumulator, rows: pa.Table, groups: Int64s) -> pa.Array:
    """Return the accumulators of a user-defined function for new groups, whose rows are inserts only."""
    assert accumulator.user is not None
    live = np.zeros(int(groups.max(initial=-1)) + 1, np.bool_)
    user_rows = function_rows(accumulator, rows, groups, None)
    return accumulator.user.folded(user_rows, pa.nulls(len(live), accumulator.type), live)


def contribution(accumulator: Accumulator, rows: pa.Table, weights: Int64s | None) -> pa.Array:
    """Return what each row adds to ``accumulator``: a weighted number, or else the value (NULL: nothing).

    ``weights`` are +1 and -1, or None if all are +1.
    """
    used = rows[accumulator.filter] if accumulator.filter else None
    if accumulator.function == "count":
        numbers = np.ones(rows.num_rows, np.int64) if weights is None else weights
        if accumulator.argument and rows[accumulator.argument].null_count:
            numbers = numbers * np.asarray(pc.is_valid(rows[accumulator.argument]))
        if used is not None:
            numbers = numbers * np.asarray(pc.fill_null(used, False))
        return pa.array(numbers)
    values = rows[accumulator.argument].combine_chunks()
    if accumulator.function == "array":
        return one_each(values, used_rows(accumulator.filter, rows))
    if used is not None:
        values = pc.if_else(pc.fill_null(used, False), values, pa.scalar(None, values.type)).combine_chunks()
    if accumulator.is_multiset:
        return counted_each(values, np.ones(len(values), np.int64) if weights is None else weights, accumulator.type)
    if accumulator.is_moments:
        numbers = pc.cast(values, pa.float64(), safe=False)
        if accumulator.function == "finite moments":
            numbers = pc.if_else(pc.is_finite(numbers), numbers, pa.scalar(None, pa.float64()))
        return moments.each(numbers, weights)
    if not accumulator.is_linear:
        return values
    if accumulator.function in _NOT_FINITE:
        is_match = np.asarray(pc.fill_null(_is_value(values, _NOT_FINITE[accumulator.function]), False))
        return pa.array(is_match.astype(np.int64) if weights is None else is_match * weights)
    values = pc.cast(values, accumulator.type)
    if accumulator.function == "finite":
        values = pc.if_else(pc.is_finite(values), values, pa.scalar(0.0))
    if pa.types.is_decimal(accumulator.type):  # NULL would stand for a lost sum
        values = _zero_for_null(values, accumulator.type)
    if weights is not None and len(weights) and weights.min() < 0:
        if pa.types.is_decimal(accumulator.type):
            values = pc.if_else(pa.array(weights < 0), pc.negate(values), values)
        else:
            values = pc.multiply(values, pc.cast(pa.array(weights), accumulator.type))
    return values


def _is_value(values: pa.Array, wanted: float) -> pa.Array:
    if math.isnan(wanted):
        return pc.is_nan(values)
    return pc.equal(values, pa.scalar(wanted, values.type))


def summed(
    groups: Int64s, accumulators: Sequence[Accumulator], parts: Sequence[pa.Array], size: int | None = None
) -> list[pa.Array]:
    """Fold the contributions ``parts`` for each of ``size`` groups; if ``size`` is None, for all groups that occur.

    A linear accumulator without a contribution is 0, any other is NULL. A DECIMAL sum with too many digits is NULL.
    """
    size = int(groups.max(initial=-1)) + 1 if size is None else size
    return [_summed(groups, a, part, size) for a, part in zip(accumulators, parts, strict=True)]


def _summed(groups: Int64s, accumulator: Accumulator, part: pa.Array, size: int) -> pa.Array:
    if accumulator.function == "list":
        return _joined(groups, part, size, accumulator)
    if accumulator.function == "array":
        return concatenated(groups, part, size)
    if accumulator.function in ("first", "last"):
        return _at_an_end(groups, part, size, first=accumulator.function == "first")
    if accumulator.is_moments:
        return moments.folded_moments(groups, part, size)
    if accumulator.is_multiset:
        return added(groups, part, size)
    if accumulator.is_linear and not pa.types.is_decimal(accumulator.type):
        # About twenty times as fast as Arrow's group_by, because the groups are already numbered.
        values = np.asarray(_zero_for_null(part, accumulator.type))
        if pa.types.is_floating(accumulator.type):
            return pa.array(np.bincount(groups, values, size))
        totals = np.zeros(size, np.int64)
        np.add.at(totals, groups, values)
        return pa.array(totals)
    fold = "sum" if accumulator.is_linear else accumulator.function
    if fold == "sum" and not _sums_fit(part):
        part = pc.cast(part, pa.decimal256(76, accumulator.type.scale))
    table = pa.table([pa.array(groups), part], ["group", "part"])
    kept = pc.ScalarAggregateOptions(skip_nulls=fold != "sum")
    folded = table.group_by("group", use_threads=False).aggregate([("part", fold, kept)])
    place = np.full(size, -1, np.int64)
    place[folded["group"].to_numpy()] = np.arange(folded.num_rows)
    column = folded[f"part_{fold}"].combine_chunks().take(pa.array(place, mask=place < 0))
    if accumulator.is_linear and (place < 0).any():
        column = pc.if_else(pa.array(place < 0), pa.scalar(Decimal(0), column.type), column)
    if fold == "max" and pa.types.is_floating(part.type):  # Arrow ignores NaN
        no_number = np.asarray(pc.fill_null(pc.is_nan(part), False))
        if no_number.any():
            column = _or_nan(column, pa.array(np.bincount(groups[no_number], minlength=size) > 0))
    return _fitting(column, accumulator.type) if accumulator.is_linear else column


def _at_an_end(groups: Int64s, values: pa.Array, size: int, *, first: bool) -> pa.Array:
    """Return the first or the last value of each of ``size`` groups that is not NULL, of any type."""
    valid_rows = np.flatnonzero(np.asarray(values.is_valid()))
    place = np.full(size, -1, np.int64)
    in_order = valid_rows[::-1] if first else valid_rows
    place[groups[in_order]] = in_order  # numpy keeps the last of several values for one place
    return values.take(pa.array(place, mask=place < 0))


def _or_nan(column: pa.Array, no_number: pa.Array) -> pa.Array:
    return pc.if_else(no_number, pa.scalar(math.nan, column.type), column)


def _sums_fit(numbers: pa.Array) -> bool:
    """Return True if no sum of any of these decimals exceeds 38 digits."""
    ends = pc.min_max(numbers).as_py()
    most = max((abs(end) for end in ends.values() if end is not None), default=Decimal(0))
    return most.scaleb(numbers.type.scale) * len(numbers) < 10**38


def _fitting(numbers: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return decimals as ``kind``, which has the same scale; NULL where they have too many digits."""
    if numbers.type == kind:
        return numbers
    most = pa.scalar(Decimal(10 ** (kind.precision - kind.scale)), pa.decimal256(kind.precision - kind.scale + 1, 0))
    return pc.cast(pc.if_else(pc.less(pc.abs(numbers), most), numbers, pa.scalar(None, numbers.type)), kind)


def _joined(groups: Int64s, texts: pa.Array, size: int, accumulator: Accumulator) -> pa.Array:
    """Return the joined texts of each of ``size`` groups, in their order; NULL for a group without texts."""
    valid_rows = np.flatnonzero(np.asarray(pc.is_valid(texts)))
    table = pa.table([pa.array(groups[valid_rows]), texts.take(valid_rows)], ["group", "text"])
    lists = table.group_by("group", use_threads=False).aggregate([("text", "list")])
    place = np.full(size, -1, np.int64)
    place[lists["group"].to_numpy()] = np.arange(lists.num_rows)
    joined = pc.binary_join(lists["text_list"].combine_chunks(), accumulator.separator)
    return pc.cast(joined.take(pa.array(place, mask=place < 0)), accumulator.type)


def _zero_for_null(column: pa.Array, kind: pa.DataType) -> pa.Array:
    return pc.fill_null(column, pa.scalar(0, pa.int64()).cast(kind))


def known(accumulator: Accumulator, stored: pa.Array, live: pa.Array) -> pa.Array:
    """Return ``stored`` accumulators for :func:`combine`: a DECIMAL sum is 0 unless its group is ``live``.

    Only in a live group does NULL stand for a lost sum.
    """
    if not (accumulator.is_linear and pa.types.is_decimal(accumulator.type)):
        return stored
    return pc.if_else(live, stored, pa.scalar(Decimal(0), accumulator.type))


_NUMBERS = {pa.bool_(): pa.int8(), pa.timestamp("us", "UTC"): pa.int64()}
"""Types that Arrow orders per group but not element by element, each with an integer type of the same order."""


def combine(accumulator: Accumulator, old: pa.Array, change: pa.Array) -> pa.Array:
    """Combine the ``old`` accumulators (:func:`known`) with the change of a batch; return the new ones."""
    if accumulator.is_extreme:
        fold = pc.min_element_wise if accumulator.function == "min" else pc.max_element_wise
        number = _NUMBERS.get(accumulator.type)
        if number is not None:
            return pc.cast(fold(pc.cast(old, number), pc.cast(change, number)), accumulator.type)
        extreme = fold(old, change)
        if accumulator.function == "max" and pa.types.is_floating(accumulator.type):
            extreme = _or_nan(extreme, pc.or_(*(pc.fill_null(pc.is_nan(values), False) for values in (old, change))))
        return extreme
    if accumulator.is_moments:
        return moments.combined(old, change)
    if accumulator.is_multiset:
        return added(np.tile(np.arange(len(old)), 2), pa.concat_arrays([old, change]), len(old))
    if not accumulator.is_linear:
        return _in_order(accumulator, old, change)
    if pa.types.is_decimal(accumulator.type):
        # Arrow widens the precision of a decimal sum by one, beyond what 128 bits may declare.
        wide = pa.decimal256(38, accumulator.type.scale)
        return _fitting(pc.add(pc.cast(old, wide), pc.cast(change, wide)), accumulator.type)
    return pc.add(_zero_for_null(old, accumulator.type), change)


def _in_order(accumulator: Accumulator, old: pa.Array, change: pa.Array) -> pa.Array:
    if accumulator.function == "first":
        return pc.coalesce(old, change)
    if accumulator.function == "last":
        return pc.coalesce(change, old)
    if accumulator.function == "array":
        return concatenated(np.tile(np.arange(len(old)), 2), pa.concat_arrays([old, change]), len(old))
    return pc.coalesce(pc.binary_join_element_wise(old, change, accumulator.separator), old, change)


def result(
    call: AggregateCall,
    kind: pa.DataType,
    accumulators: Sequence[Accumulator],
    state: Mapping[str, pa.Array],
    wanted: Mask,
) -> pa.Array:
    """Return the value of ``call`` as Arrow type ``kind``, from its ``accumulators``, which are in ``state`` by name.

    A user-defined function is called only for the groups that are ``wanted``.
    """
    needed = [state[accumulator.name] for accumulator in accumulators]
    if (user := accumulators[0].user) is not None:
        return user.values(needed[0], wanted)
    if call.function == "COUNT":
        return pc.fill_null(needed[0], 0)
    if call.function in VARIANCES:
        return _variance(*VARIANCES[call.function], *needed)
    if call.function == "COLLECT":
        return pc.fill_null(needed[0], pa.scalar([], kind))
    if call.function not in ("SUM", "AVG"):
        return pc.cast(needed[0], kind)
    *parts, count = needed
    total = parts[0] if len(parts) == 1 else _with_others(*parts)
    empty = pc.or_kleene(pc.equal(pc.fill_null(count, 0), 0), pc.is_null(total))
    value = _narrow(total, kind) if call.function == "SUM" else _average(total, count, kind)
    return pc.if_else(empty, pa.scalar(None, kind), value)


def _variance(less: int, root: bool, parts: pa.Array, *others: pa.Array) -> pa.Array:
    """Return a variance, or its root; NaN for a group with values that are not finite, counted in ``others``."""
    value = moments.variance(parts, less)
    if root:
        value = pc.sqrt(value)
    if not others:
        return value
    odd = np.sum([np.asarray(pc.fill_null(count, 0)) for count in others], axis=0)
    number = odd + np.asarray(pc.fill_null(pc.struct_field(parts, [0]), 0))
    value = _or_nan(value, pa.array(odd > 0))
    return pc.if_else(pa.array(number > less), value, pa.scalar(None, value.type))


def _with_others(total: pa.Array, *counts: pa.Array) -> pa.Array:
    """Add NaN and the infinities to a sum of finite numbers, where their ``counts`` are positive."""
    for value, count in zip(_NOT_FINITE.values(), counts, strict=True):
        some = pc.greater(pc.fill_null(count, 0), 0)
        total = pc.if_else(some, pc.add(total, pa.scalar(value)), total)
    return total


def _narrow(total: pa.Array, kind: pa.DataType) -> pa.Array:
    # Integer sums wrap around at the width of their type.
    return pc.cast(total, kind, safe=False)


def _average(total: pa.Array, count: pa.Array, kind: pa.DataType) -> pa.Array:
    divisor = pc.if_else(pc.equal(pc.fill_null(count, 0), 0), 1, pc.fill_null(count, 1))
    if pa.types.is_integer(kind):
        return _narrow(pc.divide(_zero_for_null(total, pa.int64()), divisor), kind)
    if pa.types.is_decimal(kind):
        wide = pc.divide(pc.cast(total, pa.decimal256(38, total.type.scale)), pc.cast(divisor, pa.decimal256(19, 0)))
        return _fitting(pc.round(wide, ndigits=kind.scale, round_mode="half_towards_infinity"), kind)
    return pc.cast(pc.divide(total, pc.cast(divisor, pa.float64())), kind)
