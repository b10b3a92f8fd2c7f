"""``aggregate``: a group aggregate, with a state row for each group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, cast

from plans.declarations.row_kinds import ALL_KINDS, INSERT_ONLY, RowKinds
from plans.declarations.tables import Column
from plans.errors import Diagnostic
from plans.operators.spec.columns import check_known, check_names, parse, types_of
from plans.operators.spec.declared import Columns, Declared
from plans.operators.spec.fields import Changelog, Name, Names, OneInput, OperatorId, TypeText
from plans.operators.spec.kind import OperatorKind, WithSettings
from plans.operators.spec.state import KeysUpserted, StateKind, States, its_own_ttl, stated, waits_for_none
from plans.settings.cached import CACHED
from plans.settings.layers import Settings
from plans.settings.phases import PHASES, STRATEGY, PhaseStrategy

FUNCTIONS = ("COUNT", "SUM", "AVG", "MIN", "MAX", "FIRST_VALUE", "LAST_VALUE", "LISTAGG")
ORDERED = ("FIRST_VALUE", "LAST_VALUE", "LISTAGG")
"""Aggregate functions that depend on the order of rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateCall:
    """``function(argument)`` over the rows whose ``filter`` column is true; no argument means ``COUNT(*)``.

    ``function`` is COUNT, SUM, AVG, MIN, MAX, or one whose result depends on the order in which rows come: FIRST_VALUE,
    LAST_VALUE and LISTAGG, which joins texts with ``separator``. ``argument`` and ``filter`` name input columns.
    """

    name: Name
    function: Annotated[str, "The aggregate function.", {"enum": list(FUNCTIONS)}]
    argument: Annotated[Name | None, "The column aggregated; absent in COUNT(*)."] = None
    distinct: Annotated[bool, "Whether equal values count once."] = False
    filter: Annotated[Name | None, "A BOOLEAN column; only rows where it is true count."] = None
    separator: Annotated[
        str | None, "What LISTAGG writes between texts; for no other function.", {"examples": [","]}
    ] = None
    type: TypeText


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate(WithSettings):
    """A group aggregate. Output columns: ``keys`` in order, then the calls. No keys: one global group."""

    id: OperatorId
    inputs: OneInput
    keys: Annotated[Names, "The grouping columns.", {"uniqueItems": True}]
    aggregates: Annotated[tuple[AggregateCall, ...], "The aggregate functions."]
    changelog: Changelog
    state: Annotated[States, "groupAggregateState."]
    settings: Mapping[str, Settings] = field(default_factory=dict)

    @property
    def strategy(self) -> PhaseStrategy:
        """In how many phases it is to run."""
        found = self.settings.get(PHASES.name)
        return "AUTO" if found is None else cast(PhaseStrategy, found.values[STRATEGY])


def _columns(aggregate: Aggregate, inputs: Sequence[Columns], plan: Declared) -> Columns:
    types = types_of(inputs[0])
    keys = tuple(Column(name=key, type=types[key]) for key in aggregate.keys)
    return keys + tuple(Column(name=call.name, type=call.type) for call in aggregate.aggregates)


def _check(aggregate: Aggregate, inputs: Sequence[Columns], plan: Declared, path: str) -> Iterator[Diagnostic]:
    types = types_of(inputs[0])
    yield from check_known(aggregate.keys, types, f"{path}.keys", "key column")
    for call in aggregate.aggregates:
        yield from _check_call(call, types, f"{path}.aggregates.{call.name}")
    yield from check_names([*aggregate.keys, *(call.name for call in aggregate.aggregates)], path, "aggregates")


