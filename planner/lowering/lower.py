"""The function that lowers each kind of relation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from hintplan.planner.hints.ledger import Ledger
from hintplan.planner.lowering.aggregates import lower_aggregate, lower_expand
from hintplan.planner.lowering.builder import Builder
from hintplan.planner.lowering.calcs import lower_cached, lower_calc, lower_union
from hintplan.planner.lowering.columns import Lowered
from hintplan.planner.lowering.event_time import (
    lower_interval_join,
    lower_temporal_join,
    lower_watermark,
    lower_window,
    lower_window_aggregate,
    lower_window_join,
    lower_window_row_number,
)
from hintplan.planner.lowering.joins import lower_correlate, lower_join, lower_lookup_join, lower_unnest
from hintplan.planner.lowering.sources_and_sinks import lower_scan, lower_values
from hintplan.planner.lowering.windows import lower_over, lower_row_number, lower_sort
from hintplan.planner.relations import (
    LogicalAggregate,
    LogicalCache,
    LogicalCalc,
    LogicalCorrelate,
    LogicalExpand,
    LogicalJoin,
    LogicalLookupJoin,
    LogicalOver,
    LogicalRowNumber,
    LogicalScan,
    LogicalSort,
    LogicalUnion,
    LogicalUnnest,
    LogicalValues,
    LogicalWatermark,
    LogicalWindow,
    LogicalWindowAggregate,
    Relation,
)


def new_builder(ledger: Ledger, config: Mapping[str, str], *, batch: bool) -> Builder:
    """Return an empty builder that lowers all kinds of relations."""
    return Builder(ledger, config, _lower, batch=batch)


def _lower(builder: Builder, relation: Relation, exact: bool) -> Lowered:
    match relation:
        case LogicalScan():
            return lower_scan(builder, relation)
        case LogicalValues():
            return lower_values(builder, relation)
        case LogicalCalc():
            return lower_calc(builder, relation, exact=exact)
        case LogicalJoin() if relation.windows is not None:
            return lower_window_join(builder, relation)
        case LogicalJoin() if relation.interval is not None:
            return lower_interval_join(builder, relation)
        case LogicalJoin() if relation.as_of is not None:
            return lower_temporal_join(builder, relation, relation.as_of)
        case LogicalJoin():
            return lower_join(builder, relation)
        case LogicalLookupJoin():
            return lower_lookup_join(builder, relation)
        case LogicalCorrelate():
            return lower_correlate(builder, relation)
        case LogicalUnnest():
            return lower_unnest(builder, relation)
        case LogicalExpand():
            return lower_expand(builder, relation)
        case LogicalAggregate():
            return lower_aggregate(builder, relation, exact=exact)
        case LogicalWindowAggregate():
            return lower_window_aggregate(builder, relation, exact=exact)
        case LogicalUnion():
            return lower_union(builder, relation)
        case LogicalSort():
            return lower_sort(builder, relation, exact=exact)
        case LogicalRowNumber() if relation.attached is not None:
            return lower_window_row_number(builder, relation, exact=exact)
        case LogicalRowNumber():
            return lower_row_number(builder, relation, exact=exact)
        case LogicalOver():
            return lower_over(builder, relation, exact=exact)
        case LogicalWindow():
            return lower_window(builder, relation, exact=exact)
        case LogicalWatermark():
            return lower_watermark(builder, relation, exact=exact)
        case LogicalCache():
            return lower_cached(builder, relation)
        case _:
            assert_never(relation)
