"""Keeps a view that several places read as one shared result, if this saves a state, a lookup or a call.

Then the columns and filters of its readers change nothing below. Each reader computes a cheap view on its own, and also
a view with a ROW_NUMBER() whose last number only the reader limits.
"""

from __future__ import annotations

from dataclasses import replace

from hintplan.planner.context import Context
from hintplan.planner.passes.push_down_filters import push_down_filters
from hintplan.planner.relations import (
    LogicalAggregate,
    LogicalCache,
    LogicalCorrelate,
    LogicalJoin,
    LogicalLookupJoin,
    LogicalRowNumber,
    LogicalWindow,
    Relation,
    inputs_of,
    map_inputs,
)


def share_views(context: Context, relation: Relation) -> Relation:
    """Keep the shared views that are worth it, and inline the others."""
    relation = map_inputs(relation, lambda each: share_views(context, each))
    if not isinstance(relation, LogicalCache) or relation.read_columns is None:
        return relation
    below = push_down_filters(context, relation.input)
    return replace(relation, input=below) if _is_worth_it(below) else relation.input


def _is_worth_it(relation: Relation) -> bool:
    below = [relation]
    for operator in below:
        if isinstance(operator, LogicalRowNumber) and operator.last is None and operator.end is None:
            return False
        below += inputs_of(operator)
    return any(
        isinstance(operator, LogicalJoin | LogicalAggregate | LogicalRowNumber | LogicalLookupJoin | LogicalCorrelate)
        or (isinstance(operator, LogicalWindow) and operator.is_session)
        for operator in below
    )
