"""``hintplan.rebase``: the edits of an old plan, applied to a plan that was compiled from newer SQL.

>>> from dataclasses import replace
>>> from hintplan.plans.format.compiled import with_record
>>> compiled = with_record(Plan(name="p"))
>>> [edit.path for edit in rebase(replace(compiled, name="other"), onto=compiled).edits.kept]
['name']
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hintplan.plans.api.plans import PlanLike, plan_of
from hintplan.plans.errors import Diagnostic
from hintplan.plans.merge.rebase import RebasedPlan
from hintplan.plans.merge.rebase import rebase_plan as carried_over
from hintplan.plans.merge.rebase_report import obstacles, rebase_json, rebase_text
from hintplan.plans.model.plan import Plan
from hintplan.plans.text.printed import Printed

_OLD = "the old plan"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RebaseResult(Printed):
    """The result of a rebase; ``edits`` has the edits, grouped by outcome."""

    edits: RebasedPlan

    @property
    def plan(self) -> Plan | None:
        """The new plan with the edits; None if there are conflicts."""
        return self.edits.plan

    @property
    def conflicts(self) -> tuple[Diagnostic, ...]:
        """The problems that prevent a plan: edits without their operator, double edits, incompatible changes."""
        return tuple(obstacles(self.edits, _OLD))

    def text(self) -> str:
        """Return the output of ``hintplan rebase``: the edits by outcome, or the conflicts."""
        return "\n".join(map(str, self.conflicts)) or rebase_text(self.edits)

    def json(self) -> dict[str, Any]:
        """Return the output of ``hintplan rebase --json`` as JSON values."""
        return rebase_json(self.edits, _OLD)


def rebase(
    old: PlanLike, onto: PlanLike, *, mapping: Mapping[str, str] | None = None, drop_orphans: bool = False
) -> RebaseResult:
    """Carry the edits of plan ``old`` over to plan ``onto``, which was compiled from newer SQL; both may be paths.

    ``old`` records the compiled values below its edits, so its unedited version is not needed. ``mapping`` maps removed
    operators of ``old`` to their successors, and tables as ``tables.<name>``. ``drop_orphans`` drops the edits of other
    removed operators. Raise PlanError if ``mapping`` contains unknown names.
    """
    return RebaseResult(edits=carried_over(plan_of(onto), plan_of(old), mapping, drop_orphans=drop_orphans))
