"""Leaves a view that several places read whole, for all of them, if that spares a state or somebody who is asked.

What readers select and filter then changes nothing below. A view that is cheap to compute is left to each of them, and
so is one with a ROW_NUMBER() whose last number only a reader says.
"""

from __future__ import annotations

from dataclasses import replace

from hintplan.planner.context import Context
from hintplan.planner.passes.push_down_filters import push_down_filters
from hintplan.planner.relations import (
    Aggregate,
    Cached,
    Correlate,
    Join,
    LookupJoin,
    Relation,
    RowNumber,
    inputs_of,
    map_inputs,
)


def share_views(context: Context, relation: Relation) -> Relation:
    """Keep the views that are to be shared as they are for all, or take away that they are."""
    relation = map_inputs(relation, lambda each: share_views(context, each))
    if not isinstance(relation, Cached) or relation.noted is None:
        return relation
    below = push_down_filters(context, relation.input)
    return replace(relation, input=below) if _is_worth_it(below) else relation.input


def _is_worth_it(relation: Relation) -> bool:
    below = [relation]
    for each in below:
        if isinstance(each, RowNumber) and each.last is None and each.end is None:
            return False
        below += inputs_of(each)
    return any(isinstance(each, Join | Aggregate | RowNumber | LookupJoin | Correlate) for each in below)
