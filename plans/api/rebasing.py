"""``hintplan.rebase``: the edits of an old plan on one that was compiled from newer SQL.

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
from hintplan.plans.merge.rebase import Rebased
from hintplan.plans.merge.rebase import rebase as carried_over
from hintplan.plans.merge.rebase_report import obstacles, report_json, report_text
from hintplan.plans.model.plan import Plan
from hintplan.plans.text.printed import Printed

_OLD = "the old plan"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RebaseResult(Printed):
    """What became of the edits; ``edits`` has them one by one, by what became of them."""

    edits: Rebased

    @property
    def plan(self) -> Plan | None:
        """The new plan with the edits; None if something stands in the way."""
        return self.edits.plan

    @property
    def conflicts(self) -> tuple[Diagnostic, ...]:
        """Why there is no plan: edits whose operator is gone, settings that both plans edit, what goes not together."""
        return tuple(obstacles(self.edits, _OLD))

    def text(self) -> str:
        """What ``hintplan rebase`` says: the edits by what became of them, or what stands in their way."""
        return "\n".join(map(str, self.conflicts)) or report_text(self.edits)

    def json(self) -> dict[str, Any]:
        """What ``hintplan rebase --json`` prints, as JSON values."""
        return report_json(self.edits, _OLD)


def rebase(
    old: PlanLike, onto: PlanLike, *, mapping: Mapping[str, str] | None = None, drop_orphans: bool = False
) -> RebaseResult:
    """Carry the edits of plan ``old`` over to plan ``onto``, which was compiled from newer SQL; both may be paths.

    What an edit was made over is recorded in ``old``, so its first version is not needed. ``mapping`` takes operators
    of ``old`` that are gone to their successors, and tables as ``tables.<name>``; ``drop_orphans`` drops the edits of
    the others. PlanError if ``mapping`` names what is not there.
    """
    return RebaseResult(edits=carried_over(plan_of(onto), plan_of(old), mapping, drop_orphans=drop_orphans))
