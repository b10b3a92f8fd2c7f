"""Finds states that a user may keep by consent although another query made their rows: states of the same layout.

Adding a literal to an ``IN`` below a deduplicate and two joins changes the lineage of three states. Yet the new plan
would have computed most of their rows alike. Pure.

>>> keepable(Plan(name="p"), Plan(name="p"))
{}
"""

from __future__ import annotations

from hintplan.plans.compare.lineage import state_layouts
from hintplan.plans.compare.match import match
from hintplan.plans.model.plan import Plan

MEANING = (
    "rows that are there stay, also those that the plan would not have let in, until they expire or are taken back; "
    "those that it would have let in before are not there"
)
"""The consequence for the rows of a state that is kept."""


def keepable(before: Plan, after: Plan) -> dict[str, str]:
    """Map operators of ``after`` that may keep a state by consent to the operators of ``before`` that own it."""
    old, new = state_layouts(before), state_layouts(after)
    former = {now: was for was, now in match(before, after).renamed.items()}
    return {name: was for name in new for was in [former.get(name, name)] if was in old and old[was] == new[name]}
