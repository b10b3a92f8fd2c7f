"""A group aggregate: in streams the kernel on the engine, in batch jobs Spark's own aggregates with the same results.

Types and NULL rules are Flink's:

- An integer sum wraps around at the width of its type.
- AVG of an integer is truncated to that type.
- SUM and AVG of no values are NULL.
- SUM and AVG of DECIMAL are NULL if they need more than 38 digits.
- NaN is greater than all numbers.

Spark's own sum of BIGINT either fails at an overflow or returns NULL, so a sum is added up in halves of 32 bits. In
batch jobs FIRST_VALUE, LAST_VALUE, LISTAGG, ARRAY_AGG and the user's functions depend on the order in which Spark
happens to read the rows. For ARRAY_AGG and the user's functions, all rows of a group are in memory together.

    native_aggregate(("country",), aggregate.aggregates, frame, {"country": "STRING", "amount": "BIGINT"})
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import partial

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import DecimalType

from hintplan.plans.declarations.computations import VARIANCES
from hintplan.plans.declarations.types import DataType, parse_type
from hintplan.plans.operators import Aggregate, AggregateCall, Stateful
from hintplan.runtime.builders.builder import OperatorBuilder, loaded_aggregates, with_state
from hintplan.runtime.builders.edges import Edges
from hintplan.runtime.expressions.comparable import comparable_column, has_map, with_normal_floats
from hintplan.runtime.functions.collected import aggregate_collected
from hintplan.runtime.spark.map_in_arrow import map_in_arrow
from hintplan.runtime.spark.names import named_function, quoted
from hintplan.runtime.types import to_arrow, to_spark

_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_LOW_HALF = 0xFFFFFFFF
_GROUP = "__group"
Made = Callable[[Column], Column]
"""A function that binds an aggregate function of Spark to its rows: a group, or a window."""


def _of_group(function: Column) -> Column:
    return function


def _batch(operator: Aggregate, inputs: Sequence[DataFrame], edges: Edges) -> DataFrame:
    types = {column.name: column.type for column in edges.columns[operator.inputs[0]]}
    return called_aggregate(operator, operator.keys, operator.aggregates, inputs[0], types, edges)


def called_aggregate(
    operator: Stateful,
    keys: Sequence[str],
    calls: Sequence[AggregateCall],
    frame: DataFrame,
    types: Mapping[str, str],
    edges: Edges,
) -> DataFrame:
    """Return the groups of ``frame`` by ``keys`` as :func:`native_aggregate`, with the results of all ``calls``.

    The calls may include the user's functions of ``operator``. The columns are the keys, then the calls.
    """
    users = loaded_aggregates(operator, edges)
    groups = native_aggregate(keys, calls, frame, types)
    if not users:
        return groups
    called = {call.name: (users[call.function], len(call.arguments)) for call in calls if call.is_users}
    columns = {**{key: types[key] for key in keys}, **{call.name: call.type for call in calls}}
    output = pa.schema([(name, to_arrow(kind)) for name, kind in columns.items()])
    run = partial(aggregate_collected, users=called, output=output)
    return map_in_arrow(groups, named_function(run, operator.id), from_arrow_schema(output, prefer_timestamp_ntz=True))


def native_aggregate(
    keys: Sequence[str], calls: Sequence[AggregateCall], frame: DataFrame, types: Mapping[str, str]
) -> DataFrame:
    """Return the groups of ``frame`` by ``keys``, with the results of ``calls``; its columns have ``types``.

    Without keys, the result has one row even if ``frame`` is empty, as in Flink. Arguments of the user's functions are
    collected into lists, for :mod:`hintplan.runtime.functions.collected`.
    """
    frame = with_normal_floats(frame)
    results = [native_call(call, parse_type(types[call.argument]) if call.argument else None) for call in calls]
    if not any(has_map(frame, key) for key in keys):
        columns = [F.col(quoted(key)) for key in keys]
        return frame.groupBy(*columns).agg(*results) if results else frame.select(*columns).distinct()
    # Spark accepts maps as keys, but turns NULLs in them into zeros.
    groups = [comparable_column(frame, key).alias(f"{_GROUP}{place}") for place, key in enumerate(keys)]
    firsts = [F.first(quoted(key)).alias(key) for key in keys]
    return frame.groupBy(*groups).agg(*firsts, *results).drop(*(f"{_GROUP}{place}" for place in range(len(groups))))


def native_call(call: AggregateCall, kind: DataType | None, made: Made = _of_group) -> Column:
    """Return ``call`` of an argument of type ``kind`` as a column.

    ``made`` binds aggregate functions to their rows, by default to a group.
    """
    used = F.col(quoted(call.filter)) if call.filter else None
    value = F.col(quoted(call.argument)) if call.argument else F.lit(1)
    if call.is_users:
        value = F.struct(*(F.col(quoted(name)).alias(f"a{place}") for place, name in enumerate(call.arguments)))
        value = value if call.arguments else F.struct(F.lit(True).alias("row"))
    if used is not None:
        value = F.when(used, value)
    if call.is_users:
        return (F.collect_set if call.distinct else F.collect_list)(value).alias(call.name)
    if kind is None or call.function == "COUNT":
        result = made(F.count_distinct(value) if call.distinct else F.count(value))
    elif call.function in VARIANCES:
        function = call.function.lower()
        number = value.cast("double")
        result = _distinct_variance(call, value) if call.distinct else made(F.call_function(function, number))
    elif call.function == "ARRAY_AGG":
        result = _array(call, used)
    elif call.function == "COLLECT":
        result = _multiset(F.collect_set(value) if call.distinct else F.collect_list(value))
    elif call.function == "LISTAGG":
        result = (F.listagg_distinct if call.distinct else F.listagg)(value, call.separator)
    elif call.function in ("FIRST_VALUE", "LAST_VALUE"):
        result = made((F.first if call.function == "FIRST_VALUE" else F.last)(value, ignorenulls=True))
    elif call.function in ("MIN", "MAX"):
        result = made((F.min if call.function == "MIN" else F.max)(value))
    else:
        decimal = kind.root == "DECIMAL"
        total = _decimal_sum(call, kind, made) if decimal else _sum(value, kind, made, distinct=call.distinct)
        if call.function == "SUM":
            result = _narrowed(total, kind)
        else:
            result = _average(total, made(F.count_distinct(value) if call.distinct else F.count(value)), kind)
    shown = to_spark(call.type)
    return (result.try_cast(shown) if isinstance(shown, DecimalType) else result.cast(shown)).alias(call.name)


def _array(call: AggregateCall, used: Column | None) -> Column:
    """Return all values as an array, with the NULLs that Spark's own function leaves out; NULL for no values."""
    value = F.struct(F.col(quoted(call.argument or "")).alias("value"))
    collected = (F.collect_set if call.distinct else F.collect_list)(value if used is None else F.when(used, value))
    return F.when(F.size(collected) > 0, collected.getField("value"))


