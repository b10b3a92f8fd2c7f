"""The table of builders: how each kind of operator is built, in streams and in batch jobs."""

from __future__ import annotations

from collections.abc import Mapping

from plans.declarations.tables import Column
from plans.operators import (
    Aggregate,
    Calc,
    ChangelogNormalize,
    Correlate,
    Deduplicate,
    Expand,
    Join,
    LookupJoin,
    Operator,
    Scan,
    Sink,
    SinkMaterialize,
    Sort,
    Stateful,
    Union,
)
from runtime.build import (
    aggregate,
    calc,
    changelog_normalize,
    correlate,
    deduplicate,
    expand,
    join,
    lookup_join,
    scan,
    sink,
    sink_materialize,
    sort,
    union,
)
from runtime.build.builder import OperatorBuilder, bound
from runtime.operator import StatefulOperator

BUILDERS: Mapping[type[Operator], OperatorBuilder] = {
    Aggregate: aggregate.BUILDER,
    Calc: calc.BUILDER,
    ChangelogNormalize: changelog_normalize.BUILDER,
    Correlate: correlate.BUILDER,
    Deduplicate: deduplicate.BUILDER,
    Expand: expand.BUILDER,
    Join: join.BUILDER,
    LookupJoin: lookup_join.BUILDER,
    Scan: scan.BUILDER,
    Sink: sink.BUILDER,
    SinkMaterialize: sink_materialize.BUILDER,
    Sort: sort.BUILDER,
    Union: union.BUILDER,
}


def builder_of(operator: Operator) -> OperatorBuilder:
    """How ``operator`` is built."""
    return BUILDERS[type(operator)]


def build_operator(
    operator: Stateful,
    inputs: tuple[tuple[Column, ...], ...],
    changelog: tuple[bool, ...],
    *,
    in_order: bool = False,
) -> StatefulOperator:
    """The kernel of ``operator``, bound to its input columns; ``changelog`` says per input whether it has row kinds.

    ``in_order`` says that the order of its output matters to an operator above it (:mod:`plans.analysis.row_order`).
    RunError if a column type cannot be kept in state or the join condition is beyond what a join evaluates.
    """
    bind = builder_of(operator).bind
    assert bind is not None, f"{operator.id} keeps no state"
    return bound(operator, bind, inputs, changelog, in_order=in_order)
