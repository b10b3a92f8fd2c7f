"""What changes of operators and tables do to a running job, by what becomes of the states that they are part of.

Settings have their effects by name (:mod:`hintplan.plans.settings.effects`). Facts have none by themselves: another
filter matters to the state above it, and to none below. So each change of a fact gets the worst that becomes of a query
or a state it leads to, as :mod:`hintplan.plans.compare.carryover` has it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hintplan.plans.analysis.streaming_queries import Query, queries
from hintplan.plans.compare.carryover import QueryVerdict, carried, continued
from hintplan.plans.compare.change import Change
from hintplan.plans.compare.keeping import keepable
from hintplan.plans.compare.query_record import operators_of, query_records
from hintplan.plans.connectors.table import source_kinds
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import functions_of, state_of
from hintplan.plans.settings.effects import (
    BEGUN,
    DROPPED,
    INCOMPATIBLE,
    LEFT_BEHIND,
    LEVELS,
    UNAFFECTED,
    UNREADABLE,
    Effect,
    abandoned,
    emptied,
)


@dataclass(frozen=True, slots=True)
class _Fate:
    """What an operator leads to, in all its queries."""

    refused: set[str] = field(default_factory=set)
    empty: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    left: set[str] = field(default_factory=set)
    dropped: set[str] = field(default_factory=set)
    goes_on: set[str] = field(default_factory=set)

    def effect(self, *, stateful: bool, keepable: Collection[str]) -> Effect:
        if self.refused:
            return UNREADABLE if stateful else INCOMPATIBLE
        if self.empty:
            return emptied(self.empty, keepable)
        if self.gone:
            return abandoned(self.gone)
        if self.left:
            return LEFT_BEHIND
        if self.dropped:
            return DROPPED
        return UNAFFECTED if self.goes_on else BEGUN


def with_consequences(changes: Sequence[Change], before: Plan, after: Plan, renamed: Mapping[str, str]) -> list[Change]:
    """``changes`` with the effect of each that is a fact's; ``renamed`` leads from old ids to new ones."""
    was, now = _fates(before, after)
    kept = keepable(before, after)
    former = {new: old for old, new in renamed.items()}
    stateful = {operator.id for plan in (before, after) for operator in plan.operators if state_of(operator)}

    def effect(names: Iterable[str]) -> Effect:
        found = [
            side[key].effect(stateful=name in stateful, keepable=kept)
            for name in names
            for side, key in ((now, name), (was, former.get(name, name)))
            if key in side
        ]
        known = [one for one in found if one is not BEGUN] or found
        return max(known, key=lambda one: LEVELS.index(one.level), default=UNAFFECTED)

    def changed(change: Change) -> Change:
        if change.subject == "operator":
            found = replace(change, effect=effect([change.name]))
            if change.kind == "-/+" and found.keeps_state:
                return replace(found, kind="~")
            return found
        if change.subject == "function":
            called = [
                operator.id
                for plan in (before, after)
                for operator in plan.operators
                if state_of(operator) and change.name in functions_of(operator)
            ]
            return replace(change, effect=effect(called)) if called else change
        if change.subject == "table" or _is_source_kind(change, before, after):
            table = change.path.removeprefix("tables.")
            users = [
                operator.id
                for plan in (before, after)
                for operator in plan.operators
                if (name := getattr(operator, "table", None)) and (table == name or table.startswith(f"{name}."))
            ]
            return replace(change, effect=effect(users))
        return change

    return [changed(change) for change in changes]


def emptied_operators(before: Plan, after: Plan) -> frozenset[str]:
    """Return the operators of ``after`` whose state is there in a checkpoint of ``before``, and starts empty."""
    if before.mode == "batch" or after.mode == "batch":
        return frozenset()
    recorded = query_records(before, queries(before))
    verdicts = carried(recorded, query_records(after, continued(after, recorded, before)))
    lost = ("starts empty", "cannot be read")
    return frozenset(s.operator for verdict in verdicts for s in verdict.states if s.outcome in lost)


def _is_source_kind(change: Change, before: Plan, after: Plan) -> bool:
    """Whether an option decides on the row kinds of a source, which is no setting to its readers."""
    name, _, option = change.path.removeprefix("tables.").partition(".options.")
    if not option or change.subject != "setting" or name not in before.tables or name not in after.tables:
        return False
    return source_kinds(before.tables[name]) != source_kinds(after.tables[name])


def _fates(before: Plan, after: Plan) -> tuple[dict[str, _Fate], dict[str, _Fate]]:
    """What becomes of what each operator leads to: of those of the old plan, and of those of the new one."""
    running = queries(before)
    recorded = query_records(before, running)
    going = continued(after, recorded, before)
    verdicts = carried(recorded, query_records(after, going))
    return _of_plan(before, running, verdicts, old=True), _of_plan(after, going, verdicts, old=False)


def _of_plan(plan: Plan, running: Sequence[Query], verdicts: Sequence[QueryVerdict], *, old: bool) -> dict[str, _Fate]:
    by_query = {verdict.query: verdict for verdict in verdicts}
    found: dict[str, _Fate] = {}
    operators = plan.by_id
    for query in running:
        verdict = by_query[query.id]
        if verdict.outcome == "new" and old:
            continue
        below = {sink: operators_of(operators, query, top=sink) for sink in query.sinks}
        lost = verdict.sinks if old else ()
        stays = {name for sink, names in below.items() if sink not in lost for name in names}
        left = {source.operator for source in verdict.sources if source.outcome == "left behind" and old}
        begun = {source.operator for source in verdict.sources if source.outcome == "new" and not old}
        for name in dict.fromkeys(name for names in below.values() for name in names):
            fate = found.setdefault(name, _Fate())
            if verdict.outcome == "refused":
                fate.refused.add(query.id)
            elif verdict.outcome == "left behind":
                fate.left.add(query.id)
            elif name not in stays or (left and not left.isdisjoint(operators_of(operators, query, top=name))):
                fate.dropped.add(query.id)
            elif verdict.outcome == "goes on" and name not in begun:
                fate.goes_on.add(query.id)
        for state in verdict.states if verdict.outcome == "goes on" else ():
            made_of = operators_of(operators, query, top=state.operator)
            if state.outcome == "starts empty":
                for name in made_of:
                    found.setdefault(name, _Fate()).empty.add(state.operator)
            elif state.outcome == "left behind" and old:
                readers = (reader.id for reader in plan.readers[state.operator])
                for name in (*made_of, *readers):
                    found.setdefault(name, _Fate()).gone.add(state.operator)
    return found
