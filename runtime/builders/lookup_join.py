"""A lookup join as a step between DataFrames: keys in, ``mapInArrow`` or the engine, filter, metrics.

Spark filters the rows of an INNER join after the lookup. The padding of a LEFT join depends on its conditions, so Arrow
evaluates them with the lookup if it can. Otherwise Spark evaluates them on a list of all matches of a row. Spark
evaluates a pre-filter before the lookup. The step is the same on classic Spark and Spark Connect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hintplan.plans.declarations.durations import parse_duration
from hintplan.plans.declarations.tables import Column, Table
from hintplan.plans.errors import RunError
from hintplan.plans.operators import JoinColumn, LookupJoin
from hintplan.runtime.builders.builder import OperatorBuilder, from_frames
from hintplan.runtime.builders.calc import keeping
from hintplan.runtime.builders.edges import Edges
from hintplan.runtime.engine.marks import KEEP, MARK_COLUMNS
from hintplan.runtime.expressions.allowed import check_expression
from hintplan.runtime.expressions.checked import CheckedExpression
from hintplan.runtime.expressions.condition import compile_filter, compile_join_condition
from hintplan.runtime.expressions.spark_columns import analysed, refusing, spark_expression, sql_over
from hintplan.runtime.kernels.pairs import JoinCondition
from hintplan.runtime.lookup.join import LookupRows
from hintplan.runtime.lookup.metrics import LOOKUP_METRICS
from hintplan.runtime.lookup.plan import fetched_columns, lookup_keys, lookup_spec
from hintplan.runtime.lookup.task import enrich
from hintplan.runtime.operators.lookup_retry import LookupRetry
from hintplan.runtime.spark.names import quoted
from hintplan.runtime.types import to_arrow, to_spark

ASKS = "__asks"
FOUND = "__found"
ONE = "__one"
"""An element of the list ``FOUND``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Checked:
    """The filter and the condition of a lookup join, and the columns that they need on joined rows, with unique names.

    A column of the table is a column of the joined row, or a field of ``ONE`` if the conditions are evaluated on a
    list.
    """

    filter: CheckedExpression | None
    condition: CheckedExpression | None
    carried: tuple[JoinColumn, ...]

    @property
    def expressions(self) -> list[CheckedExpression]:
        return [expression for expression in (self.filter, self.condition) if expression is not None]


