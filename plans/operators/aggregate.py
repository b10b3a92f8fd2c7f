"""``aggregate``: a group aggregate, with one row of state per group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Annotated, Any, cast

from hintplan.plans.declarations.computations import VARIANCES, AggregateCall
from hintplan.plans.declarations.fields import Changelog, Names, OneInput, OperatorId
from hintplan.plans.declarations.row_kinds import ALL_KINDS, INSERT_ONLY, RowKinds
from hintplan.plans.declarations.tables import Column, Function
from hintplan.plans.errors import Diagnostic
from hintplan.plans.frozen import frozen
from hintplan.plans.operators.contract.calls import (
    check_calls,
    depend_on_order,
    describe_calls,
    needs_every_row,
    rows_taken,
    users_functions,
)
from hintplan.plans.operators.contract.columns import check_known, check_names, types_of
from hintplan.plans.operators.contract.declared import Columns, Declared, Inputs
from hintplan.plans.operators.contract.operator import NO_FUNCTIONS
from hintplan.plans.operators.contract.stateful import KeysUpserted, Stateful, States
from hintplan.plans.settings.cached import CACHED
from hintplan.plans.settings.layers import Settings
from hintplan.plans.settings.phases import PHASES, STRATEGY, PhaseStrategy


@frozen
class Aggregate(Stateful):
    """A group aggregate.

    Its output columns are ``keys`` in order, then the calls; without keys there is one global group.
    """

    op = "aggregate"
    title = "aggregate"
    description = "A group aggregate; keeps one state row a group. No keys: one global group."
    groups = (PHASES, CACHED)
    state_names = ("groupAggregateState",)
    state_holds = "groups"
    state_grows_by = "key"

    id: OperatorId
    inputs: OneInput
    keys: Annotated[Names, "The grouping columns.", {"uniqueItems": True}]
    aggregates: Annotated[tuple[AggregateCall, ...], "The aggregate functions."]
    changelog: Changelog
    state: Annotated[States, "groupAggregateState."]
    settings: Mapping[str, Settings] = field(default_factory=dict)

    @property
    def strategy(self) -> PhaseStrategy:
        """The setting that decides between one and two phases."""
        phases = self.settings.get(PHASES.name)
        return "AUTO" if phases is None else cast(PhaseStrategy, phases.values[STRATEGY])

    @property
    def functions(self) -> tuple[str, ...]:
        return users_functions(self.aggregates)

    @property
    def reads_order(self) -> bool:
        return depend_on_order(self.aggregates)

    def output_columns(self, inputs: Inputs) -> Columns:
        types = types_of(inputs.only)
        keys = tuple(Column(name=key, type=types[key]) for key in self.keys)
        return keys + tuple(Column(name=call.name, type=call.type) for call in self.aggregates)

    def check(self, inputs: Inputs) -> Iterator[Diagnostic]:
        types = types_of(inputs.only)
        yield from check_known(self.keys, types, f"{self.path}.keys", "key column")
        yield from check_calls(self.aggregates, types, inputs.plan, self.path)
        yield from check_names([*self.keys, *(call.name for call in self.aggregates)], self.path, "aggregates")

    def takes(self, plan: Declared) -> RowKinds | None:
        return rows_taken(self.aggregates, plan)

    def derived_changelog(self, inputs: RowKinds, upserted: KeysUpserted) -> RowKinds:
        kinds = {"+I", "+U"} if self.aggregates else {"+I"}
        if inputs != INSERT_ONLY:
            kinds.add("-D")
        if "+U" in kinds and not upserted(self.keys):
            kinds.add("-U")
        return tuple(kind for kind in ALL_KINDS if kind in kinds)

    @property
    def state_is_bounded(self) -> bool:
        summed = ("COUNT", "SUM", "AVG", *VARIANCES)
        sums = all(call.function in summed and not call.distinct for call in self.aggregates)
        return not self.keys and sums

    def state_facts(self, facts: dict[str, Any]) -> dict[str, Any]:
        # The names of calls are aliases in the query, which do not affect the layout of state.
        calls = [{key: value for key, value in call.items() if key != "name"} for call in facts.get("aggregates", [])]
        return {**facts, "aggregates": calls}

    def one_phase_because(
        self, *, insert_only: bool, in_order: bool = False, functions: Mapping[str, Function] = NO_FUNCTIONS
    ) -> str | None:
        """Return the reason why the aggregate always runs in one phase, or None if it can run in two.

        Partial sums lose the order of arrival (:mod:`hintplan.plans.analysis.row_order`).
        """
        reason = needs_every_row(self.aggregates, insert_only=insert_only, functions=functions)
        if reason is not None:
            return reason
        return "changes of a source stay in their order" if in_order else None

    def describe(self, plan: Declared) -> str:
        calls = describe_calls(self.aggregates)
        keys = ", ".join(self.keys)
        if not calls:
            return f"DISTINCT {keys}"
        return f"GROUP BY {keys}: {calls}" if keys else f"one group: {calls}"
