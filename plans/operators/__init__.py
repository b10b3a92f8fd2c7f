"""The operators of a plan, one file each: a frozen dataclass with all facts of the operator that other modules need.

``KINDS`` is the only list of their classes, except for ``LateRows``, which no plan file contains. Code that handles all
operators uses this list, and the methods of :class:`Operator`.

>>> [kind.op for kind in KINDS if kind.table_use is not None]
['scan', 'lookup-join', 'sink']
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from hintplan.plans.declarations.computations import AggregateCall, JoinType, Side, SortKey
from hintplan.plans.operators.aggregate import Aggregate
from hintplan.plans.operators.calc import Calc, SelectItem
from hintplan.plans.operators.changelog_normalize import ChangelogNormalize
from hintplan.plans.operators.contract.operator import Operator, TableUse
from hintplan.plans.operators.contract.output import JoinColumn
from hintplan.plans.operators.contract.stateful import Stateful
from hintplan.plans.operators.correlate import Argument, Correlate
from hintplan.plans.operators.deduplicate import Deduplicate
from hintplan.plans.operators.expand import Expand
from hintplan.plans.operators.interval_join import IntervalJoin
from hintplan.plans.operators.join import Join, JoinKey
from hintplan.plans.operators.late_rows import LateRows
from hintplan.plans.operators.lookup_join import LookupJoin, LookupKey
from hintplan.plans.operators.over_aggregate import Frame, OverAggregate, OverCall
from hintplan.plans.operators.rank import Rank
from hintplan.plans.operators.requests.requesting import Requesting
from hintplan.plans.operators.scan import Scan
from hintplan.plans.operators.sink import Sink
from hintplan.plans.operators.sink_materialize import SinkMaterialize
from hintplan.plans.operators.sort import Sort
from hintplan.plans.operators.temporal_join import TemporalJoin
from hintplan.plans.operators.temporal_sort import TemporalSort
from hintplan.plans.operators.union import Union
from hintplan.plans.operators.unnest import Unnest, element_columns
from hintplan.plans.operators.values import GivenColumn, Values
from hintplan.plans.operators.watermark_assigner import WatermarkAssigner
from hintplan.plans.operators.window_aggregate import WindowAggregate
from hintplan.plans.operators.window_deduplicate import WindowDeduplicate
from hintplan.plans.operators.window_join import WindowJoin
from hintplan.plans.operators.window_rank import WindowRank
from hintplan.plans.operators.window_table_function import WindowTableFunction

__all__ = [
    "BY_OP",
    "KINDS",
    "Aggregate",
    "AggregateCall",
    "Argument",
    "Calc",
    "ChangelogNormalize",
    "Correlate",
    "Deduplicate",
    "Expand",
    "Frame",
    "GivenColumn",
    "IntervalJoin",
    "Join",
    "JoinColumn",
    "JoinKey",
    "JoinType",
    "LateRows",
    "LookupJoin",
    "LookupKey",
    "Operator",
    "OverAggregate",
    "OverCall",
    "Rank",
    "Requesting",
    "Scan",
    "SelectItem",
    "Side",
    "Sink",
    "SinkMaterialize",
    "Sort",
    "SortKey",
    "Stateful",
    "TemporalJoin",
    "TemporalSort",
    "Union",
    "Unnest",
    "Values",
    "WatermarkAssigner",
    "WindowAggregate",
    "WindowDeduplicate",
    "WindowJoin",
    "WindowRank",
    "WindowTableFunction",
    "element_columns",
    "tables_used",
]

KINDS: tuple[type[Operator], ...] = (
    Scan,
    Values,
    Calc,
    Join,
    LookupJoin,
    Correlate,
    Expand,
    Unnest,
    Aggregate,
    Deduplicate,
    Rank,
    ChangelogNormalize,
    WatermarkAssigner,
    WindowTableFunction,
    WindowAggregate,
    WindowRank,
    WindowDeduplicate,
    WindowJoin,
    IntervalJoin,
    TemporalJoin,
    TemporalSort,
    Union,
    Sort,
    OverAggregate,
    SinkMaterialize,
    Sink,
)
BY_OP: Mapping[str, type[Operator]] = {kind.op: kind for kind in KINDS}


def tables_used(operators: Iterable[Operator], *uses: TableUse) -> Iterator[tuple[Operator, str]]:
    """Yield the operators that use a table in one of these ways, each with the name of its table."""
    for operator in operators:
        if operator.table is not None and operator.table_use in uses:
            yield operator, operator.table