def look_up(op: LookupJoin, inputs: Sequence[DataFrame], edges: Edges) -> DataFrame:
    """Return the rows of the only input, joined with their matches in the table.

    Raise RunError, which names the operator, for an expression or a class that may not run.
    """
    (frame,) = inputs
    columns, table = edges.columns[op.inputs[0]], edges.plan.tables[op.table]
    metadata, marks = edges.metadata(op.id), op.id in edges.marks
    types = {column.name: column.type for column in columns}
    native = op.join_type == "inner"
    checked = _checked(op, types, fetched_columns(op, table), listed=False)
    conditions = () if native else _compiled(checked, columns, fetched_columns(op, table))
    gathered = conditions is None
    if gathered:
        checked = _checked(op, types, fetched_columns(op, table), listed=True)
    output = (*op.output, *checked.carried) if native or gathered else op.output
    if gathered:
        output = tuple(column for column in output if column.side == "left")
    origins: list[tuple[Literal["left", "right"], str]] = [(column.side, column.column) for column in output]
    fields = [pa.field(column.name, to_arrow(column.type)) for column in output]
    origins += [("left", name) for name in metadata.names]
    fields += list(metadata)
    if gathered:
        fields.append(pa.field(FOUND, pa.list_(pa.struct(list(_schema(fetched_columns(op, table)))))))
    keys, computed = _inputs(op, frame, columns, table, metadata, marks=marks)
    rows = LookupRows(
        keys=keys,
        pre_filter=ASKS if op.pre_filter is not None else None,
        fetched=_schema(fetched_columns(op, table)),
        padded=op.join_type == "left",
        conditions=conditions or (),
        output=pa.schema(fields),
        origins=tuple(origins),
        gathered=FOUND if gathered else None,
    )
    wanted = {name for side, name in rows.origins if side == "left"} | {*keys, ASKS}
    wanted |= {name for condition in rows.conditions for name in condition.left}
    chosen = {name: column for name, column in computed.items() if name in wanted}
    with refusing(op.id, f"operators.{op.id}"):
        columns_read = (column.alias(name) for name, (column, _) in chosen.items())
        prepared = analysed(frame.select(*columns_read, *(MARK_COLUMNS.names if marks else ())))
    schema = pa.schema([(name, kind) for name, (_, kind) in chosen.items()])
    spec = lookup_spec(op, table, edges.backend.lookup_source(op.table, table), rows, edges.lookups)
    spec = replace(spec, pins=edges.pins.get(op.id))
    if op.retry is not None and op.retry.mode == "deferred" and spec.mode != "full":
        operator = LookupRetry(
            spec=spec,
            columns=schema,
            max_attempts=op.retry.max_attempts,
            delay=parse_duration(op.retry.fixed_delay),
            once=edges.lookups.once,
        )
        place = edges.places[op.id]
        parked = edges.backend.apply(operator, [prepared], place, metrics=LOOKUP_METRICS, retry_delay=operator.delay)
        joined = parked.in_spark(op.id)
    else:
        run_task = partial(enrich, spec=spec, schema=schema)
        joined = edges.backend.mapped(
            prepared, run_task, rows.output, op.id, edges.observe_as(op.id), LOOKUP_METRICS, marks=marks
        )
    metadata = edges.spark_metadata(op.id)
    if gathered:
        return _padded(op, joined, checked, metadata)
    if not native:
        return joined
    for expression in checked.expressions:
        with refusing(op.id, f"operators.{op.id}"):
            condition = spark_expression(joined, expression)
            joined = analysed(keeping(joined, condition) if marks else joined.where(condition))
    return joined.select(*(quoted(column.name) for column in op.output), *metadata.names)


def _schema(columns: tuple[Column, ...]) -> pa.Schema:
    return pa.schema([(column.name, to_arrow(column.type)) for column in columns])


def _padded(op: LookupJoin, joined: DataFrame, checked: _Checked, metadata: pa.Schema) -> DataFrame:
    """Return a row for each element of ``FOUND`` that passes, and one row with NULLs if none does."""
    rows = F.col(FOUND)
    with refusing(op.id, f"operators.{op.id}"):
        typed = joined.select("*", F.get(rows, F.lit(0)).alias(ONE))
        texts = [sql_over(typed, expression) for expression in checked.expressions]
        holds = " AND ".join(f"({text})" for text in texts)
        passing = analysed(joined.withColumn(FOUND, F.expr(f"filter({quoted(FOUND)}, {quoted(ONE)} -> {holds})")))
    single = passing.select(
        *(quoted(name) for name in passing.columns if name != FOUND), F.explode_outer(FOUND).alias(ONE)
    )

    def value(column: JoinColumn) -> SparkColumn:
        if column.side == "left":
            return F.col(quoted(column.name))
        return F.col(f"{ONE}.{quoted(column.column)}").cast(to_spark(column.type)).alias(column.name)

    return single.select(*map(value, op.output), *metadata.names)


