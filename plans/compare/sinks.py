"""Which sink of a plan goes on for which of the plan that ran before: by what it writes, and where ids differ, by that.

Ids of sinks are names of tables with numbers, so an ``INSERT`` that is added before others into the same table takes
the id of the first of them. Pure.

>>> continued_sinks(Plan(name="p"), Plan(name="p"))
{}
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

from hintplan.plans.compare.lineage import keeps_state, state_lineages
from hintplan.plans.model.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    """What a sink writes to ``table``: a digest of the rows, and those of the states that they are made from."""

    id: str
    table: str
    lineage: str
    states: frozenset[str]


def continued_sinks(before: Plan, after: Plan) -> dict[str, str]:
    """Give the sink of ``before`` that each sink of ``after`` goes on for, by its id.

    That with the same rows if there is one, else that of the same table with most states in common, else that of the
    same id. Its own id goes before others.
    """
    old, new = _written(before), _written(after)
    found: dict[str, str] = {}
    keys: tuple[Callable[[_Written], Hashable], ...] = (lambda sink: (sink.id, sink.lineage), lambda sink: sink.lineage)
    for key in keys:
        _pair(old, new, key, found)
    alike = [
        (-len(was.states & now.states), len(was.states ^ now.states), was.id != now.id, was, now)
        for now in new
        for was in old
        if was.table == now.table and was.states & now.states
    ]
    for *_, was, now in sorted(alike, key=lambda one: one[:3]):
        if was in old and now in new:
            _go_on(old, new, was, now, found)
    _pair(old, new, lambda sink: sink.id, found)
    return found


def _pair(old: list[_Written], new: list[_Written], key: Callable[[_Written], Hashable], found: dict[str, str]) -> None:
    for now in list(new):
        was = next((each for each in old if key(each) == key(now)), None)
        if was is not None:
            _go_on(old, new, was, now, found)


def _go_on(old: list[_Written], new: list[_Written], was: _Written, now: _Written, found: dict[str, str]) -> None:
    found[now.id] = was.id
    old.remove(was)
    new.remove(now)


def _written(plan: Plan) -> list[_Written]:
    lineages = state_lineages(plan)
    return [
        _Written(
            id=sink.id,
            table=sink.table,
            lineage=lineages[sink.id],
            states=frozenset(lineages[one] for one in plan.upstream(sink.id) if keeps_state(plan.by_id[one])),
        )
        for sink in plan.sinks
    ]
