"""The kinds of operators of a plan, one file each: the dataclass of a kind and all facts that other modules need.

``KINDS`` is the only list of them. Code that handles all kinds uses this list, or a ``match`` over :data:`Operator`
that ends in ``assert_never``.

>>> [kind.op for kind in KINDS if kind.keeps_state]
['join', 'aggregate', 'deduplicate', 'rank', 'changelog-normalize', 'sink-materialize']
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

from hintplan.plans.declarations.computations import AggregateCall, JoinType, Side, SortKey
from hintplan.plans.declarations.row_kinds import RowKinds
from hintplan.plans.operators.aggregate import AGGREGATE, Aggregate
from hintplan.plans.operators.calc import CALC, Calc, SelectItem
from hintplan.plans.operators.changelog_normalize import CHANGELOG_NORMALIZE, ChangelogNormalize
from hintplan.plans.operators.correlate import CORRELATE, Argument, Correlate
from hintplan.plans.operators.deduplicate import DEDUPLICATE, Deduplicate
from hintplan.plans.operators.expand import EXPAND, Expand
from hintplan.plans.operators.join import JOIN, Join, JoinKey
from hintplan.plans.operators.lookup_join import LOOKUP_JOIN, LookupJoin, LookupKey
from hintplan.plans.operators.over_aggregate import OVER_AGGREGATE, Frame, OverAggregate, OverCall
from hintplan.plans.operators.rank import RANK, Rank
from hintplan.plans.operators.scan import SCAN, Scan
from hintplan.plans.operators.sink import SINK, Sink
from hintplan.plans.operators.sink_materialize import SINK_MATERIALIZE, SinkMaterialize
from hintplan.plans.operators.sort import SORT, Sort
from hintplan.plans.operators.spec.declared import Declared
from hintplan.plans.operators.spec.kind import OperatorKind, TableUse
from hintplan.plans.operators.spec.output import JoinColumn
from hintplan.plans.operators.union import UNION, Union
from hintplan.plans.operators.unnest import UNNEST, Unnest, element_columns
from hintplan.plans.operators.values import VALUES, GivenColumn, Values
from hintplan.plans.settings.layers import Settings
from hintplan.plans.settings.state import StateEntry

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
    "Join",
    "JoinColumn",
    "JoinKey",
    "JoinType",
    "LookupJoin",
    "LookupKey",
    "Operator",
    "OperatorKind",
    "OverAggregate",
    "OverCall",
    "Rank",
    "Scan",
    "SelectItem",
    "Side",
    "Sink",
    "SinkMaterialize",
    "Sort",
    "SortKey",
    "Stateful",
    "Union",
    "Unnest",
    "Values",
    "describe",
    "element_columns",
    "functions_of",
    "kind_of",
    "op_name",
    "state_of",
    "table_of",
    "tables_used",
    "with_changelog",
    "with_inputs",
    "with_settings",
    "with_states",
]

Operator = (
    Scan
    | Values
    | Calc
    | Join
    | LookupJoin
    | Correlate
    | Expand
    | Unnest
    | Aggregate
    | Deduplicate
    | Rank
    | ChangelogNormalize
    | Union
    | Sort
    | OverAggregate
    | SinkMaterialize
    | Sink
)
Stateful = Join | Aggregate | Deduplicate | Rank | ChangelogNormalize | SinkMaterialize
"""The operators with state entries, which also state their changelog."""

KINDS: tuple[OperatorKind, ...] = (
    SCAN,
    VALUES,
    CALC,
    JOIN,
    LOOKUP_JOIN,
    CORRELATE,
    EXPAND,
    UNNEST,
    AGGREGATE,
    DEDUPLICATE,
    RANK,
    CHANGELOG_NORMALIZE,
    UNION,
    SORT,
    OVER_AGGREGATE,
    SINK_MATERIALIZE,
    SINK,
)
BY_OP: Mapping[str, OperatorKind] = {kind.op: kind for kind in KINDS}
_BY_CLASS: Mapping[type[Any], OperatorKind] = {kind.cls: kind for kind in KINDS}


def kind_of(operator: Operator) -> OperatorKind:
    """Return the kind of ``operator``."""
    return _BY_CLASS[type(operator)]


def op_name(operator: Operator) -> str:
    """Return the value of ``op`` for this operator."""
    return kind_of(operator).op


def describe(operator: Operator, plan: Declared) -> str:
    """Describe the operator in words of SQL; trees, pictures and differences all show this description.

    >>> from hintplan.plans.model.plan import Plan
    >>> describe(Scan(id="scan_o", table="o", columns=("a",)), Plan(name="p"))
    'unknown table · 1 of 0 columns'
    """
    return kind_of(operator).describe(operator, plan)


def state_of(operator: Operator) -> tuple[StateEntry, ...]:
    """Return the state entries of ``operator``, which are empty if it is stateless."""
    return cast(Stateful, operator).state if kind_of(operator).keeps_state else ()


def with_states(operator: Operator, entries: Iterable[StateEntry]) -> Operator:
    """Return the operator with these state entries, or unchanged if it is stateless."""
    return replace(cast(Stateful, operator), state=tuple(entries)) if kind_of(operator).keeps_state else operator


def with_changelog(operator: Operator, kinds: RowKinds) -> Operator:
    """Return the operator with ``kinds`` as its changelog, or unchanged if it is stateless."""
    return replace(cast(Stateful, operator), changelog=kinds) if kind_of(operator).keeps_state else operator


def with_inputs(operator: Operator, inputs: tuple[str, ...]) -> Operator:
    """Return the operator with other inputs, as many as it has; an operator without inputs stays unchanged."""
    return replace(cast(Calc, operator), inputs=inputs) if operator.inputs else operator


def with_settings(operator: Operator, settings: Mapping[str, Settings]) -> Operator:
    """Return the operator with these groups of settings, or unchanged if its kind has none."""
    return replace(cast(Calc, operator), settings=settings) if kind_of(operator).groups else operator


def table_of(operator: Operator) -> str | None:
    """Return the table that ``operator`` reads, looks up or writes, or None if it uses none."""
    return cast(Scan, operator).table if kind_of(operator).table is not None else None


def with_table(operator: Operator, table: str) -> Operator:
    """Return ``operator`` with ``table`` in place of the table that it uses."""
    return replace(cast(Scan, operator), table=table)


def functions_of(operator: Operator) -> tuple[str, ...]:
    """Return the user's functions that ``operator`` calls, each once."""
    return kind_of(operator).functions(operator)


def tables_used(operators: Iterable[Operator], *uses: TableUse) -> Iterator[tuple[Operator, str]]:
    """Yield the operators that use a table in one of these ways, each with the name of its table."""
    for operator in operators:
        name = table_of(operator)
        if name is not None and kind_of(operator).table in uses:
            yield operator, name