def _checked(op: LookupJoin, types: Mapping[str, str], fetched: tuple[Column, ...], *, listed: bool) -> _Checked:
    """Check filter and condition for either evaluator; ``listed`` if Spark evaluates them on a list of matches."""
    bare: dict[tuple[str, ...], str | tuple[str, ...]] = {
        (column.name,): (ONE, column.name) if listed else f"__r_{column.name}" for column in fetched
    }
    left: dict[tuple[str, ...], str | tuple[str, ...]] = {("l", name): f"__l_{name}" for name in types}
    right = {("r", *name): text for name, text in bare.items()}
    checked: dict[str, CheckedExpression] = {}
    carried: dict[str, JoinColumn] = {}
    texts = [("filter", op.filter, bare), ("condition", op.condition, left | right)]
    kinds = {("l", name): kind for name, kind in types.items()} | {("r", c.name): c.type for c in fetched}
    for location, text, scope in texts:
        if text is None:
            continue
        path = f"operators.{op.id}.{location}"
        checked[location] = check_expression(text, scope, operator=op.id, path=path)
        for names in checked[location].columns:
            side, name = names if len(names) == 2 else ("r", names[0])
            if isinstance(under := scope[names], str):
                carried[under] = JoinColumn(
                    name=under, type=kinds[side, name], side="left" if side == "l" else "right", column=name
                )
    return _Checked(**{"filter": None, "condition": None} | checked, carried=tuple(carried.values()))


def _compiled(
    checked: _Checked, left: tuple[Column, ...], right: tuple[Column, ...]
) -> tuple[JoinCondition, ...] | None:
    """Return filter and condition compiled for Arrow; None if Arrow cannot evaluate one of them."""
    conditions = []
    try:
        if checked.filter is not None:
            conditions.append(compile_filter(checked.filter, _schema(right)))
        if checked.condition is not None:
            conditions.append(compile_join_condition(checked.condition, _schema(left), _schema(right)))
    except RunError:
        return None
    return tuple(conditions)


def _inputs(
    op: LookupJoin, frame: DataFrame, columns: tuple[Column, ...], table: Table, metadata: pa.Schema, *, marks: bool
) -> tuple[tuple[str, ...], dict[str, tuple[SparkColumn, pa.DataType]]]:
    """Return the names of the key columns, and by name the columns and types that Spark computes for the lookup.

    Of rows with ``marks`` that a filter has dropped, Spark computes nothing.
    """

    def computed_value(value: SparkColumn) -> SparkColumn:
        return F.when(F.col(KEEP), value) if marks else value

    types = {column.name: column.type for column in columns}
    computed = {name: (F.col(quoted(name)), to_arrow(kind)) for name, kind in types.items()}
    key_names = []
    for index, (key, column) in enumerate(zip(op.keys, lookup_keys(op, table), strict=True)):
        kind = to_arrow(column.type)
        if key.left is not None and computed[key.left][1] == kind:
            key_names.append(key.left)
            continue
        if key.left is not None:
            value = F.col(quoted(key.left))
        else:
            path = f"operators.{op.id}.keys[{index}].constant"
            checked = check_expression(key.constant or "NULL", {}, operator=op.id, path=path)
            with refusing(op.id, path):
                value = spark_expression(frame, checked)
        key_names.append(f"__key{index}")
        computed[f"__key{index}"] = (computed_value(value.cast(to_spark(column.type))), kind)
    if op.pre_filter is not None:
        input_columns: dict[tuple[str, ...], str] = {(name,): name for name in types}
        path = f"operators.{op.id}.pre-filter"
        checked = check_expression(op.pre_filter, input_columns, operator=op.id, path=path)
        with refusing(op.id, path):
            computed[ASKS] = (computed_value(spark_expression(frame, checked)), pa.bool_())
    computed |= {field.name: (F.col(field.name), field.type) for field in metadata}
    return tuple(key_names), computed


def _batch(op: LookupJoin, inputs: Sequence[DataFrame], edges: Edges) -> DataFrame:
    if op.retry is not None and op.retry.mode == "deferred":
        # Deferred retries park rows in the state of a stream. In a batch job a waiting row blocks no later rows.
        retry = op.settings["retry"]
        inline = replace(retry, values={**retry.values, "mode": "inline"})
        op = replace(op, settings={**op.settings, "retry": inline})
    return look_up(op, inputs, edges)


def _batch_note(op: LookupJoin) -> str | None:
    if op.retry is None or op.retry.mode != "deferred":
        return None
    return f"retries of {op.id} wait inline: a batch job keeps no state to defer them in"


BUILDER = OperatorBuilder(stream=from_frames(look_up), batch=_batch, batch_note=_batch_note)
