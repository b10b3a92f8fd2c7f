"""Effects of changed operators and tables on a running job, derived from the verdicts on its states.

The effect of a setting depends only on its name (:mod:`hintplan.plans.settings.effects`). The effect of a fact depends
on its place in the plan: a changed filter affects the states above it, and none below. So a changed fact gets the worst
verdict on any query or state above it, as decided by :mod:`hintplan.plans.compare.carryover`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hintplan.plans.analysis.streaming_queries import Query, queries
from hintplan.plans.compare.carryover import QueryVerdict, carried, continued
from hintplan.plans.compare.change import Change
from hintplan.plans.compare.keeping import keepable
from hintplan.plans.compare.lineage import keeps_state
from hintplan.plans.compare.query_record import operators_of, query_records
from hintplan.plans.connectors.table import source_kinds
from hintplan.plans.model.plan import Plan
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
    """The verdicts on everything above an operator, in all queries that contain it."""

    refused: set[str] = field(default_factory=set)
    empty: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    left: set[str] = field(default_factory=set)
    dropped: set[str] = field(default_factory=set)
    goes_on: set[str] = field(default_factory=set)

    def effect(self, *, stateful: bool, keepable: Collection[str], states: int) -> Effect:
        if self.refused:
            return UNREADABLE if stateful else INCOMPATIBLE
        if self.empty:
            return emptied(self.empty, keepable, states)
        if self.gone:
            return abandoned(self.gone)
        if self.left:
            return LEFT_BEHIND
        if self.dropped:
            return DROPPED
        return UNAFFECTED if self.goes_on else BEGUN


def with_consequences(changes: Sequence[Change], before: Plan, after: Plan, renamed: Mapping[str, str]) -> list[Change]:
    """Return ``changes`` with the effects of changed facts; ``renamed`` maps old ids to new ones."""
    was, now = _fates(before, after)
    kept = keepable(before, after)
    states = sum(keeps_state(operator) for operator in after.operators)
    former = {new: old for old, new in renamed.items()}
    stateful = {operator.id for plan in (before, after) for operator in plan.operators if operator.state}

    def effect(names: Iterable[str]) -> Effect:
        effects = [
            side[key].effect(stateful=name in stateful, keepable=kept, states=states)
            for name in names
            for side, key in ((now, name), (was, former.get(name, name)))
            if key in side
        ]
        candidates = [candidate for candidate in effects if candidate is not BEGUN] or effects
        return max(candidates, key=lambda candidate: LEVELS.index(candidate.level), default=UNAFFECTED)

    def changed(change: Change) -> Change:
        if change.subject == "operator":
            judged = replace(change, effect=effect([change.name]))
            if change.kind == "-/+" and judged.keeps_state:
                return replace(judged, kind="~")
            return judged
        if change.subject == "function":
            called = [
                operator.id
                for plan in (before, after)
                for operator in plan.operators
                if operator.state and change.name in operator.functions
            ]
            return replace(change, effect=effect(called)) if called else change
        if change.subject == "table" or _is_source_kind(change, before, after):
            table = change.path.removeprefix("tables.")
            users = [
                operator.id
                for plan in (before, after)
                for operator in plan.operators
                if (name := operator.table) and (table == name or table.startswith(f"{name}."))
            ]
            return replace(change, effect=effect(users))
        return change

    return [changed(change) for change in changes]


def emptied_operators(before: Plan, after: Plan) -> frozenset[str]:
    """Return the operators of ``after`` whose state is in a checkpoint of ``before`` and starts empty."""
    if before.mode == "batch" or after.mode == "batch":
        return frozenset()
    recorded = query_records(before, queries(before))
    verdicts = carried(recorded, query_records(after, continued(after, recorded, before)))
    lost = ("starts empty", "cannot be read")
    return frozenset(s.operator for verdict in verdicts for s in verdict.states if s.outcome in lost)


def _is_source_kind(change: Change, before: Plan, after: Plan) -> bool:
    """Return True if the option changes the row kinds of a source, and so is more than a setting to its readers."""
    name, _, option = change.path.removeprefix("tables.").partition(".options.")
    if not option or change.subject != "setting" or name not in before.tables or name not in after.tables:
        return False
    return source_kinds(before.tables[name]) != source_kinds(after.tables[name])


def _fates(before: Plan, after: Plan) -> tuple[dict[str, _Fate], dict[str, _Fate]]:
    """Return the fate of each operator of ``before``, and the fate of each operator of ``after``."""
    running = queries(before)
    recorded = query_records(before, running)
    going = continued(after, recorded, before)
    verdicts = carried(recorded, query_records(after, going))
    return _of_plan(before, running, verdicts, old=True), _of_plan(after, going, verdicts, old=False)


def _of_plan(plan: Plan, running: Sequence[Query], verdicts: Sequence[QueryVerdict], *, old: bool) -> dict[str, _Fate]:
    by_query = {verdict.query: verdict for verdict in verdicts}
    fates: dict[str, _Fate] = {}
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
            fate = fates.setdefault(name, _Fate())
            if verdict.outcome == "refused":
                fate.refused.add(query.id)
            elif verdict.outcome == "left behind":
                fate.left.add(query.id)
            elif name not in stays or (left and not left.isdisjoint(operators_of(operators, query, top=name))):
                fate.dropped.add(query.id)
            elif verdict.outcome == "continues" and name not in begun:
                fate.goes_on.add(query.id)
        for state in verdict.states if verdict.outcome == "continues" else ():
            made_of = operators_of(operators, query, top=state.operator)
            if state.outcome == "starts empty":
                for name in made_of:
                    fates.setdefault(name, _Fate()).empty.add(state.operator)
            elif state.outcome == "left behind" and old:
                readers = (reader.id for reader in plan.readers[state.operator])
                for name in (*made_of, *readers):
                    fates.setdefault(name, _Fate()).gone.add(state.operator)
    return fates
