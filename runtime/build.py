"""Plan -> streaming DataFrames: walks the operators in order and builds each from those it reads.

One builder an operator kind, found in ``BUILDERS``. Scans, calcs and unions are native Spark; operators with state
run in the shell around those of the engine, lookup joins and calls of functions in ``mapInArrow``. Expressions are
checked before Spark sees them. Knows no SQL and no session settings, and starts nothing.

    edges = edges_of(plan, spark, partitions=2, lookups=LookupRun(token="1"))
    frames = build(edges)  # one DataFrame per operator but sinks
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from plans.arrival import told_by_arrival
from plans.carryover import state_lineages
from plans.changelog import output_kinds
from plans.columns import output_columns
from plans.model import (
    Aggregate,
    Calc,
    ChangelogNormalize,
    Column,
    Correlate,
    Expand,
    Join,
    JoinColumn,
    LookupJoin,
    Operator,
    Plan,
    Scan,
    SelectItem,
    Sink,
    SinkMaterialize,
    Stateful,
    Union,
)
from runtime import connectors
from runtime.arithmetic import spark_expression
from runtime.arrival import ARRIVAL
from runtime.expressions import check_expression, quoted
from runtime.functions.apply import apply_function
from runtime.lookup.apply import apply_lookup
from runtime.lookup.plan import LookupRun
from runtime.operator import INSERT, KIND
from runtime.operators import build_operator
from runtime.operators.exact import split_condition
from runtime.operators.schema import state_schema
from runtime.shell.stateful import apply_operator
from runtime.types import to_spark

__all__ = ["BUILDERS", "Edges", "apply_operators", "build", "edges_of"]


_ABSENT = dict(zip((KIND, *ARRIVAL.names), (f"{INSERT}Y", "0L", "''", "0L"), strict=True))
"""What stands beside rows of one input of a union for what only another input's rows have, in Spark SQL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edges:
    """What builders know beside their operator: the columns on each edge, and which edges carry row kinds."""

    spark: SparkSession
    plan: Plan
    columns: Mapping[str, tuple[Column, ...]]
    changelog: Mapping[str, bool]
    partitions: int
    lookups: LookupRun
    lineages: Mapping[str, str] = field(default_factory=dict)
    """What the state of each operator is computed from (:mod:`plans.carryover`); a batch job keeps none."""
    told: frozenset[str] = frozenset()
    """The operators whose rows have the columns of ``ARRIVAL`` (:mod:`plans.arrival`); a batch job needs none."""
    observe_as: Callable[[str], Any] = str
    """What the metrics of an operator are observed as: a stream reports them under its id, a batch job elsewhere."""

    def beside(self, operator_id: str) -> pa.Schema:
        """The columns that rows have beside their data: their kind in a changelog, and when they arrived."""
        kind = [pa.field(KIND, pa.int8())] if self.changelog[operator_id] else []
        return pa.schema([*kind, *(ARRIVAL if operator_id in self.told else [])])

    def names(self, operator_id: str) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns[operator_id])


def edges_of(plan: Plan, spark: SparkSession, *, partitions: int, lookups: LookupRun) -> Edges:
    """What builders need for ``plan``; ``partitions`` as in :func:`runtime.shell.stateful.apply_operator`.

    ``lookups`` is what lookups must know of the run.
    """
    return Edges(
        spark=spark,
        plan=plan,
        columns=output_columns(plan),
        changelog={name: kinds != ("+I",) for name, kinds in output_kinds(plan).items()},
        partitions=partitions,
        lookups=lookups,
        lineages=state_lineages(plan),
        told=told_by_arrival(plan),
    )


def build(edges: Edges) -> dict[str, DataFrame]:
    """The output of each operator but sinks.

    RunError, naming the operator, for an expression that may not run or something that cannot be read.
    """
    frames: dict[str, DataFrame] = {}
    for operator in edges.plan.operators:
        if not isinstance(operator, Sink):
            inputs = [frames[name] for name in operator.inputs]
            frames[operator.id] = BUILDERS[type(operator)](operator, inputs, edges)
    return frames


def apply_operators(operators: Sequence[Operator], frame: DataFrame, *, edges: Edges) -> DataFrame:
    """What ``operators``, each reading the one before it, make of the rows of ``frame``, streamed or not."""
    for operator in operators:
        frame = BUILDERS[type(operator)](operator, [frame], edges)
    return frame


def _scan(operator: Scan, inputs: list[DataFrame], edges: Edges) -> DataFrame:
    table = edges.plan.tables[operator.table]
    return connectors.read(edges.spark, operator.table, table, operator.columns, told=operator.id in edges.told)


def _calc(operator: Calc, inputs: list[DataFrame], edges: Edges) -> DataFrame:
    (frame,) = inputs
    path = f"operators.{operator.id}"
    known: dict[tuple[str, ...], str] = {(name,): name for name in edges.names(operator.inputs[0])}

    def expression(text: str, where: str) -> SparkColumn:
        checked = check_expression(text, known, operator=operator.id, path=f"{path}.{where}")
        return spark_expression(frame, checked.sql)

    def item(index: int, item: SelectItem) -> SparkColumn:
        if item.expression is None:
            return F.col(quoted(item.name))
        computed = expression(item.expression, f"select[{index}].expression")
        return (computed if item.type is None else computed.cast(to_spark(item.type))).alias(item.name)

    if operator.filter is not None:
        frame = frame.where(expression(operator.filter, "filter"))
    selected = [item(index, each) for index, each in enumerate(operator.select)]
    return frame.select(*selected, *edges.beside(operator.id).names)