def _multiset(values: Column) -> Column:
    """Return how often each of ``values`` occurs: sort them, and measure the runs of equal values.

    The values are never NULL. A NULL behind them ends the last run.

    An array of one element lets a lambda see a column that would otherwise be computed again for each element. A lambda
    does not use variables of the lambda around it: Spark 4.0 would not find a Python function that takes the result.
    """
    entries = F.get(F.transform(F.transform(F.array(F.array_sort(values)), _begins), _runs), F.lit(0))
    return F.map_from_entries(F.filter(entries, lambda run: run.getField("key").isNotNull()))


def _begins(ordered: Column) -> Column:
    """Return the values that differ from the value before them, with their places, and the NULL at the end."""
    null = F.array(F.lit(None))

    def at(value: Column, place: Column) -> Column:
        return F.struct(value.alias("value"), place.alias("place"))

    def after(value: Column, before: Column) -> Column:
        return F.struct(value.alias("value"), F.array(before).alias("before"))

    def is_new(pair: Column) -> Column:
        known = F.array_contains(pair.getField("before"), pair.getField("value").getField("value"))
        return ~F.coalesce(known, F.lit(False))

    pairs = F.zip_with(F.transform(F.concat(ordered, null), at), F.concat(null, ordered), after)
    return F.filter(pairs, is_new).getField("value")


