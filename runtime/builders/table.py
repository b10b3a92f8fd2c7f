"""The table of builders: one per kind of operator, for streams and for batch jobs."""

from __future__ import annotations

from collections.abc import Mapping

from hintplan.plans.operators import (
    Aggregate,
    Calc,
    ChangelogNormalize,
    Correlate,
    Deduplicate,
    Expand,
    IntervalJoin,
    Join,
    LateRows,
    LookupJoin,
    Operator,
    OverAggregate,
    Rank,
    Scan,
    Sink,
    SinkMaterialize,
    Sort,
    TemporalJoin,
    TemporalSort,
    Union,
    Unnest,
    Values,
    WatermarkAssigner,
    WindowAggregate,
    WindowDeduplicate,
    WindowJoin,
    WindowRank,
    WindowTableFunction,
)
from hintplan.runtime.builders import (
    aggregate,
    calc,
    correlate,
    expand,
    interval_join,
    join,
    late_rows,
    lookup_join,
    rank,
    scan,
    sink,
    sort,
    temporal_join,
    union,
    values,
    watermark,
    window_aggregate,
    window_join,
    window_rows,
    window_table_function,
)
from hintplan.runtime.builders.builder import OperatorBuilder, with_state

_ENGINE_ONLY = OperatorBuilder(stream=with_state(), batch=None)
"""For kinds that exist only in streams, with a kernel on the engine and without metrics of their own."""

BUILDERS: Mapping[type[Operator], OperatorBuilder] = {
    Aggregate: aggregate.BUILDER,
    Calc: calc.BUILDER,
    ChangelogNormalize: _ENGINE_ONLY,
    Correlate: correlate.BUILDER,
    Deduplicate: rank.DEDUPLICATE_BUILDER,
    Expand: expand.BUILDER,
    IntervalJoin: interval_join.BUILDER,
    Join: join.BUILDER,
    LateRows: late_rows.BUILDER,
    LookupJoin: lookup_join.BUILDER,
    OverAggregate: rank.OVER_BUILDER,
    Rank: rank.BUILDER,
    Scan: scan.BUILDER,
    Sink: sink.BUILDER,
    SinkMaterialize: _ENGINE_ONLY,
    Sort: sort.BUILDER,
    TemporalJoin: temporal_join.BUILDER,
    TemporalSort: _ENGINE_ONLY,
    Union: union.BUILDER,
    Unnest: expand.UNNEST_BUILDER,
    Values: values.BUILDER,
    WatermarkAssigner: watermark.BUILDER,
    WindowAggregate: window_aggregate.BUILDER,
    WindowDeduplicate: window_rows.DEDUPLICATE_BUILDER,
    WindowJoin: window_join.BUILDER,
    WindowRank: window_rows.BUILDER,
    WindowTableFunction: window_table_function.BUILDER,
}


def builder_of(operator: Operator) -> OperatorBuilder:
    """Return the builder of ``operator``."""
    return BUILDERS[type(operator)]
