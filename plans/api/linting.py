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
from hintplan.plans.lint.check import LocatedFinding, lint_plan
from hintplan.plans.lint.report import lint_report_json, lint_report_text, lint_summary
from hintplan.plans.lint.run import LintReport
from hintplan.plans.lint.run import lint_files as lint_files
from hintplan.plans.model.plan import Plan
from hintplan.plans.text.printed import Printed


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LintResult(Printed):
    """The findings of the rules in ``plans`` plans; false if there are none."""

    report: LintReport
    plans: int

    def __iter__(self) -> Iterator[LocatedFinding]:
        return iter(self.report.found)

    def __len__(self) -> int:
        return len(self.report.found)

    def text(self) -> str:
        """Return the findings and their number, as ``hintplan lint --all`` prints them."""
        listed = lint_report_text(self.report, "text", whole=True)
        return "\n".join(filter(None, (listed, lint_summary(self.report, self.plans))))

    def json(self) -> dict[str, Any]:
        """Return the output of ``hintplan lint --format json`` as JSON values."""
        return lint_report_json(self.report)


def lint(*plans: PlanLike) -> LintResult:
    """Find likely mistakes in ``plans``: plans, or paths of plan files, to which their projects' ignores apply.

    Raise PlanError for a file that cannot be read.
    """
    for each in plans:
        if not isinstance(each, Plan):
            refuse_no_plan(each)
    files = [os.fspath(plan) for plan in plans if not isinstance(plan, Plan)]
    findings = [
        finding for plan in plans if isinstance(plan, Plan) for finding in lint_plan(dumps(plan), file=None).found
    ]
    of_files = lint_files(files) if files else LintReport(found=())
    return LintResult(report=LintReport(found=(*findings, *of_files.found), ignored=of_files.ignored), plans=len(plans))
