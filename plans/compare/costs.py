"""Adds to each change of a TTL its cost, according to the observations of a run.

>>> with_costs((), Evidence(plan="p", at=0, states=()))
()
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hintplan.plans.compare.change import Change
from hintplan.plans.declarations.durations import parse_duration
from hintplan.plans.evidence.cost import Cost, cost_of
from hintplan.plans.evidence.document import Evidence


def with_costs(changes: Iterable[Change], evidence: Evidence) -> tuple[Change, ...]:
    """Return the changes, each change of a TTL with its cost, if the evidence has its state."""
    return tuple(replace(change, cost=_cost(change, evidence)) for change in changes)


def _cost(change: Change, evidence: Evidence) -> Cost | None:
    if change.subject != "setting" or not (change.setting or "").endswith(".ttl"):
        return None
    state = evidence.state(change.path.removesuffix(".ttl"))
    if state is None or change.before is None or change.after is None:
        return None
    return cost_of(state, parse_duration(change.before), parse_duration(change.after))
