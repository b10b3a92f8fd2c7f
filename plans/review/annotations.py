"""What a review has to say about a place in a file, whoever says it: a difference, a rule, a mistake.

A remark is what GitHub's annotations, SARIF and JUnit are written from.

>>> Remark(rule="diff-ttl", level="note", message="1 d -> 3 d", file="plan.json", line=3).level
'note'
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from hintplan.plans.compare.change import Change
from hintplan.plans.compare.report import values
from hintplan.plans.errors import Diagnostic
from hintplan.plans.review.locations import Location
from hintplan.plans.settings.effects import LEVELS, MEANING, Level

RemarkLevel = Literal["error", "warning", "note"]

DIFF_RULES = {f"diff-{level}": MEANING[level] for level in LEVELS}
"""The rules that changes of a plan go under, with what they mean."""

_LEVELS: dict[Level, RemarkLevel] = {
    "none": "note",
    "restart": "note",
    "ttl": "note",
    "rebuild": "warning",
    "expire": "warning",
    "drop": "warning",
    "incompatible": "warning",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """``rule`` is a stable id, ``subject`` what of the plan it is about; line and column count from 1."""

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
    """One remark a change; one that is ``fail_on`` or worse is an error."""
    found = []
    for change, place in zip(changes, places, strict=True):
        level = change.effect.level
        failed = fail_on is not None and LEVELS.index(level) >= LEVELS.index(fail_on)
        parts = [f"{change.path}: {values(change)}".rstrip(": "), change.note, change.effect.text]
        if change.reason:
            parts.append(f"reason: {change.reason}")
        found.append(
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
    return found


def remark_of_diagnostic(problem: Diagnostic, rule: str, level: RemarkLevel = "error") -> Remark:
    """The remark that says what ``problem`` says."""
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
