"""``aggregate``: a group aggregate, with one row of state per group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Annotated, Any, cast

from hintplan.plans.declarations.computations import BUILT_IN, COLLECTIONS, ORDERED, VARIANCES, AggregateCall
from hintplan.plans.declarations.fields import Changelog, Names, OneInput, OperatorId
from hintplan.plans.declarations.row_kinds import ALL_KINDS, INSERT_ONLY, RowKinds
from hintplan.plans.declarations.tables import Column, Function
from hintplan.plans.declarations.types import DataType
from hintplan.plans.errors import Diagnostic
from hintplan.plans.frozen import frozen
from hintplan.plans.operators.contract.columns import (
    check_argument,
    check_known,
    check_names,
    parse,
    same_type,
    types_of,
)
from hintplan.plans.operators.contract.declared import Columns, Declared, Inputs
from hintplan.plans.operators.contract.operator import NO_FUNCTIONS
from hintplan.plans.operators.contract.stateful import KeysUpserted, Stateful, States
from hintplan.plans.settings.cached import CACHED
from hintplan.plans.settings.layers import Settings
from hintplan.plans.settings.phases import PHASES, STRATEGY, PhaseStrategy
from hintplan.plans.text.names import did_you_mean


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
        return tuple(dict.fromkeys(call.function for call in self.aggregates if call.is_users))

    @property
    def reads_order(self) -> bool:
        return any(call.function in ORDERED or call.is_users for call in self.aggregates)

    def output_columns(self, inputs: Inputs) -> Columns:
        types = types_of(inputs.only)
        keys = tuple(Column(name=key, type=types[key]) for key in self.keys)
        return keys + tuple(Column(name=call.name, type=call.type) for call in self.aggregates)

    def check(self, inputs: Inputs) -> Iterator[Diagnostic]:
        types = types_of(inputs.only)
        yield from check_known(self.keys, types, f"{self.path}.keys", "key column")
        for call in self.aggregates:
            here = f"{self.path}.aggregates.{call.name}"
            yield from (
                _check_users_call(call, types, inputs.plan, here) if call.is_users else _check_call(call, types, here)
            )
        yield from check_names([*self.keys, *(call.name for call in self.aggregates)], self.path, "aggregates")

    def takes(self, plan: Declared) -> RowKinds | None:
        """Return insert-only if the aggregate calls a function that cannot retract a row, or None for any row kinds."""
        called = (plan.functions.get(name) for name in self.functions)
        return INSERT_ONLY if any(function is not None and not function.retracts for function in called) else None

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

        Partial sums lose the order of arrival (:mod:`hintplan.plans.analysis.row_order`). Values that must be kept one
        by one cannot be summed up beforehand: with DISTINCT, and where rows may be retracted for MIN, MAX and functions
        that depend on the order of rows. A user's function must have ``merge``. Its input must be insert-only, because
        a row can only be retracted from the accumulator to which it was added.
        """
        for call in self.aggregates:
            extreme = call.function in ("MIN", "MAX")
            if call.distinct and not extreme:
                return f"{call.function} DISTINCT keeps every value"
            if call.is_users and not insert_only:
                return f"{call.function} takes rows of a changing input back from what it has of them"
            if call.is_users and not (call.function in functions and functions[call.function].merges):
                return f"{call.function} has no merge"
            if call.function in VARIANCES and not insert_only:
                return f"{call.function} takes values of a changing input from what it is of all before them"
            if (extreme or call.function in ORDERED) and not insert_only:
                return f"{call.function} of a changing input keeps every value"
        return "changes of a source stay in their order" if in_order else None

    def describe(self, plan: Declared) -> str:
        calls = ", ".join(_call(call) for call in self.aggregates)
        keys = ", ".join(self.keys)
        if not calls:
            return f"DISTINCT {keys}"
        return f"GROUP BY {keys}: {calls}" if keys else f"one group: {calls}"


