"""``hintplan.diff``: the differences between two plans, and their effects on a running job.

>>> diff(Plan(name="a"), Plan(name="a"))
no differences
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hintplan.plans.api.plans import PlanLike, plan_of
from hintplan.plans.compare.change import Change
from hintplan.plans.compare.diff import compare_plans as changes_between
from hintplan.plans.compare.json_report import changes_json
from hintplan.plans.compare.report import Detail, changes_text, worst_level
from hintplan.plans.model.plan import Plan
from hintplan.plans.review.diff_html import drawing_of, report_html
from hintplan.plans.review.diff_markdown import mermaid_of, report_markdown
from hintplan.plans.review.diff_notebook import diff_cell
from hintplan.plans.settings.effects import Level
from hintplan.plans.text.printed import Printed


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Diff(Printed):
    """The ``changes`` from plan ``before`` to plan ``after``; false if there are none.

    The ``detail`` of a report is ``concise``, one line per operator and only changes with an effect; ``normal``; or
    ``full``, with the reason for each effect and all layers.
    """

    before: Plan
    after: Plan
    changes: tuple[Change, ...]

    def __iter__(self) -> Iterator[Change]:
        return iter(self.changes)

    def __len__(self) -> int:
        return len(self.changes)

    @property
    def effect(self) -> Level:
        """The most severe effect on a running job, in the terms of ``hintplan diff --fail-on``."""
        return worst_level(self.changes)

    @property
    def keeps_state(self) -> bool:
        """True if all state that ``before`` wrote can still be used."""
        return all(change.keeps_state for change in self.changes)

    def text(self, detail: Detail = "normal") -> str:
        """Return the changes in aligned columns, as ``hintplan diff`` prints them."""
        return changes_text(self.changes, detail=detail)

    def markdown(self, detail: Detail = "normal") -> str:
        """Return the changes for a review comment, with a picture; at most 60,000 characters."""
        graph = mermaid_of(self.before, self.after, self.changes)
        return report_markdown(self.changes, detail=detail, graph=graph)

    def html(self, detail: Detail = "normal") -> str:
        """Return the changes as a standalone page, which needs no network."""
        title = f"{self.before.name} → {self.after.name}"
        drawing = drawing_of(self.before, self.after, self.changes)
        return report_html(self.changes, title=title, detail=detail, drawing=drawing)

    def json(self) -> dict[str, Any]:
        """Return the changes as JSON values, as described by ``diff.schema.json``."""
        return changes_json(self.changes)

    def _repr_html_(self) -> str:
        return diff_cell(self.before, self.after, self.changes)

    def _repr_markdown_(self) -> str:
        return self.markdown()


def diff(before: PlanLike, after: PlanLike) -> Diff:
    """Compare two plans by meaning: settings and their origins, operators, and the effect on running state."""
    old, new = plan_of(before), plan_of(after)
    return Diff(before=old, after=new, changes=changes_between(old, new))
