"""State that may be kept by consent, though its rows were made by another query: that of the same layout.

A literal more in an ``IN`` below a deduplicate and two joins makes three states others, of which most rows are what the
plan would have computed. Pure.

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
"""What keeping a state means for its rows."""


def keepable(before: Plan, after: Plan) -> dict[str, str]:
    """Give the operators of ``before`` whose states may be kept by consent, by the ids of those of ``after``."""
    old, new = state_layouts(before), state_layouts(after)
    former = {now: was for was, now in match(before, after).renamed.items()}
    return {name: was for name in new for was in [former.get(name, name)] if was in old and old[was] == new[name]}
