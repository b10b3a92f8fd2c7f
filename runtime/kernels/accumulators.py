"""Accumulators of group aggregates: what is stored per group, how a micro-batch changes it, what it yields.

COUNT, SUM and AVG are linear: the change is a weighted sum over the batch, whatever its mix of row kinds; DOUBLE and
DECIMAL are added row by row where that matters (:mod:`hintplan.runtime.kernels.in_steps`). Under retraction a sum of
floating-point numbers is that of the finite ones, with counts of NaN and of either infinity beside it, which could not
be subtracted again. MIN and MAX keep the extreme, NaN being greater than all numbers; under retraction they and
DISTINCT calls also need the values themselves (:mod:`hintplan.runtime.kernels.values`). Variances and deviations come
of the mean and the squared distances from it (:mod:`hintplan.runtime.kernels.folds.moments`). COLLECT keeps how often
there is each value, which is linear, too (:mod:`hintplan.runtime.kernels.folds.multisets`). FIRST_VALUE, LAST_VALUE,
LISTAGG and ARRAY_AGG go by the order in which rows come, and all but ARRAY_AGG pass over NULL; under retraction or
DISTINCT they need the values in that order (:mod:`hintplan.runtime.kernels.ordered_values`). Result types and NULL
rules are Flink's: AVG of an integer is truncated to that integer type, integer sums wrap around, AVG of a DECIMAL
rounds half up, SUM of no values is NULL. A sum of DECIMAL that needs more than 38 digits is NULL, and stays so as long
as there is the group: its digits are lost, and Flink's sum of only the values that come after it a wrong one. An
aggregate function of the user's has one accumulator, of the type that it declares, and is called with NULLs, too; what
calls it is handed in.
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
    """Rows with which an aggregate function of the user's is called: the group of each, and its arguments.

    It is called for those that are ``used``. ``weights`` are +1 and -1, None for all +1.
    """

    groups: Int64s
    arguments: tuple[pa.Array, ...]
    used: Mask
    weights: Int64s | None = None

    def tuples(self) -> list[tuple[Any, ...]]:
        """The arguments of each row, as Python values."""
        if not self.arguments:
            return [()] * len(self.groups)
        return list(zip(*(a.to_pylist(maps_as_pydicts="strict") for a in self.arguments), strict=True))


class UsersCalls(Protocol):
    """Calls of an aggregate function of the user's, on columns of accumulators of ``type``; picklable.

    ``old`` has an accumulator for each group, which counts where the group is ``live``.
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
    """One stored number or value per group: ``function`` of ``argument`` where ``filter``.

    ``function`` is count, sum, moments, multiset, min, max, first, last, array or list, whose texts are joined with
    ``separator``; or finite and finite moments, of the finite values, and nan, inf and -inf, which count the others. No
    ``argument`` counts rows.
    ``type`` is the Arrow type in state: int64, float64, decimal128(38, s), a list for array, a map for multiset, or the
    argument's own for min, max, first, last and list. A function of the user's has ``arguments`` instead, and what
    calls it in ``user``.
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
        """Whether it depends on the order of rows."""
        return self.function in ("first", "last") or self.is_of_all

    @property
    def is_of_all(self) -> bool:
        """Whether it shows all values, in their order."""
        return self.function in ("list", "array")

    @property
    def is_moments(self) -> bool:
        """Whether it is what variances and deviations come of."""
        return self.function in _MOMENTS

    @property
    def is_multiset(self) -> bool:
        """Whether it says how often there is each value."""
        return self.function == "multiset"

    @property
    def keeps_null(self) -> bool:
        """Whether NULL is a value to it as others are, and not passed over."""
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
    """The accumulators that ``call`` needs; equal needs of several calls have equal names.

    ``changelog`` says that rows may be taken back. ``users`` are the aggregate functions of the user's.
    """
    if call.is_users:
        return (_users_accumulator(call, users[call.function]),)
    needs = _NEEDS[call.function]
    if changelog and needs[0] in ("sum", "moments") and pa.types.is_floating(columns.field(call.argument).type):
        needs = (*_FINITE_AND_NOT, "count") if needs[0] == "sum" else ("finite moments", *_NOT_FINITE)
    return tuple(_accumulator(function, call, columns) for function in needs)


def _users_accumulator(call: AggregateCall, user: UsersCalls) -> Accumulator:
    given = listed_columns(call.arguments)
    name = f"__user {call.function}({'distinct ' if call.distinct else ''}{given})"
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
    """The names in one text, from which no other names have the same."""
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
            name += " or NaN"  # earlier versions stored a maximum that had passed over NaN as __max(...)
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


def given_rows(accumulator: Accumulator, rows: pa.Table, groups: Int64s, weights: Int64s | None) -> GivenRows:
    """The ``rows`` with which the function of the user's behind ``accumulator`` is called."""
    arguments = tuple(rows[name].combine_chunks() for name in accumulator.arguments)
    used = used_rows(accumulator.filter, rows)
    return GivenRows(groups=groups, arguments=arguments, used=used, weights=weights)