def _expand(operator: Expand, inputs: list[DataFrame], edges: Edges) -> DataFrame:
    (frame,) = inputs
    types = {column.name: column.type for column in edges.columns[operator.id]}
    digits = {key: 1 << place for place, key in enumerate(reversed(operator.keys))}

    def copy(kept: tuple[str, ...]) -> SparkColumn:
        """The keys and the id of one set."""
        keys = [
            (F.col(quoted(key)) if key in kept else F.lit(None).cast(to_spark(types[key]))).alias(key)
            for key in operator.keys
        ]
        group_id = sum(digit for key, digit in digits.items() if key not in kept)
        return F.struct(*keys, F.lit(group_id).cast("bigint").alias(operator.group_id))

    others = [quoted(name) for name in edges.names(operator.inputs[0]) if name not in operator.keys]
    beside = edges.beside(operator.id).names
    copies = frame.select(*others, *beside, F.inline(F.array(*map(copy, operator.sets))))
    return copies.select(*map(quoted, edges.names(operator.id)), *beside)


def _union(operator: Union, inputs: list[DataFrame], edges: Edges) -> DataFrame:
    data = [quoted(name) for name in edges.names(operator.id)]
    parts: list[DataFrame] = []
    for name, frame in zip(operator.inputs, inputs, strict=True):
        own = edges.beside(name).names
        beside = [F.col(n) if n in own else F.expr(_ABSENT[n]).alias(n) for n in edges.beside(operator.id).names]
        parts.append(frame.select(*data, *beside))
    return reduce(DataFrame.unionAll, parts)


def _join(operator: Join, inputs: list[DataFrame], edges: Edges) -> DataFrame:
    if operator.condition is None:
        return _stateful(operator, inputs, edges)
    sides = dict(zip("lr", operator.inputs, strict=True))
    carried: dict[tuple[str, ...], str] = {
        (side, name): f"__{side}_{name}" for side, source in sides.items() for name in edges.names(source)
    }
    path = f"operators.{operator.id}.condition"
    check_expression(operator.condition, carried, operator=operator.id, path=path)
    if operator.join_type != "inner":
        # Whether a row has a partner decides on its padding, so the condition is part of the operator.
        return _stateful(operator, inputs, edges)
    left, right = (state_schema(operator.id, edges.columns[source]) for source in operator.inputs)
    within, above = split_condition(operator.condition, left, right)
    operator = replace(operator, condition=within)
    if above is None:
        return _stateful(operator, inputs, edges)
    checked = check_expression(above, carried, operator=operator.id, path=path)
    types = {side: {column.name: column.type for column in edges.columns[source]} for side, source in sides.items()}
    extra = tuple(
        JoinColumn(
            name=carried[side, name], type=types[side][name], side="left" if side == "l" else "right", column=name
        )
        for side, name in checked.columns
    )
    joined = _stateful(replace(operator, output=(*operator.output, *extra)), inputs, edges)
    kind = [KIND] if edges.changelog[operator.id] else []
    return joined.where(spark_expression(joined, checked.sql)).select(
        *(quoted(column.name) for column in operator.output), *kind
    )


def _lookup(operator: LookupJoin, inputs: list[DataFrame], edges: Edges) -> DataFrame:
    (source,) = operator.inputs
    return apply_lookup(
        operator,
        inputs[0],
        edges.columns[source],
        edges.plan.tables[operator.table],
        edges.lookups,
        beside=edges.beside(operator.id),
        partitions=edges.partitions,
        lineage=edges.lineages.get(operator.id),
        observe_as=edges.observe_as,
    )


def _correlate(operator: Correlate, inputs: list[DataFrame], edges: Edges) -> DataFrame:
    (source,) = operator.inputs
    return apply_function(
        operator,
        inputs[0],
        edges.columns[source],
        edges.plan.functions[operator.function],
        edges.lookups,
        beside=edges.beside(operator.id),
        observe_as=edges.observe_as,
    )


def _stateful(operator: Stateful, inputs: list[DataFrame], edges: Edges) -> DataFrame:
    columns = tuple(edges.columns[name] for name in operator.inputs)
    changelog = tuple(edges.changelog[name] for name in operator.inputs)
    built = build_operator(operator, columns, changelog)
    told = [side for side, name in enumerate(operator.inputs) if name in edges.told]
    lineage = edges.lineages.get(operator.id)
    return apply_operator(operator.id, built, inputs, edges.partitions, lineage=lineage, told=told)


BUILDERS: Mapping[type[Operator], Callable[[Any, list[DataFrame], Edges], DataFrame]] = {
    Aggregate: _stateful,
    Calc: _calc,
    ChangelogNormalize: _stateful,
    Correlate: _correlate,
    Expand: _expand,
    Join: _join,
    LookupJoin: _lookup,
    Scan: _scan,
    SinkMaterialize: _stateful,
    Union: _union,
}
