"""Plan -> streaming DataFrames: walks the operators in order and builds each from those it reads.

Operators with state run in the shell around those of the engine. Of the others each kind has a builder in ``BUILDERS``:
scans, calcs and unions are native Spark, unless all that they do can be done in Arrow and an operator with state wants
their rows; lookup joins and calls of functions run in ``mapInArrow``. Expressions are
checked before Spark sees them. Knows no SQL and no session settings, and starts nothing.

    edges = edges_of(plan, spark, partitions=2, lookups=LookupRun(token="1"))
    rows = build(edges)  # of each operator but sinks
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

from plans.analysis.changelog import output_kinds
from plans.analysis.columns import output_columns
from plans.analysis.row_order import read_in_order, told_by_arrival
from plans.compare.carryover import state_lineages
from plans.declarations.tables import Column
from plans.model.plan import Plan
from plans.operators import (
    Calc,
    Correlate,
    Expand,
    Join,
    JoinColumn,
    LookupJoin,
    Operator,
    Scan,
    SelectItem,
    Sink,
    Stateful,
    Union,
)
from runtime.build.calc_in_arrow import calc_in_arrow
from runtime.build.join_conditions import narrowed
from runtime.build.rows import Rows
from runtime.connectors import table as connectors
from runtime.engine.arrow_rows import ArrowRows
from runtime.engine.row_order import ARRIVAL
from runtime.engine.stateful import apply_operator
from runtime.expressions.allowed import check_expression, quoted
from runtime.expressions.analysis import SPARK_ERRORS, analysed, refusing
from runtime.expressions.arithmetic import spark_expression
from runtime.expressions.exact import split_condition
from runtime.functions.apply import apply_function
from runtime.lookup.apply import apply_lookup
from runtime.lookup.plan import LookupRun
from runtime.operator import INSERT, KIND
from runtime.operators import build_operator
from runtime.operators.schema import state_schema
from runtime.types import to_arrow, to_spark

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
    """What the state of each operator is computed from (:mod:`plans.compare.carryover`); a batch job keeps none."""
    told: frozenset[str] = frozenset()
    """The operators whose rows have the columns of ``ARRIVAL`` (:mod:`plans.analysis.row_order`); batch: none."""
    ordered: frozenset[str] = frozenset()
    """The operators whose output is read by its order (:mod:`plans.analysis.row_order`)."""
    observe_as: Callable[[str], Any] = str
    """What the metrics of an operator are observed as: a stream reports them under its id, a batch job elsewhere."""

    def beside(self, operator_id: str) -> pa.Schema:
        """The columns that rows have beside their data: their kind in a changelog, and when they arrived."""
        kind = [pa.field(KIND, pa.int8())] if self.changelog[operator_id] else []
        return pa.schema([*kind, *(ARRIVAL if operator_id in self.told else [])])

    def schema(self, operator_id: str) -> pa.Schema:
        """The columns of rows and of what they have beside, in Arrow."""
        data = [pa.field(column.name, to_arrow(column.type)) for column in self.columns[operator_id]]
        return pa.schema([*data, *self.beside(operator_id)])

    def names(self, operator_id: str) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns[operator_id])


def edges_of(plan: Plan, spark: SparkSession, *, partitions: int, lookups: LookupRun) -> Edges:
    """What builders need for ``plan``; ``partitions`` as in :func:`runtime.engine.stateful.apply_operator`.

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
        ordered=read_in_order(plan),
    )


def build(edges: Edges) -> dict[str, Rows]:
    """The output of each operator but sinks.

    RunError, naming the operator, for an expression that may not run or something that cannot be read.
    """
    rows: dict[str, Rows] = {}
    for operator in narrowed(edges.plan.operators, edges.columns):
        if not isinstance(operator, Sink):
            rows[operator.id] = _rows(operator, [rows[name] for name in operator.inputs], edges)
    return rows


