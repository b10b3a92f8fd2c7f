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
    Join,
    LookupJoin,
    Operator,
    OverAggregate,
    Rank,
    Scan,
    Sink,
    SinkMaterialize,
    Sort,
    Union,
    Unnest,
    Values,
)
from hintplan.runtime.build import (
    aggregate,
    calc,
    changelog_normalize,
    correlate,
    deduplicate,
    expand,
    join,
    lookup_join,
    rank,
    scan,
    sink,
    sink_materialize,
    sort,
    union,
    values,
)
from hintplan.runtime.build.builder import OperatorBuilder

BUILDERS: Mapping[type[Operator], OperatorBuilder] = {
    Aggregate: aggregate.BUILDER,
    Calc: calc.BUILDER,
    ChangelogNormalize: changelog_normalize.BUILDER,
    Correlate: correlate.BUILDER,
    Deduplicate: deduplicate.BUILDER,
    Expand: expand.BUILDER,
    Join: join.BUILDER,
    LookupJoin: lookup_join.BUILDER,
    OverAggregate: rank.OVER_BUILDER,
    Rank: rank.BUILDER,
    Scan: scan.BUILDER,
    Sink: sink.BUILDER,
    SinkMaterialize: sink_materialize.BUILDER,
    Sort: sort.BUILDER,
    Union: union.BUILDER,
    Unnest: expand.UNNEST_BUILDER,
    Values: values.BUILDER,
}


def builder_of(operator: Operator) -> OperatorBuilder:
    """Return the builder of ``operator``."""
    return BUILDERS[type(operator)]
