"""Plan -> streaming DataFrames: walks the operators in order and builds each from those it reads.

How each is built says the table of builders. Knows no SQL and no session settings, and starts nothing.

    edges = edges_of(plan, spark, partitions=2, lookups=LookupRun(token="1"))
    rows = build(edges)  # of each operator; those of a sink are what is to be written
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import DataFrame

from plans.model.plan import Plan
from plans.operators import Operator
from runtime.build.edges import Condition, Edges
from runtime.build.table import builder_of
from runtime.engine.rows import Rows


def build(edges: Edges) -> dict[str, Rows]:
    """The output of each operator.

    RunError, naming the operator, for an expression that may not run or something that cannot be read.
    """
    edges = replace(edges, conditions_above=conditions_above(edges.plan))
    rows: dict[str, Rows] = {}
    for operator in edges.plan.operators:
        rows[operator.id] = _built(operator, [rows[name] for name in operator.inputs], edges)
    return rows


def apply_operators(operators: Sequence[Operator], frame: DataFrame, *, edges: Edges) -> DataFrame:
    """What ``operators``, each reading the one before it, make of the rows of ``frame``, streamed or not."""
    rows = Rows(lambda: frame)
    for operator in operators:
        rows = _built(operator, [rows], edges)
    return rows.frame


def conditions_above(plan: Plan) -> dict[str, Condition]:
    """The condition that the only reader of an operator has, by the operator's id."""
    readers = plan.readers
    return {
        operator.inputs[0]: Condition(operator=operator.id, text=text)
        for operator in plan.operators
        if (text := builder_of(operator).condition(operator)) is not None and len(readers[operator.inputs[0]]) == 1
    }


def _built(operator: Operator, inputs: Sequence[Rows], edges: Edges) -> Rows:
    build_stream = builder_of(operator).stream
    assert build_stream is not None, f"{operator.id} is of batch plans only"
    return build_stream(operator, inputs, edges)