def _check_call(call: AggregateCall, types: Mapping[str, str], path: str) -> Iterator[Diagnostic]:
    names = [name for name in (call.argument, call.filter) if name is not None]
    unknown = list(check_known(names, types, path, "column of the input"))
    yield from unknown
    if call.argument is None and (call.function != "COUNT" or call.distinct):
        yield Diagnostic(message=f"{call.function} needs an argument", path=path)
    if unknown:
        return
    argument = parse(types[call.argument]) if call.argument is not None else None
    result = parse(call.type)
    if call.filter is not None and parse(types[call.filter]).root != "BOOLEAN":
        message = f"expected a BOOLEAN column, but '{call.filter}' is {types[call.filter]}"
        yield Diagnostic(message=message, path=f"{path}.filter")
    if call.function == "COUNT" and result.root != "BIGINT":
        yield Diagnostic(message=f"COUNT is BIGINT, found {call.type}", path=f"{path}.type")
    if call.function in ("SUM", "AVG") and argument is not None and not (argument.is_numeric and result.is_numeric):
        message = f"{call.function} needs numbers, but '{call.argument}' is {argument} and the result {result}"
        yield Diagnostic(message=message, path=path)
    if (call.function == "LISTAGG") != (call.separator is not None):
        message = "LISTAGG needs a separator" if call.function == "LISTAGG" else "only LISTAGG has a separator"
        yield Diagnostic(message=message, path=f"{path}.separator")
    if call.function == "LISTAGG" and not (argument is not None and argument.is_text and result.is_text):
        yield Diagnostic(message=f"LISTAGG joins texts, found {argument} and {call.type}", path=f"{path}.type")
    of_argument = ("MIN", "MAX", "FIRST_VALUE", "LAST_VALUE")
    if call.function in of_argument and argument is not None and argument.as_nullable() != result.as_nullable():
        message = f"{call.function} has the type of its argument, {argument}, found {call.type}"
        yield Diagnostic(message=message, path=f"{path}.type")


def _changelog(aggregate: Aggregate, inputs: RowKinds, upserted: KeysUpserted) -> RowKinds:
    kinds = {"+I", "+U"} if aggregate.aggregates else {"+I"}
    if inputs != INSERT_ONLY:
        kinds.add("-D")
    if "+U" in kinds and not upserted(aggregate.keys):
        kinds.add("-U")
    return tuple(kind for kind in ALL_KINDS if kind in kinds)


def _reads_order(aggregate: Aggregate) -> bool:
    return any(call.function in ORDERED for call in aggregate.aggregates)


def _state_facts(aggregate: Aggregate, facts: dict[str, Any]) -> dict[str, Any]:
    # A state is laid out by what it adds up, not by what the query calls it.
    calls = [{key: value for key, value in call.items() if key != "name"} for call in facts.get("aggregates", [])]
    return {**facts, "aggregates": calls}


def _bounded(aggregate: Aggregate) -> bool:
    sums = all(call.function in ("COUNT", "SUM", "AVG") and not call.distinct for call in aggregate.aggregates)
    return not aggregate.keys and sums


def one_phase_because(aggregate: Aggregate, *, insert_only: bool, in_order: bool = False) -> str | None:
    """Why the aggregate runs in one phase whatever is set; None if it can run in two.

    ``insert_only`` says whether its input carries no row kinds, ``in_order`` whether its rows are put in the order in
    which they arrived first (:mod:`plans.analysis.row_order`), which sums do not have. Values that must be remembered
    one by one (DISTINCT, and MIN, MAX and what goes by the order of rows, where they may be retracted) are not summed
    up beforehand.
    """
    for call in aggregate.aggregates:
        extreme = call.function in ("MIN", "MAX")
        if call.distinct and not extreme:
            return f"{call.function} DISTINCT keeps every value"
        if (extreme or call.function in ORDERED) and not insert_only:
            return f"{call.function} of a changing input keeps every value"
    return "changes of a source stay in their order" if in_order else None


def _describe(aggregate: Aggregate, plan: Declared) -> str:
    calls = ", ".join(_call(call) for call in aggregate.aggregates)
    keys = ", ".join(aggregate.keys)
    if not calls:
        return f"DISTINCT {keys}"
    return f"GROUP BY {keys}: {calls}" if keys else f"one group: {calls}"


def _call(call: AggregateCall) -> str:
    argument = ("DISTINCT " if call.distinct else "") + (call.argument if call.argument is not None else "*")
    if call.separator is not None:
        argument += f", {call.separator!r}"
    return f"{call.function}({argument})" + (f" FILTER ({call.filter})" if call.filter is not None else "")


AGGREGATE = OperatorKind(
    op="aggregate",
    cls=Aggregate,
    title="aggregate",
    description="A group aggregate; keeps one state row a group. No keys: one global group.",
    state=StateKind(
        names=("groupAggregateState",),
        changelog=_changelog,
        facts=_state_facts,
        holds="groups",
        grows_by="key",
        bounded=_bounded,
        changes_for=its_own_ttl,
        added_rows_find="what they change",
        waits_as=waits_for_none,
    ),
    groups=(PHASES, CACHED),
    one_phase_because=one_phase_because,
    columns=_columns,
    check=_check,
    row_kinds=stated,
    reads_order=_reads_order,
    describe=_describe,
)