def _rows(operator: Operator, inputs: list[Rows], edges: Edges) -> Rows:
    if isinstance(operator, Join):
        return _join(operator, inputs, edges)
    if isinstance(operator, Stateful):
        made = _stateful(operator, inputs, edges)
        return Rows(made.in_spark, made)
    in_arrow = None
    if isinstance(operator, Scan) and operator.id not in edges.told:
        table = edges.plan.tables[operator.table]
        in_arrow = connectors.read_in_arrow(edges.spark, operator.table, table, operator.columns)
    elif isinstance(operator, Calc) and (below := inputs[0].in_arrow) is not None:
        calc = calc_in_arrow(operator, edges.columns[operator.inputs[0]], edges.beside(operator.id).names)
        in_arrow = None if calc is None else below.then(calc, edges.schema(operator.id))
    rows = Rows(lambda: BUILDERS[type(operator)](operator, [each.frame for each in inputs], edges), in_arrow)
    if in_arrow is None:
        _ = rows.frame  # what is wrong with it is to be said now
    return rows


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
        with refusing(operator.id, f"{path}.{where}"):
            return spark_expression(frame, checked.sql)

    def item(index: int, item: SelectItem) -> SparkColumn:
        if item.expression is None:
            return F.col(quoted(item.name))
        computed = expression(item.expression, f"select[{index}].expression")
        return (computed if item.type is None else computed.cast(to_spark(item.type))).alias(item.name)

    if operator.filter is not None:
        condition = expression(operator.filter, "filter")
        with refusing(operator.id, f"{path}.filter"):
            frame = analysed(frame.where(condition))
    selected = [item(index, each) for index, each in enumerate(operator.select)]
    try:
        return analysed(frame.select(*selected, *edges.beside(operator.id).names))
    except SPARK_ERRORS:
        for index, column in enumerate(selected):
            with refusing(operator.id, f"{path}.select[{index}].expression"):
                analysed(frame.select(column))
        raise


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


def _join(operator: Join, inputs: list[Rows], edges: Edges) -> Rows:
    above = None
    if operator.condition is not None:
        sides = dict(zip("lr", operator.inputs, strict=True))
        carried: dict[tuple[str, ...], str] = {
            (side, name): f"__{side}_{name}" for side, source in sides.items() for name in edges.names(source)
        }
        path = f"operators.{operator.id}.condition"
        check_expression(operator.condition, carried, operator=operator.id, path=path)
        if operator.join_type == "inner":
            left, right = (state_schema(operator.id, edges.columns[source]) for source in operator.inputs)
            within, above = split_condition(operator.condition, left, right)
            operator = replace(operator, condition=within)
        # Whether a row has a partner decides on the padding of an outer join, so it checks all of its condition.
    if above is None:
        whole = _stateful(operator, inputs, edges)
        return Rows(whole.in_spark, whole)
    checked = check_expression(above, carried, operator=operator.id, path=path)
    types = {side: {column.name: column.type for column in edges.columns[source]} for side, source in sides.items()}
    extra = tuple(
        JoinColumn(
            name=carried[side, name], type=types[side][name], side="left" if side == "l" else "right", column=name
        )
        for side, name in checked.columns
    )
    joined = _stateful(replace(operator, output=(*operator.output, *extra)), inputs, edges).in_spark()
    kind = [KIND] if edges.changelog[operator.id] else []
    columns = (quoted(column.name) for column in operator.output)
    with refusing(operator.id, path):
        chosen = analysed(joined.where(spark_expression(joined, checked.sql)).select(*columns, *kind))
    return Rows(lambda: chosen)


def _lookup(operator: LookupJoin, inputs: list[DataFrame], edges: Edges) -> DataFrame:
    (source,) = operator.inputs
    table = edges.plan.tables[operator.table]
    return apply_lookup(
        operator,
        inputs[0],
        edges.columns[source],
        table,
        connectors.lookup_source(table.options),
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


def _stateful(operator: Stateful, inputs: list[Rows], edges: Edges) -> ArrowRows:
    columns = tuple(edges.columns[name] for name in operator.inputs)
    changelog = tuple(edges.changelog[name] for name in operator.inputs)
    built = build_operator(operator, columns, changelog, in_order=operator.id in edges.ordered)
    told = [side for side, name in enumerate(operator.inputs) if name in edges.told]
    lineage = edges.lineages.get(operator.id)
    rows = [each.in_arrow or each.frame for each in inputs]
    return apply_operator(operator.id, built, rows, edges.partitions, lineage=lineage, told=told)


BUILDERS: Mapping[type[Operator], Callable[[Any, list[DataFrame], Edges], DataFrame]] = {
    Calc: _calc,
    Correlate: _correlate,
    Expand: _expand,
    LookupJoin: _lookup,
    Scan: _scan,
    Union: _union,
}
"""The operators that Spark runs by itself, or that keep nothing from batch to batch."""