def used_rows(filter_: str | None, rows: pa.Table) -> Mask:
    """Which of ``rows`` meet the condition that the column ``filter_`` holds."""
    if filter_ is None:
        return np.ones(rows.num_rows, np.bool_)
    used: Mask = np.asarray(pc.fill_null(rows[filter_], False))
    return used


def folded_anew(accumulator: Accumulator, rows: pa.Table, groups: Int64s) -> pa.Array:
    """The accumulators of a function of the user's for groups that have no rows but these, which are only added."""
    assert accumulator.user is not None
    live = np.zeros(int(groups.max(initial=-1)) + 1, np.bool_)
    given = given_rows(accumulator, rows, groups, None)
    return accumulator.user.folded(given, pa.nulls(len(live), accumulator.type), live)


def contribution(accumulator: Accumulator, rows: pa.Table, weights: Int64s | None) -> pa.Array:
    """What each row adds to ``accumulator``: a weighted number, or else the value (NULL: nothing).

    ``weights`` are +1 and -1, None for all +1.
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
        found = np.asarray(pc.fill_null(_is_value(values, _NOT_FINITE[accumulator.function]), False))
        return pa.array(found.astype(np.int64) if weights is None else found * weights)
    values = pc.cast(values, accumulator.type)
    if accumulator.function == "finite":
        values = pc.if_else(pc.is_finite(values), values, pa.scalar(0.0))
    if pa.types.is_decimal(accumulator.type):  # NULL is a sum that is lost
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
    """Fold the contributions ``parts`` for each of ``size`` groups, of all that there are if it is None.

    A linear accumulator without a contribution is 0, any other NULL. A sum of DECIMAL with too many digits is NULL.
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
        return moments.folded(groups, part, size)
    if accumulator.is_multiset:
        return added(groups, part, size)
    if accumulator.is_linear and not pa.types.is_decimal(accumulator.type):
        # Some twenty times as fast as Arrow's group_by, for the groups are numbered already.
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
    if fold == "max" and pa.types.is_floating(part.type):  # Arrow passes over NaN
        no_number = np.asarray(pc.fill_null(pc.is_nan(part), False))
        if no_number.any():
            column = _or_nan(column, pa.array(np.bincount(groups[no_number], minlength=size) > 0))
    return _fitting(column, accumulator.type) if accumulator.is_linear else column


def _at_an_end(groups: Int64s, values: pa.Array, size: int, *, first: bool) -> pa.Array:
    """The first or the last value of each of ``size`` groups that is not NULL, of any type."""
    there = np.flatnonzero(np.asarray(values.is_valid()))
    place = np.full(size, -1, np.int64)
    in_order = there[::-1] if first else there
    place[groups[in_order]] = in_order  # of several values for one place, the last stays
    return values.take(pa.array(place, mask=place < 0))


def _or_nan(column: pa.Array, no_number: pa.Array) -> pa.Array:
    return pc.if_else(no_number, pa.scalar(math.nan, column.type), column)


