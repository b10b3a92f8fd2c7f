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
    """The findings of the rules in ``plans`` plans; false if there are none."""

    report: Report
    plans: int

    def __iter__(self) -> Iterator[Found]:
        return iter(self.report.found)

    def __len__(self) -> int:
        return len(self.report.found)

    def text(self) -> str:
        """Return the findings and their number, as ``hintplan lint --all`` prints them."""
        listed = rendered(self.report, "text", whole=True)
        return "\n".join(filter(None, (listed, summary(self.report, self.plans))))

    def json(self) -> dict[str, Any]:
        """Return the output of ``hintplan lint --format json`` as JSON values."""
        return report_json(self.report)


def lint(*plans: PlanLike) -> LintResult:
    """Find likely mistakes in ``plans``: plans, or paths of plan files, to which their projects' ignores apply.

    Raise PlanError for a file that cannot be read.
    """
    for each in plans:
        if not isinstance(each, Plan):
            refuse_no_plan(each)
    files = [os.fspath(plan) for plan in plans if not isinstance(plan, Plan)]
    findings = [finding for plan in plans if isinstance(plan, Plan) for finding in check(dumps(plan), file=None).found]
    of_files = lint_files(files) if files else Report(found=())
    return LintResult(report=Report(found=(*findings, *of_files.found), ignored=of_files.ignored), plans=len(plans))
