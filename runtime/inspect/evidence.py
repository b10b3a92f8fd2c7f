"""Reads the evidence of a run from its checkpoint: the counters of each state, and no rows."""

from __future__ import annotations

import os
from collections.abc import Iterator

from hintplan.plans.api.plans import PlanLike, plan_of
from hintplan.plans.declarations.durations import parse_duration
from hintplan.plans.evidence.ages import Counts, added
from hintplan.plans.evidence.document import Evidence, StateEvidence
from hintplan.runtime.inspect.contents import CheckpointState, EntryState
from hintplan.runtime.inspect.partition import PARKED
from hintplan.runtime.inspect.read import read_state
from hintplan.runtime.state.observation import joined_observations


def read_evidence(plan: PlanLike, checkpoint: str | os.PathLike[str], *, at: int | None = None) -> Evidence:
    """Return the evidence about the states of ``plan`` in ``checkpoint`` at ``at`` (ms since 1970; default now).

    PlanError and RunError as in :func:`~hintplan.runtime.inspect.read.read_state`.
    """
    plan = plan_of(plan)
    return evidence_of(read_state(plan, checkpoint, at=at))


def evidence_of(state: CheckpointState) -> Evidence:
    """Return the evidence in the state of a checkpoint that the plan reads, in the order of the plan."""
    states: dict[str, StateEvidence] = {}
    for found in _states(state):
        states[found.path] = _joined(states[found.path], found) if found.path in states else found
    return Evidence(plan=state.plan, at=state.at, states=tuple(states.values()))


def _states(state: CheckpointState) -> Iterator[StateEvidence]:
    for query in state.queries:
        for operator in query.operators:
            if operator.status == "read":
                yield from (_state(operator.id, entry) for entry in operator.entries if entry.name != PARKED)


def _state(operator: str, entry: EntryState) -> StateEvidence:
    rows, expired = entry.amount.rows, entry.amount.expired or 0
    return StateEvidence(
        operator=operator,
        name=entry.name,
        ttl=None if entry.ttl is None else parse_duration(entry.ttl),
        rows=rows,
        bytes=entry.amount.bytes * rows // (rows + expired) if rows else 0,
        row_ages=entry.row_ages,
        periods=entry.observed,
        lateness=entry.lateness,
    )


def _joined(one: StateEvidence, other: StateEvidence) -> StateEvidence:
    """Return the evidence about a state that two queries keep, each for its own sinks."""
    return StateEvidence(
        operator=one.operator,
        name=one.name,
        ttl=one.ttl,
        rows=one.rows + other.rows,
        bytes=one.bytes + other.bytes,
        row_ages=added(one.row_ages, other.row_ages),
        periods=joined_observations(one.periods, other.periods),
        lateness=_sum(one.lateness, other.lateness),
    )


def _sum(one: Counts | None, other: Counts | None) -> Counts | None:
    return added(one, other) if one is not None and other is not None else one if other is None else other