def _sums_fit(numbers: pa.Array) -> bool:
    """Whether no sum of some of these decimals has more than 38 digits."""
    ends = pc.min_max(numbers).as_py()
    most = max((abs(end) for end in ends.values() if end is not None), default=Decimal(0))
    return most.scaleb(numbers.type.scale) * len(numbers) < 10**38


def _fitting(numbers: pa.Array, kind: pa.DataType) -> pa.Array:
    """Decimals as ``kind``, of the same scale; NULL where they have too many digits."""
    if numbers.type == kind:
        return numbers
    most = pa.scalar(Decimal(10 ** (kind.precision - kind.scale)), pa.decimal256(kind.precision - kind.scale + 1, 0))
    return pc.cast(pc.if_else(pc.less(pc.abs(numbers), most), numbers, pa.scalar(None, numbers.type)), kind)


def _joined(groups: Int64s, texts: pa.Array, size: int, accumulator: Accumulator) -> pa.Array:
    """The texts of each of ``size`` groups in one, in their order; NULL of none."""
    there = np.flatnonzero(np.asarray(pc.is_valid(texts)))
    table = pa.table([pa.array(groups[there]), texts.take(there)], ["group", "text"])
    lists = table.group_by("group", use_threads=False).aggregate([("text", "list")])
    place = np.full(size, -1, np.int64)
    place[lists["group"].to_numpy()] = np.arange(lists.num_rows)
    joined = pc.binary_join(lists["text_list"].combine_chunks(), accumulator.separator)
    return pc.cast(joined.take(pa.array(place, mask=place < 0)), accumulator.type)


def _zero_for_null(column: pa.Array, kind: pa.DataType) -> pa.Array:
    return pc.fill_null(column, pa.scalar(0, pa.int64()).cast(kind))


def known(accumulator: Accumulator, stored: pa.Array, live: pa.Array) -> pa.Array:
    """What :func:`combine` goes on from: what is ``stored``, which is NULL where the group is not ``live``."""
    if not (accumulator.is_linear and pa.types.is_decimal(accumulator.type)):
        return stored
    return pc.if_else(live, stored, pa.scalar(Decimal(0), accumulator.type))


_NUMBERS = {pa.bool_(): pa.int8(), pa.timestamp("us", "UTC"): pa.int64()}
"""The types that Arrow orders per group, but not element by element, and others of the same order."""


def combine(accumulator: Accumulator, old: pa.Array, change: pa.Array) -> pa.Array:
    """The new accumulator from the ``old`` one (:func:`known`) and the batch's change."""
    if accumulator.is_extreme:
        fold = pc.min_element_wise if accumulator.function == "min" else pc.max_element_wise
        number = _NUMBERS.get(accumulator.type)
        if number is not None:
            return pc.cast(fold(pc.cast(old, number), pc.cast(change, number)), accumulator.type)
        extreme = fold(old, change)
        if accumulator.function == "max" and pa.types.is_floating(accumulator.type):
            extreme = _or_nan(extreme, pc.or_(*(pc.fill_null(pc.is_nan(each), False) for each in (old, change))))
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
    """The value of ``call`` as Arrow type ``kind``, from its ``accumulators``, which are in ``state`` by name.

    A function of the user's is asked only for the groups that are ``wanted``.
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


def _variance(less: int, root: bool, found: pa.Array, *others: pa.Array) -> pa.Array:
    """A variance, or its root; NaN if there are ``others``, values that are not finite, of which these are counts."""
    value = moments.variance(found, less)
    if root:
        value = pc.sqrt(value)
    if not others:
        return value
    odd = np.sum([np.asarray(pc.fill_null(count, 0)) for count in others], axis=0)
    number = odd + np.asarray(pc.fill_null(pc.struct_field(found, [0]), 0))
    value = _or_nan(value, pa.array(odd > 0))
    return pc.if_else(pa.array(number > less), value, pa.scalar(None, value.type))


def _with_others(total: pa.Array, *counts: pa.Array) -> pa.Array:
    """A sum of finite numbers with the values that are not, of each of which there are so many."""
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
