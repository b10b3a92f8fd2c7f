"""The kinds of operators of a plan, a file each: what an operator says, and everything that a plan must know of it."""

from __future__ import annotations

from plans.operators.aggregate import Aggregate, AggregateCall
from plans.operators.calc import Calc, SelectItem
from plans.operators.changelog_normalize import ChangelogNormalize
from plans.operators.correlate import Argument, Correlate
from plans.operators.expand import Expand
from plans.operators.join import Join, JoinKey
from plans.operators.lookup_join import LookupJoin, LookupKey
from plans.operators.output import JoinColumn, JoinType, Side
from plans.operators.scan import Scan
from plans.operators.sink import Sink
from plans.operators.sink_materialize import SinkMaterialize
from plans.operators.sort import Sort, SortKey
from plans.operators.union import Union

__all__ = [
    "Aggregate",
    "AggregateCall",
    "Argument",
    "Calc",
    "ChangelogNormalize",
    "Correlate",
    "Expand",
    "Join",
    "JoinColumn",
    "JoinKey",
    "JoinType",
    "LookupJoin",
    "LookupKey",
    "Operator",
    "Scan",
    "SelectItem",
    "Settable",
    "Side",
    "Sink",
    "SinkMaterialize",
    "Sort",
    "SortKey",
    "Stateful",
    "Union",
]

Operator = (
    Scan
    | Calc
    | Join
    | LookupJoin
    | Correlate
    | Expand
    | Aggregate
    | ChangelogNormalize
    | Union
    | Sort
    | SinkMaterialize
    | Sink
)
Stateful = Join | Aggregate | ChangelogNormalize | SinkMaterialize
"""The operators with state entries, which also state their changelog."""

Settable = LookupJoin | Correlate | Aggregate
"""The operators with groups of settings of their own (:mod:`plans.model.operator_settings`)."""
