"""A report of the linter as text, as JSON, and as remarks, from which the formats of build servers are written.

>>> lint_summary(LintReport(found=()), 2)
'nothing found in 2 plans'
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from hintplan.plans.errors import on_one_line
from hintplan.plans.lint.check import LocatedFinding
from hintplan.plans.lint.registry import RULES
from hintplan.plans.lint.run import LEVELS, LintReport
from hintplan.plans.review.annotations import Remark
from hintplan.plans.text.counts import count

_SHOWN = 10

FORMATS = ("text", "json", "github", "sarif", "junit")

LINT_RULES = {rule.id: f"{rule.slug}: {rule.about}" for rule in RULES.values()}
"""The rules with their descriptions, as SARIF lists them."""


def remarks_of(found: Sequence[LocatedFinding]) -> list[Remark]:
    """Return the findings as remarks, from which the formats of build servers are written."""
    return [
        Remark(
            rule=one.rule.id,
            level=one.rule.level,
            message=f"{_subject(one)}{one.finding.message} ({one.rule.slug}: {one.finding.advice or one.rule.advice})",
            subject=one.finding.path.removeprefix("operators."),
            file=one.file,
            line=one.line,
            column=one.column,
        )
        for one in found
    ]


def _subject(one: LocatedFinding) -> str:
    path = one.finding.path.removeprefix("operators.")
    return f"{path}: " if path else ""


def lint_report_text(report: LintReport, layout: str, *, whole: bool = False) -> str:
    """Return the findings in one of ``FORMATS``; text has the first few per rule and file, unless ``whole`` is set."""
    if layout == "json":
        return json.dumps(lint_report_json(report), indent=2)
    if layout == "text":
        return "\n".join(_lines(report.found, most=None if whole else _SHOWN))
    remarks = remarks_of(report.found)
    if layout == "github":
        from hintplan.plans.review.github import github

        return github(remarks)
    if layout == "sarif":
        from hintplan.plans.review.sarif import sarif

        return json.dumps(sarif(remarks, LINT_RULES), indent=2)
    from hintplan.plans.review.junit import junit

    return junit(remarks, suite="lint").rstrip("\n")


def _lines(found: Sequence[LocatedFinding], *, most: int | None) -> Iterator[str]:
    """Yield a line per finding; beyond ``most`` findings of a rule in a file, only their number."""
    counted = Counter((entry.file, entry.rule.id) for entry in found)
    seen: Counter[tuple[str | None, str]] = Counter()
    for entry in found:
        key = (entry.file, entry.rule.id)
        seen[key] += 1
        if most is None or seen[key] <= most or counted[key] == most + 1:
            yield _line(entry)
        elif seen[key] == most + 1:
            yield f"{_name(entry)}: {counted[key] - most:,} more of {entry.rule.id} {entry.rule.slug}; --all lists them"


def _line(one: LocatedFinding) -> str:
    place = ":".join(str(part) for part in (_name(one), one.line, one.column) if part is not None)
    text = f"{place}: {one.rule.level} {one.rule.id} {one.rule.slug}: {_subject(one)}{one.finding.message}"
    return f"{text}\n  hint: {one.finding.advice or one.rule.advice}"


def _name(one: LocatedFinding) -> str | None:
    return None if one.file is None else on_one_line(one.file)


def lint_summary(report: LintReport, plans: int) -> str:
    """Return the fixed findings, and the number of findings in that many plans."""
    lines = [f"fixed: {_subject(entry)}{entry.finding.message}" for entry in report.fixed]
    counted: Counter[str] = Counter(entry.rule.level for entry in report.found)
    parts = [count(counted[level], level) for level in reversed(LEVELS) if counted[level]]
    text = f"{', '.join(parts) or 'nothing found'} in {count(plans, 'plan')}"
    text += f" · {len(report.ignored)} ignored" if report.ignored else ""
    mendable = sum(_mendable(entry) for entry in report.found)
    text += f" · --fix mends {mendable}" if mendable else ""
    return "\n".join([*lines, text])


def _mendable(one: LocatedFinding) -> bool:
    fix = one.finding.fix
    return one.finding.respelled is not None or (fix is not None and not fix.facts)


def lint_report_json(report: LintReport) -> dict[str, Any]:
    """Return the findings as JSON values."""
    return {
        "findings": [_found_json(one) for one in report.found],
        "ignored": [{**_found_json(one), "reason": ignore.reason} for one, ignore in report.ignored],
        "fixed": [_found_json(one) for one in report.fixed],
    }


def _found_json(one: LocatedFinding) -> dict[str, Any]:
    return {
        "rule": one.rule.id,
        "slug": one.rule.slug,
        "level": one.rule.level,
        "file": one.file,
        "line": one.line,
        "column": one.column,
        "path": one.finding.path.removeprefix("operators."),
        "message": one.finding.message,
        "advice": one.finding.advice or one.rule.advice,
        "fixable": _mendable(one),
    }