def _runs(begins: Column) -> Column:
    """Return the value and the length of each run."""

    def run(begin: Column, end: Column) -> Column:
        length = end.getField("place") - begin.getField("place")
        return F.struct(begin.getField("value").alias("key"), length.alias("value"))

    return F.zip_with(begins, F.slice(begins, 2, F.size(begins)), run)


def _sum(value: Column, kind: DataType, made: Made, *, distinct: bool) -> Column:
    """Return the sum: of integers as BIGINT that wraps around, of other numbers as DOUBLE."""
    if kind.root == "BIGINT":
        return _wrapped_distinct_sum(value) if distinct else _wrapped_sum(value, made)
    return made(F.sum_distinct(value) if distinct else F.sum(value))


def _distinct_variance(call: AggregateCall, value: Column) -> Column:
    """Return a variance of distinct values.

    Distinct values may be equal as DOUBLE, so they are collected before the cast.
    """
    less, root = VARIANCES[call.function]
    numbers = F.transform(F.collect_set(value), lambda x: x.cast("double"))
    count = F.size(numbers)
    mean = _total(numbers) / count
    variance = _total(F.transform(numbers, lambda x: (x - mean) * (x - mean))) / (count - less)
    return F.when(count > less, F.sqrt(variance) if root else variance)


def _total(numbers: Column) -> Column:
    return F.aggregate(numbers, F.lit(0.0), lambda total, x: total + x)


def _decimal_sum(call: AggregateCall, kind: DataType, made: Made) -> Column:
    """Return a sum with 38 digits, NULL if it needs more.

    PySpark has no function for a ``try_sum`` that is also DISTINCT, so the sum is SQL text.
    """
    value = quoted(call.argument or "")
    if call.filter:
        value = f"CASE WHEN {quoted(call.filter)} THEN {value} END"
    total = made(F.expr(f"try_sum({'DISTINCT ' if call.distinct else ''}{value})"))
    return total.try_cast(f"decimal(38, {kind.scale})")


def _wrapped_sum(value: Column, made: Made) -> Column:
    high = made(F.sum(F.shiftright(value, 32)))
    low = made(F.sum(value.bitwiseAND(F.lit(_LOW_HALF))))
    carried = high + F.shiftright(low, 32)
    return F.shiftleft(carried, 32).bitwiseOR(low.bitwiseAND(F.lit(_LOW_HALF)))


def _wrapped_distinct_sum(value: Column) -> Column:
    # DISTINCT must see whole values, so they are added up as decimals and wrapped at the end.
    total = F.sum_distinct(value.cast("decimal(19, 0)"))
    half = F.lit(Decimal(1 << 63)).cast("decimal(20, 0)")
    return (F.pmod(total + half, half * 2) - half).cast("bigint")


def _narrowed(total: Column, kind: DataType) -> Column:
    bits = _BITS.get(kind.root, 64)
    return total if bits == 64 else F.shiftright(F.shiftleft(total, 64 - bits), 64 - bits)


def _average(total: Column, count: Column, kind: DataType) -> Column:
    if kind.root in _BITS:
        return F.when(count > 0, F.call_function("div", total, count))
    if kind.root == "DECIMAL":
        # The quotient has scale max(6, s) and is rounded half up: Flink's type and rule.
        return F.try_divide(total, count.cast("decimal(20, 0)"))
    return F.when(count > 0, total / count)


BUILDER = OperatorBuilder(stream=with_state(), batch=_batch)
