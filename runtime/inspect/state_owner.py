"""Whose state it is that Spark keeps under a number: that of which operator of the plan, or of none.

State belongs to the operator whose state means the same (:func:`plans.compare.carryover.state_lineages`), whatever its
id; a run continues it as that operator's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from plans.compare.carryover import state_lineages
from plans.model.plan import Plan
from runtime.engine.saved import Saved
from runtime.inspect.contents import Status
from runtime.inspect.entries import Entry, fits


@dataclass(frozen=True, slots=True, kw_only=True)
class StateOwner:
    """The operator by its ``id`` in the plan, or else as it was stored; ``was`` is the stored one if it differs."""

    id: str
    status: Status
    was: str | None = None


def state_owner_of(
    number: int,
    partitions: Mapping[int, Saved],
    plan: Plan,
    kept: Mapping[str, Sequence[Entry]],
    operators: Sequence[str],
) -> StateOwner:
    """Who owns what ``partitions`` have saved under ``number``, among ``operators``, those of the query in the plan."""
    said = next((saved for saved in partitions.values() if saved.operator), None)
    if said is None or said.operator is None:
        return StateOwner(id=f"operator {number} of Spark", status="unnamed")
    name = said.operator
    lineages = state_lineages(plan)
    same = [each for each in operators if each in kept and lineages[each] == said.lineage]
    mine = name if name in same or (name in operators and name in kept) else None
    if said.lineage is not None and mine not in same:
        if len(same) != 1:
            return StateOwner(id=name, status="orphan" if mine is None else "other-meaning")
        mine = same[0]
    if mine is None:
        return StateOwner(id=name, status="orphan")
    if not fits(kept[mine], partitions.values()):
        return StateOwner(id=name, status="other-layout")
    return StateOwner(id=mine, status="read", was=None if mine == name else name)
