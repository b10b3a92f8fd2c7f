"""``hintplan.lint``: likely mistakes in plans.

>>> lint()
nothing found in 0 plans
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hintplan.plans.api.plans import PlanLike, refuse_no_plan
from hintplan.plans.files.codec import dumps
from hintplan.plans.lint.check import Found, check
from hintplan.plans.lint.report import rendered, report_json, summary
from hintplan.plans.lint.run import Report
from hintplan.plans.lint.run import lint as lint_files
from hintplan.plans.model.plan import Plan
from hintplan.plans.text.printed import Printed


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LintResult(Printed):
    """What the rules found in so many ``plans``; false if that is nothing."""

    report: Report
    plans: int

    def __iter__(self) -> Iterator[Found]:
        return iter(self.report.found)

    def __len__(self) -> int:
        return len(self.report.found)

    def text(self) -> str:
        """The findings and their number, as ``hintplan lint --all`` prints them."""
        listed = rendered(self.report, "text", whole=True)
        return "\n".join(filter(None, (listed, summary(self.report, self.plans))))

    def json(self) -> dict[str, Any]:
        """What ``hintplan lint --format json`` prints, as JSON values."""
        return report_json(self.report)


def lint(*plans: PlanLike) -> LintResult:
    """Look for likely mistakes in ``plans``, or plan files at paths, with the ignores of their projects.

    PlanError for a file that cannot be read.
    """
    for each in plans:
        if not isinstance(each, Plan):
            refuse_no_plan(each)
    files = [os.fspath(plan) for plan in plans if not isinstance(plan, Plan)]
    found = [one for plan in plans if isinstance(plan, Plan) for one in check(dumps(plan), file=None).found]
    of_files = lint_files(files) if files else Report(found=())
    return LintResult(report=Report(found=(*found, *of_files.found), ignored=of_files.ignored), plans=len(plans))
