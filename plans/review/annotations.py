"""Remarks of a review on a line of a file: a difference, a finding of a rule, or an error.

GitHub's annotations, SARIF and JUnit are written from remarks.

>>> Remark(rule="diff-ttl", level="note", message="1 d -> 3 d", file="plan.json", line=3).level
'note'
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from hintplan.plans.compare.change import Change
from hintplan.plans.compare.report import change_values, cost_lines
from hintplan.plans.errors import Diagnostic
from hintplan.plans.frozen import frozen
from hintplan.plans.review.locations import Location
from hintplan.plans.settings.effects import LEVELS, MEANING, Level

RemarkLevel = Literal["error", "warning", "note"]

DIFF_RULES = {f"diff-{level}": MEANING[level] for level in LEVELS}
"""The rules for changes of a plan, with their meaning."""

_LEVELS: dict[Level, RemarkLevel] = {
    "none": "note",
    "restart": "note",
    "ttl": "note",
    "rebuild": "warning",
    "expire": "warning",
    "drop": "warning",
    "incompatible": "warning",
}


@frozen
class Remark:
    """A remark: ``rule`` is a stable id, ``subject`` the path in the plan; line and column count from 1."""

    rule: str
    level: RemarkLevel
    message: str
    subject: str = ""
    file: str | None = None
    line: int | None = None
    column: int | None = None


def remarks_of_changes(
    changes: Sequence[Change], places: Sequence[Location], *, fail_on: Level | None = None
) -> list[Remark]:
    """Return a remark per change; a change that is at least as severe as ``fail_on`` is an error."""
    remarks = []
    for change, place in zip(changes, places, strict=True):
        level = change.effect.level
        failed = fail_on is not None and LEVELS.index(level) >= LEVELS.index(fail_on)
        parts = [f"{change.path}: {change_values(change)}".rstrip(": "), change.note, change.effect.text]
        if change.reason:
            parts.append(f"{change.reason_label}: {change.reason}")
        parts += cost_lines(change, ())
        remarks.append(
            Remark(
                rule=f"diff-{level}",
                level="error" if failed else _LEVELS[level],
                message=" · ".join(part for part in parts if part),
                subject=change.path,
                file=place.file,
                line=place.line,
                column=place.column,
            )
        )
    return remarks


def remark_of_diagnostic(problem: Diagnostic, rule: str, level: RemarkLevel = "error") -> Remark:
    """Convert a diagnostic to a remark."""
    message = problem.message + (f" (hint: {problem.hint})" if problem.hint else "")
    return Remark(
        rule=rule,
        level=level,
        message=message,
        subject=problem.path or "",
        file=problem.file,
        line=problem.line,
        column=problem.column,
    )
