"""Assigns the states of a checkpoint to the operators of a plan.

A state belongs to the operator whose state has the same meaning, even if the id differs. A run continues it as the
state of that operator (:func:`hintplan.plans.compare.carryover.continued_states`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hintplan.plans.checkpoint.continuation import continuation
from hintplan.plans.checkpoint.record import CheckpointRecord, recorded_plan
from hintplan.plans.compare.carryover import continued, continued_states
from hintplan.plans.compare.keeping import keepable
from hintplan.plans.compare.query_record import QueryRecord, query_records
from hintplan.plans.model.plan import Plan
from hintplan.runtime.inspect.contents import Status
from hintplan.runtime.storage.place import Scale


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedState:
    """A state that ``query`` keeps at ``place``, a path below the checkpoint, with the partitions of ``scales``.

    ``operator`` is the id of its operator in the plan, or in the record if the plan has none. ``was`` is the recorded
    id if it differs. ``keepable`` is true if a run starts the state empty, and would keep it by consent.
    """

    query: str
    place: str
    scales: tuple[Scale, ...]
    operator: str
    status: Status
    was: str | None = None
    keepable: bool = False


def owned_states(plan: Plan, record: CheckpointRecord) -> tuple[OwnedState, ...]:
    """Return the states of a checkpoint with this ``record``, as ``plan`` would continue them."""
    recorded, before = record.queries, recorded_plan(record)
    continuing = continued(plan, recorded, before)
    wanted = {query.id: query for query in query_records(plan, continuing)}
    may_keep = {} if before is None else keepable(before, plan)
    offered = continuation(record, plan).keepable
    by_consent = {name: was for name, was in may_keep.items() if name in offered}
    return tuple(state for query in recorded for state in _of_query(query, wanted.get(query.id), by_consent))


def _of_query(old: QueryRecord, new: QueryRecord | None, by_consent: Mapping[str, str]) -> Iterator[OwnedState]:
    needed = () if new is None else new.states
    continuing = continued_states(old.states, needed)
    kept = {state.place: operator for operator, state in continuing.items()}
    by_place = {state.place: name for name, state in continued_states(old.states, needed, by_consent).items()}
    anew = {state.operator for state in needed} - set(kept.values())
    for state in old.states:
        may_keep = state.place not in kept and by_place.get(state.place) in by_consent
        name = (by_place if may_keep else kept).get(state.place, state.operator)
        status: Status = "read" if state.place in kept else "other-meaning" if may_keep or name in anew else "orphan"
        yield OwnedState(
            query=old.id,
            place=f"{old.id}/state/{state.place}",
            scales=tuple(Scale(*scale) for scale in old.scales),
            operator=name,
            status=status,
            was=None if name == state.operator else state.operator,
            keepable=may_keep,
        )
