"""How an operator of one kind becomes rows: what its file in this folder says, and what kinds have in common.

Each file has a ``BUILDER``; the table of all is :mod:`runtime.build.table`.

    BUILDER = OperatorBuilder(stream=from_frames(_expand), batch=_expand)
    BUILDER = OperatorBuilder(stream=with_state(_bind), batch=native_aggregate, bind=_bind)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from plans.declarations.durations import parse_duration
from plans.declarations.tables import Column
from plans.operators import Stateful
from runtime.build.edges import Edges
from runtime.engine.rows import Rows
from runtime.engine.stateful import apply_operator
from runtime.operator import StatefulOperator
from runtime.operators.schema import state_schema

StreamBuilder = Callable[[Any, Sequence[Rows], Edges], Rows]
"""An operator, the rows of its inputs and the edges -> its rows, in a stream."""

FrameBuilder = Callable[[Any, Sequence[DataFrame], Edges], DataFrame]
"""The same of rows as Spark has them, in a stream or a batch job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundInputs:
    """What an operator with state is bound to.

    Per input its columns as they are kept in state, and whether it carries row kinds; the TTLs of the state entries in
    ms; and whether the order of the operator's output matters to one above it (:mod:`plans.analysis.row_order`).
    """

    schemas: tuple[pa.Schema, ...]
    changelog: tuple[bool, ...]
    ttls: tuple[int, ...]
    in_order: bool


Bind = Callable[[Any, BoundInputs], StatefulOperator]
"""Binds an operator of the plan to its inputs; what it returns travels to the workers."""


def _nothing(operator: Any) -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorBuilder:
    """How the operators of one kind are built; ``stream`` or ``batch`` is None where validation refuses the kind.

    ``bind`` makes the kernel of a kind with state. ``condition`` is what rows of the input must meet, as far as an
    operator below may check it instead. ``batch_note`` says what a batch job does otherwise than its plan may suggest.
    """

    stream: StreamBuilder | None
    batch: FrameBuilder | None
    bind: Bind | None = None
    condition: Callable[[Any], str | None] = _nothing
    batch_note: Callable[[Any], str | None] = _nothing


def from_frames(build: FrameBuilder) -> StreamBuilder:
    """A builder of streams that are Spark's own."""

    def stream(operator: Any, inputs: Sequence[Rows], edges: Edges) -> Rows:
        rows = Rows(lambda: build(operator, [each.frame for each in inputs], edges))
        _ = rows.frame  # what is wrong with it is to be said now
        return rows

    return stream


def with_state(bind: Bind, counts: Sequence[str] = ()) -> StreamBuilder:
    """A builder of streams through the engine, with the kernel that ``bind`` makes; ``counts`` names its metrics."""

    def stream(operator: Stateful, inputs: Sequence[Rows], edges: Edges) -> Rows:
        columns = tuple(edges.columns[name] for name in operator.inputs)
        changelog = tuple(edges.changelog[name] for name in operator.inputs)
        made = apply_operator(
            operator.id,
            bound(operator, bind, columns, changelog, in_order=operator.id in edges.ordered),
            [each.in_arrow or each.frame for each in inputs],
            edges.partitions,
            lineage=edges.lineages.get(operator.id),
            metrics=[(name, "sum") for name in counts],
            row_order=[side for side, name in enumerate(operator.inputs) if name in edges.row_order],
        )
        return Rows(made.in_spark, made)

    return stream


def bound(
    operator: Stateful,
    bind: Bind,
    inputs: tuple[tuple[Column, ...], ...],
    changelog: tuple[bool, ...],
    *,
    in_order: bool,
) -> StatefulOperator:
    """The kernel of ``operator`` over ``inputs`` with these columns; RunError if a type cannot be kept in state."""
    schemas = tuple(state_schema(operator.id, columns) for columns in inputs)
    ttls = tuple(parse_duration(entry.ttl) for entry in sorted(operator.state, key=lambda entry: entry.index))
    return bind(operator, BoundInputs(schemas=schemas, changelog=changelog, ttls=ttls, in_order=in_order))
