"""Builds the streaming DataFrames of a plan: walks the operators in order and builds each from its inputs.

The table of builders has the builder of each kind. If several operators read an output that is expensive to compute,
the output goes through an exchange of its own (:mod:`hintplan.runtime.engine.shared`). A cheap output, such as a table,
is computed for each reader. An operator whose late rows go to a table emits them with its results; each reader takes
its part. Knows no SQL and starts no query.

    edges = edges_of(plan, SparkBackend(session=spark), places=places, lookups=RequestRun(token="1"))
    rows = build(edges, [sink.id for sink in plan.sinks])  # the rows of a sink are to be written
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa

from hintplan.plans.analysis.streaming_queries import is_dear
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import IntervalJoin, Join, LateRows, Operator, WindowJoin
from hintplan.runtime.builders.bound import build_operator
from hintplan.runtime.builders.edges import Condition, Edges
from hintplan.runtime.builders.late_rows import results_only, without_source_rows
from hintplan.runtime.builders.table import builder_of
from hintplan.runtime.engine.rows import EdgeRows, PackedFor


def build_stream(edges: Edges, tops: Collection[str]) -> dict[str, EdgeRows]:
    """Return the output of the operators ``tops``, whose rows are to be written, and of all operators below them.

    Raise RunError, which names the operator, for an expression that may not run or an input that cannot be read.
    """
    edges = replace(edges, conditions_above=conditions_above(edges.plan))
    wanted = set(edges.plan.upstream(*tops))
    operators = [operator for operator in edges.plan.operators if operator.id in wanted]
    readers = Counter([*tops, *(name for operator in operators for name in operator.inputs)])
    dear: set[str] = set()
    rows: dict[str, EdgeRows] = {}
    with_late: dict[str, EdgeRows] = {}
    for operator in operators:
        below = with_late if isinstance(operator, LateRows) else rows
        output = _built(operator, [below[name] for name in operator.inputs], edges)
        if is_dear(operator) or not dear.isdisjoint(operator.inputs):
            dear.add(operator.id)
            if readers[operator.id] > 1:
                output = _shared(operator, output, edges)
        elif readers[operator.id] > 1 and (in_arrow := output.in_arrow) is not None:
            # If Spark and Arrow both read the table, it would be two sources with separate batches.
            output = EdgeRows(partial(in_arrow.in_spark, operator.id), in_arrow, marks=output.marks)
        if operator.id in edges.late_inputs:
            with_late[operator.id] = output
            output = results_only(operator, output, edges)
        rows[operator.id] = output
    return {name: output.without_marks() for name, output in rows.items()}


def apply_operators(operators: Sequence[Operator], rows: EdgeRows, *, edges: Edges) -> EdgeRows:
    """Return the output of ``operators``, a chain above ``rows``, which may be streaming or not."""
    for operator in operators:
        rows = _built(operator, [rows], edges)
    return rows


def conditions_above(plan: Plan) -> dict[str, Condition]:
    """Return the condition of the only reader of each operator, by the id of the operator that it reads."""
    readers = plan.readers
    return {
        operator.inputs[0]: Condition(operator=operator.id, text=text)
        for operator in plan.operators
        if (text := builder_of(operator).condition(operator)) is not None and len(readers[operator.inputs[0]]) == 1
    }


def _shared(operator: Operator, rows: EdgeRows, edges: Edges) -> EdgeRows:
    schema, marks = edges.schema(operator.id), rows.marks
    if operator.id in edges.late_inputs:
        schema = edges.with_late_rows(operator.id)
    elif rows.in_arrow is not None and (joined := _join_above(operator, schema, edges)) is not None:
        reader, route = joined
        place = edges.places[reader.operator]
        routed = edges.backend.shared_input(rows.in_arrow, schema, place, operator.id, reader=reader, route=route)
        return EdgeRows(lambda: routed.in_spark(operator.id), routed, marks=marks)
    made = edges.backend.shared(rows.in_arrow or rows.frame, schema, operator.id, marks=marks)
    return EdgeRows(lambda: made.in_spark(operator.id), made, marks=marks)


def _join_above(operator: Operator, schema: pa.Schema, edges: Edges) -> tuple[PackedFor, tuple[str, ...]] | None:
    """Return the input of the first join that reads ``operator``, and the columns that route its rows; None without.

    Its tasks get rows in another order, and state has floating-point numbers in a normal form. So rows whose order
    matters, or with such numbers, are not packed for a join.
    """
    if edges.changelog[operator.id] or operator.id in edges.ordered or any(map(pa.types.is_floating, schema.types)):
        return None
    for join in edges.plan.readers[operator.id]:
        if isinstance(join, (Join, WindowJoin, IntervalJoin)) and join.id not in edges.late_inputs:
            columns = tuple(edges.columns[name] for name in join.inputs)
            changelog = tuple(edges.changelog[name] for name in join.inputs)
            side = join.inputs.index(operator.id)
            spec = build_operator(replace(join, condition=None), columns, changelog).inputs[side]
            return (PackedFor(operator=join.id, side=side), spec.hashes[0]) if spec.columns == schema else None
    return None


def _built(operator: Operator, inputs: Sequence[EdgeRows], edges: Edges) -> EdgeRows:
    if operator.id not in edges.marks and operator.id not in edges.event_time:
        inputs = [rows.without_marks() for rows in inputs]
    if operator.id not in edges.late and operator.id not in edges.late_inputs:
        inputs = [without_source_rows(name, rows, edges) for name, rows in zip(operator.inputs, inputs, strict=True)]
    build_stream = builder_of(operator).stream
    assert build_stream is not None, f"{operator.id} is of batch plans only"
    return edges.backend.built(
        operator, inputs, edges.schema(operator.id), partial(build_stream, operator, inputs, edges)
    )