def _check_users_call(call: AggregateCall, types: Mapping[str, str], plan: Declared, path: str) -> Iterator[Diagnostic]:
    function = plan.functions.get(call.function)
    if function is None or function.kind != "aggregate":
        callable_names = (
            *BUILT_IN,
            *(name for name, declared in plan.functions.items() if declared.kind == "aggregate"),
        )
        hint = did_you_mean(call.function, callable_names, what="aggregate functions")
        message = f"there is no aggregate function '{call.function}'"
        yield Diagnostic(message=message, path=f"{path}.function", hint=hint)
        return
    if call.argument is not None or call.separator is not None:
        part = "argument" if call.argument is not None else "separator"
        message = f"'{call.function}' is a function of the user's, and has no {part}"
        yield Diagnostic(message=message, path=f"{path}.{part}", hint="its columns belong in 'arguments'")
    wanted = function.arguments
    if len(call.arguments) != len(wanted):
        message = f"'{call.function}' takes {len(wanted)} arguments ({', '.join(wanted)}), found {len(call.arguments)}"
        yield Diagnostic(message=message, path=f"{path}.arguments")
        return
    if call.distinct and not wanted:
        yield Diagnostic(message="DISTINCT needs an argument", path=f"{path}.distinct")
    for index, (column, declared_type) in enumerate(zip(call.arguments, wanted, strict=True)):
        yield from check_argument(call.function, column, declared_type, types, f"{path}.arguments[{index}]")
    yield from _check_filter(call, types, path)
    for returned in function.output[:1]:
        if not same_type(call.type, returned.type):
            message = f"'{call.function}' returns {returned.type}, found {call.type}"
            yield Diagnostic(message=message, path=f"{path}.type")


def _check_filter(call: AggregateCall, types: Mapping[str, str], path: str) -> Iterator[Diagnostic]:
    if call.filter is None:
        return
    unknown = list(check_known([call.filter], types, path, "column of the input"))
    yield from unknown
    if not unknown and parse(types[call.filter]).root != "BOOLEAN":
        message = f"expected a BOOLEAN column, but '{call.filter}' is {types[call.filter]}"
        yield Diagnostic(message=message, path=f"{path}.filter")


def _check_call(call: AggregateCall, types: Mapping[str, str], path: str) -> Iterator[Diagnostic]:
    if call.arguments:
        message = f"{call.function} has one argument, which belongs in 'argument'"
        yield Diagnostic(message=message, path=f"{path}.arguments")
    yield from _check_filter(call, types, path)
    columns = [call.argument] if call.argument is not None else []
    unknown = list(check_known(columns, types, path, "column of the input"))
    yield from unknown
    if call.argument is None and (call.function != "COUNT" or call.distinct):
        yield Diagnostic(message=f"{call.function} needs an argument", path=path)
    if unknown:
        return
    argument = parse(types[call.argument]) if call.argument is not None else None
    result = parse(call.type)
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
    if call.function in VARIANCES and (argument is None or not argument.is_numeric or result.root != "DOUBLE"):
        message = f"{call.function} makes DOUBLE of numbers, found {argument} and {call.type}"
        yield Diagnostic(message=message, path=f"{path}.type")
    if call.function in COLLECTIONS and argument is not None:
        wanted = DataType(root=COLLECTIONS[call.function], children=(argument.as_nullable(),))
        if result.as_nullable() != wanted:
            message = f"{call.function} makes {wanted} of {argument}, found {call.type}"
            yield Diagnostic(message=message, path=f"{path}.type")
    if call.function == "COLLECT" and argument is not None and argument.contains_entries:
        message = f"COLLECT does not take {argument.as_nullable()}: a MULTISET has no elements with a MAP or MULTISET"
        yield Diagnostic(message=message, path=f"{path}.argument", hint="aggregate it with ARRAY_AGG")
    of_argument = ("MIN", "MAX", "FIRST_VALUE", "LAST_VALUE")
    if call.function in of_argument and argument is not None and argument.as_nullable() != result.as_nullable():
        message = f"{call.function} has the type of its argument, {argument}, found {call.type}"
        yield Diagnostic(message=message, path=f"{path}.type")


def _call(call: AggregateCall) -> str:
    arguments = ", ".join(call.arguments) if call.is_users else call.argument if call.argument is not None else "*"
    argument = ("DISTINCT " if call.distinct else "") + arguments
    if call.separator is not None:
        argument += f", {call.separator!r}"
    return f"{call.function}({argument})" + (f" FILTER ({call.filter})" if call.filter is not None else "")
