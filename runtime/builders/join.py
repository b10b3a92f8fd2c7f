"""A join: in streams the kernel on the engine, in batch jobs Spark's own join.

The kernel of an inner join checks the parts of its condition that have the same meaning in Arrow as in SQL. Spark
checks the other parts above the join. The planner puts simple conditions into the join, and the rest of ON and WHERE
into a calc above it. An example is a condition that two times are at most an interval apart. If only that calc reads
the join, the kernel also checks the calc's comparisons, so that pairs which fail them never leave the kernel. The calc,
the plan and the state remain unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import TypeVar

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hintplan.plans.declarations.tables import Column
from hintplan.plans.operators import IntervalJoin, Join, JoinColumn, JoinKey, TemporalJoin, WindowJoin
from hintplan.runtime.builders.bound import state_schema
from hintplan.runtime.builders.builder import OperatorBuilder, on_engine
from hintplan.runtime.builders.calc import keeping
from hintplan.runtime.builders.edges import Condition, Edges
from hintplan.runtime.engine.marks import MARK_COLUMNS
from hintplan.runtime.engine.rows import EdgeRows
from hintplan.runtime.expressions.allowed import check_expression
from hintplan.runtime.expressions.checked import CheckedExpression, is_conjunction
from hintplan.runtime.expressions.comparable import comparable_column, with_normal_floats
from hintplan.runtime.expressions.condition import compile_join_condition
from hintplan.runtime.expressions.exact import Split, exact_below, split_condition
from hintplan.runtime.expressions.spark_columns import analysed, refusing, spark_expression
from hintplan.runtime.operator import KIND
from hintplan.runtime.operators.join import COUNTS
from hintplan.runtime.spark.names import quoted

_SPARK_TYPES = {"semi": "left_semi", "anti": "left_anti"}
AnyJoin = Join | WindowJoin | IntervalJoin | TemporalJoin
_AtOnce = TypeVar("_AtOnce", Join, IntervalJoin)


def with_condition_above(join: _AtOnce, above: Condition | None, columns: Mapping[str, tuple[Column, ...]]) -> _AtOnce:
    """Return ``join`` with the parts of its only reader's condition that it can check.

    ``columns`` are the columns of each operator. Raise RunError for a condition that may not run.
    """
    if above is None or join.join_type != "inner":
        return join
    output_columns: dict[tuple[str, ...], str] = {(column.name,): column.name for column in join.output}
    path = f"operators.{above.operator}.filter"
    filter = check_expression(above.text, output_columns, operator=above.operator, path=path)
    left, right = (state_schema(columns[source]) for source in join.inputs)
    checkable = exact_below(filter, join.output, left, right)
    if checkable is None:
        return join
    if join.condition is None:
        return replace(join, condition=checkable)
    held = join.condition if is_conjunction(join.condition) else f"({join.condition})"
    return replace(join, condition=f"{held} AND {checkable}")


def _stream(operator: Join, inputs: Sequence[EdgeRows], edges: Edges) -> EdgeRows:
    operator = with_condition_above(operator, edges.conditions_above.get(operator.id), edges.columns)
    return joined_on_engine(operator, inputs, edges, counts=COUNTS)


def joined_on_engine(
    operator: AnyJoin, inputs: Sequence[EdgeRows], edges: Edges, *, counts: Sequence[str] = ()
) -> EdgeRows:
    """Return the output of the kernel of a join; ``counts`` names its metrics.

    Raise RunError for a condition that may not run.
    """
    if operator.condition is None:
        return on_engine(operator, inputs, edges, counts=counts)
    carried: dict[tuple[str, ...], str] = {
        (side, name): f"__{side}_{name}"
        for side, source in zip("lr", operator.inputs, strict=True)
        for name in edges.names(source)
    }
    path = f"operators.{operator.id}.condition"
    checked = check_expression(operator.condition, carried, operator=operator.id, path=path)
    left, right = (state_schema(edges.columns[source]) for source in operator.inputs)
    # The output of other joins depends on whether a row has a partner, so the kernel checks the whole condition.
    is_inner = operator.join_type == "inner"
    within, above = split_condition(checked, left, right) if is_inner else Split(checked, None)
    condition = None if within is None else compile_join_condition(within, left, right)
    operator = replace(operator, condition=None if within is None else within.text)
    if above is None:
        return on_engine(operator, inputs, edges, counts=counts, condition=condition)
    extra = _extra_columns(operator, above, carried, edges)
    wide = replace(operator, output=(*operator.output, *extra))
    rows = on_engine(wide, inputs, edges, counts=counts, condition=condition)
    pairs = rows.frame
    metadata = [*([KIND] if edges.changelog[operator.id] else []), *(MARK_COLUMNS.names if rows.marks else ())]
    columns = (quoted(column.name) for column in operator.output)
    with refusing(operator.id, path):
        holds = spark_expression(pairs, above)
        chosen = (keeping(pairs, holds) if rows.marks else pairs.where(holds)).select(*columns, *metadata)
        _ = analysed(chosen)
    return EdgeRows(lambda: chosen, marks=rows.marks)


def _extra_columns(
    operator: AnyJoin, checked: CheckedExpression, carried: Mapping[tuple[str, ...], str], edges: Edges
) -> tuple[JoinColumn, ...]:
    """Return the columns that Spark needs above the join to check the other parts of the condition."""
    types = {
        side: {column.name: column.type for column in edges.columns[source]}
        for side, source in zip("lr", operator.inputs, strict=True)
    }
    return tuple(
        JoinColumn(
            name=carried[side, name], type=types[side][name], side="left" if side == "l" else "right", column=name
        )
        for side, name in checked.columns
    )


def _batch(operator: Join, inputs: Sequence[DataFrame], edges: Edges) -> DataFrame:
    return joined(operator, operator.keys, inputs, edges)


def joined(
    operator: AnyJoin,
    keys: Sequence[JoinKey],
    inputs: Sequence[DataFrame],
    edges: Edges,
    *,
    further: Sequence[SparkColumn] = (),
) -> DataFrame:
    """Join by ``=`` on ``keys``, so that NULL never matches, by the rest of the condition, and by ``further`` ones.

    These read columns by :func:`side_column`.
    """
    # Columns get unique names first: both sides may have a column `id`, or even be the same DataFrame.
    sides = {side: (frame, edges.names(name)) for side, frame, name in zip("lr", inputs, operator.inputs, strict=True)}
    named = {
        side: with_normal_floats(frame).select(*(F.col(quoted(name)).alias(f"__{side}_{name}") for name in names))
        for side, (frame, names) in sides.items()
    }
    conditions = [
        comparable_column(named["l"], f"__l_{key.left}") == comparable_column(named["r"], f"__r_{key.right}")
        for key in keys
    ]
    conditions += further
    if operator.condition is not None:
        carried: dict[tuple[str, ...], str] = {
            (side, name): f"__{side}_{name}" for side, (_, names) in sides.items() for name in names
        }
        path = f"operators.{operator.id}.condition"
        checked = check_expression(operator.condition, carried, operator=operator.id, path=path)
        pairs = named["l"].crossJoin(named["r"])
        with refusing(operator.id, path):
            conditions.append(spark_expression(pairs, checked))
            analysed(pairs.where(conditions[-1]))
    on = reduce(lambda a, b: a & b, conditions) if conditions else F.lit(True)
    matches = named["l"].join(named["r"], on, _SPARK_TYPES.get(operator.join_type, operator.join_type))
    return matches.select(
        *(side_column(column.side[0], column.column).alias(column.name) for column in operator.output)
    )


def side_column(side: str, name: str) -> SparkColumn:
    """Return a column of the left (``l``) or the right (``r``) input, as :func:`joined` names it."""
    return F.col(quoted(f"__{side}_{name}"))


BUILDER = OperatorBuilder(stream=_stream, batch=_batch)
