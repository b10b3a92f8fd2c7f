"""Matches the sinks of a plan with the sinks of the plan that ran before, by their rows and tables.

Ids of sinks are names of tables with numbers. An ``INSERT`` that is added before others into the same table therefore
takes the id of the first of them. Pure.

>>> continued_sinks(Plan(name="p"), Plan(name="p"))
{}
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from hintplan.plans.compare.lineage import keeps_state, state_lineages
from hintplan.plans.frozen import frozen
from hintplan.plans.model.plan import Plan


@frozen
class _Written:
    """The output of a sink to ``table``: a digest of its rows, and digests of the states below it."""

    id: str
    table: str
    lineage: str
    states: frozenset[str]


def continued_sinks(before: Plan, after: Plan) -> dict[str, str]:
    """Map each sink of ``after`` to the sink of ``before`` that it continues.

    A sink with the same rows matches first, then the sink of the same table with most states in common, then a sink
    with the same id. Among equal candidates, the same id wins.
    """
    old, new = _written(before), _written(after)
    continuing: dict[str, str] = {}
    keys: tuple[Callable[[_Written], Hashable], ...] = (lambda sink: (sink.id, sink.lineage), lambda sink: sink.lineage)
    for key in keys:
        _pair(old, new, key, continuing)
    alike = [
        (-len(was.states & now.states), len(was.states ^ now.states), was.id != now.id, was, now)
        for now in new
        for was in old
        if was.table == now.table and was.states & now.states
    ]
    for *_, was, now in sorted(alike, key=lambda ranked: ranked[:3]):
        if was in old and now in new:
            _go_on(old, new, was, now, continuing)
    _pair(old, new, lambda sink: sink.id, continuing)
    return continuing


def _pair(old: list[_Written], new: list[_Written], key: Callable[[_Written], Hashable], found: dict[str, str]) -> None:
    for now in list(new):
        was = next((sink for sink in old if key(sink) == key(now)), None)
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
            states=frozenset(
                lineages[operator_id] for operator_id in plan.upstream(sink.id) if keeps_state(plan.by_id[operator_id])
            ),
        )
        for sink in plan.sinks
    ]
