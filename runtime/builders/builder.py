"""The builder of a kind of operator, which turns an operator and its inputs into rows; and parts that builders share.

Each file of this folder has a ``BUILDER``; :mod:`hintplan.runtime.builders.table` lists them all.

    BUILDER = OperatorBuilder(stream=from_frames(_expand), batch=_expand)
    BUILDER = OperatorBuilder(stream=with_state(), batch=_batch)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

from pyspark.sql import DataFrame

from hintplan.plans.operators import Operator, Stateful
from hintplan.runtime.builders.bound import build_operator, users_aggregates
from hintplan.runtime.builders.edges import Edges
from hintplan.runtime.engine.process import USES
from hintplan.runtime.engine.rows import EdgeRows
from hintplan.runtime.functions.aggregates import UserAggregate
from hintplan.runtime.functions.worker import load_function
from hintplan.runtime.kernels.pairs import JoinCondition
from hintplan.runtime.operator import TimeOperator
from hintplan.runtime.operators.late_rows import EmitsLateRows

StreamBuilder = Callable[[Any, Sequence[EdgeRows], Edges], EdgeRows]
"""Returns the rows of an operator in a stream, given the operator, the rows of its inputs and the edges."""

FrameBuilder = Callable[[Any, Sequence[DataFrame], Edges], DataFrame]
"""Returns the DataFrame of an operator, given its inputs as DataFrames, in a stream or a batch job."""


def _nothing(operator: Operator) -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorBuilder:
    """Builds the operators of one kind; ``stream`` or ``batch`` is None if validation refuses the kind there.

    ``condition`` returns the condition on the operator's input rows, which an operator below may check instead.
    ``batch_note`` returns a note if a batch job differs from what the plan suggests.
    """

    stream: StreamBuilder | None
    batch: FrameBuilder | None
    condition: Callable[[Any], str | None] = _nothing
    batch_note: Callable[[Any], str | None] = _nothing


def from_frames(build: FrameBuilder) -> StreamBuilder:
    """Return a builder of streams that Spark computes."""

    def stream(operator: Any, inputs: Sequence[EdgeRows], edges: Edges) -> EdgeRows:
        rows = EdgeRows(
            lambda: build(operator, [rows_below.frame for rows_below in inputs], edges),
            marks=operator.id in edges.marks,
        )
        _ = rows.frame  # built now, so that errors are raised here
        return rows

    return stream


def loaded_aggregates(operator: Stateful, edges: Edges) -> dict[str, UserAggregate]:
    """Load the user's aggregate functions that ``operator`` calls, by name; RunError for a class that may not run."""
    users = users_aggregates(operator, edges.plan.functions, edges.lookups)
    for user in users.values():
        load_function(user.called)
    return users


def on_engine(
    operator: Stateful,
    inputs: Sequence[EdgeRows],
    edges: Edges,
    *,
    counts: Sequence[str] = (),
    condition: JoinCondition | None = None,
) -> EdgeRows:
    """Return the output of the operator's kernel on the engine.

    ``counts`` names the kernel's metrics, and ``condition`` is the compiled condition of a join.
    """
    columns = tuple(edges.columns[name] for name in operator.inputs)
    changelog = tuple(edges.changelog[name] for name in operator.inputs)
    users = loaded_aggregates(operator, edges)
    in_order = operator.id in edges.ordered
    event_time = edges.event_time.get(operator.id)
    kernel = build_operator(operator, columns, changelog, in_order=in_order, users=users, condition=condition)
    if operator.id in edges.late_inputs:
        kernel = EmitsLateRows(
            operator=cast(TimeOperator, kernel), carried=tuple(map(edges.late_columns, operator.inputs))
        )
    # Other operators have this metric in any case.
    ages = [USES] if event_time is not None and any(operator.has_ttl(entry.name) for entry in operator.state) else []
    made = edges.backend.apply(
        kernel,
        [rows.in_arrow or rows.frame for rows in inputs],
        edges.places[operator.id],
        metrics=[*((name, "sum") for name in counts), *ages],
        row_order=[side for side, name in enumerate(operator.inputs) if name in edges.row_order],
        marked=[side for side, rows in enumerate(inputs) if rows.marks],
        event_time=event_time,
        ends=None if event_time is None else event_time.ends or None,
        wakes=operator.id in edges.waking,
    )
    marks = operator.id in edges.marks
    made = replace(made, marks=marks)
    return EdgeRows(lambda: made.in_spark(operator.id), made, marks=marks)


def with_state(counts: Sequence[str] = ()) -> StreamBuilder:
    """Return a builder of streams that runs the operator's kernel on the engine; ``counts`` names its metrics."""
    return partial(on_engine, counts=counts)
