"""Finds states that a user may keep by consent although another query made their rows: states of the same layout.

Adding a literal to an ``IN`` below a deduplicate and two joins changes the lineage of three states. Yet the new plan
would have computed most of their rows alike. Pure.

>>> keepable(Plan(name="p"), Plan(name="p"))
{}
"""

from __future__ import annotations

from collections.abc import Collection
from math import inf

from hintplan.plans.compare.lineage import state_layouts
from hintplan.plans.compare.match import match
from hintplan.plans.declarations.durations import parse_duration
from hintplan.plans.model.plan import Plan
from hintplan.plans.settings.state import readable_ttl


def kept_text(plan: Plan, operators: Collection[str], rows: int | None) -> str:
    """Describe what it means that ``operators`` of ``plan`` keep their state, which has ``rows`` if they are known."""
    ttls = {entry.ttl for name in operators for entry in plan.by_id[name].state if entry.ttl is not None}
    ordered = [readable_ttl(ttl) for ttl in sorted(ttls, key=lambda ttl: (parse_duration(ttl) or inf, ttl))]
    ends = dict.fromkeys((ordered[0], ordered[-1])) if ordered else {}
    lasting = f" (TTL{'s' if len(ends) > 1 else ''} {' to '.join(ends)})" if ends else ""
    stay = "existing rows stay" if rows is None else f"{rows:,} row{' stays' if rows == 1 else 's stay'}"
    return f"{stay}{lasting}. Rows that only the new plan lets in are missing from before this start."


def keepable(before: Plan, after: Plan) -> dict[str, str]:
    """Map operators of ``after`` that may keep a state by consent to the operators of ``before`` that own it."""
    old, new = state_layouts(before), state_layouts(after)
    former = {now: was for was, now in match(before, after).renamed.items()}
    return {name: was for name in new for was in [former.get(name, name)] if was in old and old[was] == new[name]}
