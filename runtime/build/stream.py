"""Plan -> streaming DataFrames: walks the operators in order and builds each from those it reads.

How each is built says the table of builders. What several read, and is more than reading a table anew, goes through an
exchange of its own (:mod:`hintplan.runtime.engine.shared`). Knows no SQL and starts nothing.

    edges = edges_of(plan, spark, places=places, lookups=LookupRun(token="1"))
    rows = build(edges, [sink.id for sink in plan.sinks])  # those of a sink are what is to be written
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial

from hintplan.plans.analysis.streaming_queries import is_dear
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Operator
from hintplan.runtime.build.edges import Condition, Edges
from hintplan.runtime.build.table import builder_of
from hintplan.runtime.engine.rows import Rows
from hintplan.runtime.engine.shared import shared


def build(edges: Edges, tops: Collection[str]) -> dict[str, Rows]:
    """The output of the operators ``tops``, whose rows are to be written, and of all that they read.

    RunError, naming the operator, for an expression that may not run or something that cannot be read.
    """
    edges = replace(edges, conditions_above=conditions_above(edges.plan))
    wanted = set(edges.plan.upstream(*tops))
    operators = [operator for operator in edges.plan.operators if operator.id in wanted]
    readers = Counter([*tops, *(name for operator in operators for name in operator.inputs)])
    dear: set[str] = set()
    rows: dict[str, Rows] = {}
    for operator in operators:
        found = _built(operator, [rows[name] for name in operator.inputs], edges)
        if is_dear(operator) or not dear.isdisjoint(operator.inputs):
            dear.add(operator.id)
            if readers[operator.id] > 1:
                found = _shared(operator, found, edges)
        elif readers[operator.id] > 1 and (in_arrow := found.in_arrow) is not None:
            # Read by Spark and in Arrow, a table would be two sources, of which each has batches of its own.
            found = Rows(partial(in_arrow.in_spark, operator.id), in_arrow)
        rows[operator.id] = found
    return rows


def apply_operators(operators: Sequence[Operator], rows: Rows, *, edges: Edges) -> Rows:
    """What ``operators``, each reading the one before it, make of ``rows``, streamed or not."""
    for operator in operators:
        rows = _built(operator, [rows], edges)
    return rows


def conditions_above(plan: Plan) -> dict[str, Condition]:
    """The condition that the only reader of an operator has, by the operator's id."""
    readers = plan.readers
    return {
        operator.inputs[0]: Condition(operator=operator.id, text=text)
        for operator in plan.operators
        if (text := builder_of(operator).condition(operator)) is not None and len(readers[operator.inputs[0]]) == 1
    }


def _shared(operator: Operator, rows: Rows, edges: Edges) -> Rows:
    partitions = int(edges.spark.conf.get("spark.sql.shuffle.partitions") or 1)
    made = shared(rows.in_arrow or rows.frame, edges.schema(operator.id), partitions, operator.id)
    return Rows(lambda: made.in_spark(operator.id), made)


def _built(operator: Operator, inputs: Sequence[Rows], edges: Edges) -> Rows:
    build_stream = builder_of(operator).stream
    assert build_stream is not None, f"{operator.id} is of batch plans only"
    return build_stream(operator, inputs, edges)
