"""``hintplan.explain``: the operators of a plan as a tree.

>>> explain(Plan(name="nothing"))
nothing · streaming · 0 operators, 0 with state
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hintplan.plans.api.plans import PlanLike, plan_of
from hintplan.plans.model.plan import Plan
from hintplan.plans.show.explain import explain_json
from hintplan.plans.show.explain import plan_tree as tree
from hintplan.plans.text.printed import Printed


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Explanation(Printed):
    """The tree of ``plan``: every operator, its states and settings, and their origins."""

    plan: Plan

    def text(self) -> str:
        """Return the tree as ``hintplan explain`` prints it."""
        return tree(self.plan)

    def json(self) -> dict[str, Any]:
        """Return the output of ``hintplan explain --json`` as JSON values."""
        return explain_json(self.plan)


def explain(plan: PlanLike) -> Explanation:
    """Return the operators of ``plan`` from its sinks down, with every state, its TTL, and the origin of settings."""
    return Explanation(plan=plan_of(plan))
