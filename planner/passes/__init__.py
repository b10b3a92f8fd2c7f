"""Rewrites a logical plan after its query is compiled, and before its operators get ids.

Each rule has one module and one function. It takes the context and a relation, and returns a relation with the same
output. ``PASSES`` is the order of the rules.
"""

from __future__ import annotations

from collections.abc import Callable

from hintplan.planner.context import Context
from hintplan.planner.passes.ask_sources import ask_sources
from hintplan.planner.passes.assign_watermarks import assign_watermarks
from hintplan.planner.passes.drop_idle_sorts import drop_idle_sorts
from hintplan.planner.passes.extract_join_keys import extract_join_keys
from hintplan.planner.passes.extract_lookup_keys import extract_lookup_keys
from hintplan.planner.passes.fold_values import fold_values
from hintplan.planner.passes.merge_calcs import merge_calcs
from hintplan.planner.passes.order_joins import order_joins
from hintplan.planner.passes.plan_interval_joins import plan_interval_joins
from hintplan.planner.passes.plan_temporal_joins import plan_temporal_joins
from hintplan.planner.passes.plan_windows import plan_windows
from hintplan.planner.passes.prune_columns import prune_columns
from hintplan.planner.passes.push_down_filters import push_down_filters
from hintplan.planner.passes.share_views import share_views
from hintplan.planner.passes.split_calls import split_calls
from hintplan.planner.relations import Relation

__all__ = ["PASSES", "optimise"]

PASSES: tuple[Callable[[Context, Relation], Relation], ...] = (
    share_views,
    drop_idle_sorts,
    push_down_filters,
    order_joins,
    plan_interval_joins,
    extract_join_keys,
    plan_temporal_joins,
    plan_windows,
    extract_lookup_keys,
    split_calls,
    prune_columns,
    merge_calcs,
    fold_values,
    assign_watermarks,
    ask_sources,
)


def optimise(context: Context, relation: Relation) -> Relation:
    """Apply all passes in order."""
    for rule in PASSES:
        relation = rule(context, relation)
    return relation
