"""How an operator of one kind becomes rows: what its file in this folder says, and what kinds have in common.

Each file has a ``BUILDER``; the table of all is :mod:`hintplan.runtime.build.table`.

    BUILDER = OperatorBuilder(stream=from_frames(_expand), batch=_expand)
    BUILDER = OperatorBuilder(stream=with_state(), batch=native_aggregate)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from hintplan.plans.operators import Stateful
from hintplan.runtime.build.bound import build_operator, users_aggregates
from hintplan.runtime.build.edges import Edges
from hintplan.runtime.engine.rows import Rows
from hintplan.runtime.engine.stateful import apply_operator
from hintplan.runtime.functions.aggregates import UserAggregate
from hintplan.runtime.functions.worker import load_function

StreamBuilder = Callable[[Any, Sequence[Rows], Edges], Rows]
"""An operator, the rows of its inputs and the edges -> its rows, in a stream."""

FrameBuilder = Callable[[Any, Sequence[DataFrame], Edges], DataFrame]
"""The same of rows as Spark has them, in a stream or a batch job."""


def _nothing(operator: Any) -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorBuilder:
    """How the operators of one kind are built; ``stream`` or ``batch`` is None where validation refuses the kind.

    ``condition`` is what rows of the input must meet, as far as an operator below may check it instead. ``batch_note``
    says what a batch job does otherwise than its plan may suggest.
    """

    stream: StreamBuilder | None
    batch: FrameBuilder | None
    condition: Callable[[Any], str | None] = _nothing
    batch_note: Callable[[Any], str | None] = _nothing


def from_frames(build: FrameBuilder) -> StreamBuilder:
    """A builder of streams that are Spark's own."""

    def stream(operator: Any, inputs: Sequence[Rows], edges: Edges) -> Rows:
        rows = Rows(lambda: build(operator, [each.frame for each in inputs], edges))
        _ = rows.frame  # what is wrong with it is to be said now
        return rows

    return stream


def loaded_aggregates(operator: Stateful, edges: Edges) -> dict[str, UserAggregate]:
    """The aggregate functions of the user's that ``operator`` calls, by name; RunError for a class that may not run."""
    users = users_aggregates(operator, edges.plan.functions, edges.lookups)
    for user in users.values():
        load_function(user.called)
    return users


def with_state(counts: Sequence[str] = ()) -> StreamBuilder:
    """A builder of streams through the engine, with the operator's kernel; ``counts`` names its metrics."""

    def stream(operator: Stateful, inputs: Sequence[Rows], edges: Edges) -> Rows:
        columns = tuple(edges.columns[name] for name in operator.inputs)
        changelog = tuple(edges.changelog[name] for name in operator.inputs)
        users = loaded_aggregates(operator, edges)
        made = apply_operator(
            build_operator(operator, columns, changelog, in_order=operator.id in edges.ordered, users=users),
            [each.in_arrow or each.frame for each in inputs],
            edges.places[operator.id],
            metrics=[(name, "sum") for name in counts],
            row_order=[side for side, name in enumerate(operator.inputs) if name in edges.row_order],
        )
        return Rows(lambda: made.in_spark(operator.id), made)

    return stream
