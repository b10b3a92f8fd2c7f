"""The outcome of tests for people, for scripts and for build servers.

A difference of tables shows the rows that are missing with ``-``, and the rows that came with ``+``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from hintplan.plans.errors import Diagnostic
from hintplan.plans.review.junit import JUnitCase, JUnitFailure, JUnitSuite
from hintplan.plans.text.aligned import aligned_rows
from hintplan.plans.text.counts import count, shortened
from hintplan.plans.text.escapes import clean
from hintplan.runtime.rehearsal.scenarios import ScenarioOutcome, StepFailure
from hintplan.runtime.rehearsal.suites import SuiteOutcome

_MOST_ROWS, _WIDEST = 20, 40


def suite_text(outcome: SuiteOutcome) -> str:
    """Return the lines for a file: each test, and its failures below it."""
    lines = [clean(outcome.file)]
    for error in outcome.errors:
        lines += _indented(str(error), "  ")
    for scenario in outcome.scenarios:
        verdict = "failed" if scenario.failures else "ok"
        lines.append(clean(f"  {verdict:<6}  {scenario.scenario.name}  ({scenario.seconds * 1000:.0f} ms)"))
        for failure in scenario.failures:
            lines += _indented(failure_text(failure), "    ")
    return "\n".join(lines)


def summary_text(outcomes: Sequence[SuiteOutcome], seconds: float) -> str:
    """Return the last line: the number of tests, of failures, and the time."""
    scenarios = [scenario for outcome in outcomes for scenario in outcome.scenarios]
    failed = sum(bool(scenario.failures) for scenario in scenarios)
    broken = sum(bool(outcome.errors) for outcome in outcomes)
    parts = [count(len(scenarios), "test"), f"{failed} failed" if failed else "none failed"]
    parts += [f"{count(broken, 'file')} could not be run"] if broken else []
    return " · ".join([*parts, f"{seconds:.1f} s"])


def failure_text(failure: StepFailure) -> str:
    """Return a failure as lines: where it is, and the rows that differ."""
    return "\n".join([str(failure.finding), *difference_lines(failure)])


def difference_lines(failure: StepFailure) -> list[str]:
    """Return the rows that differ as a table; none for another failure."""
    difference = failure.difference
    if difference is None:
        return []
    marked = [("-", row) for row in difference.missing[:_MOST_ROWS]]
    marked += [("+", row) for row in difference.extra[:_MOST_ROWS]]
    marked.sort(key=lambda pair: json.dumps(pair[1][:1], default=str))
    head = ["", *(column.name for column in failure.columns)]
    rows = [head, *([mark, *map(_cell, row)] for mark, row in marked)]
    lines = [f"  {line}" for line in aligned_rows(rows, gap="  ")]
    hidden = len(difference.missing) + len(difference.extra) - len(marked)
    lines += [f"  {hidden} more"] if hidden else []
    legend = f"- expected and missing: {len(difference.missing)} · + came and not expected: {len(difference.extra)}"
    return [*lines, f"  {legend} · as expected: {difference.same}"]


def outcomes_json(outcomes: Sequence[SuiteOutcome]) -> dict[str, Any]:
    """Return the outcome for scripts."""
    return {
        "failed": any(outcome.failed for outcome in outcomes),
        "files": [
            {
                "file": outcome.file,
                "errors": [_finding_json(error) for error in outcome.errors],
                "tests": [_scenario_json(scenario) for scenario in outcome.scenarios],
            }
            for outcome in outcomes
        ],
    }


def junit_suites(outcomes: Sequence[SuiteOutcome]) -> list[JUnitSuite]:
    """Return a suite per file, with a case per test; a file that could not be run has one case, an error."""
    return [JUnitSuite(name=outcome.file, file=outcome.file, cases=list(_junit_cases(outcome))) for outcome in outcomes]


def _junit_cases(outcome: SuiteOutcome) -> Iterator[JUnitCase]:
    classname = f"hintplan.{outcome.file}"
    if outcome.errors:
        texts = "\n".join(map(str, outcome.errors))
        failure = JUnitFailure(type="error", message=outcome.errors[0].message, text=texts, is_error=True)
        yield JUnitCase(name=outcome.file, classname=classname, seconds=0, failure=failure)
    for scenario in outcome.scenarios:
        name, seconds = scenario.scenario.name, scenario.seconds
        yield JUnitCase(name=name, classname=classname, seconds=seconds, failure=_junit_failure(scenario.failures))


def _junit_failure(failures: Sequence[StepFailure]) -> JUnitFailure | None:
    if not failures:
        return None
    texts = "\n".join(map(failure_text, failures))
    return JUnitFailure(type="failure", message=failures[0].finding.message, text=texts)


def _scenario_json(outcome: ScenarioOutcome) -> dict[str, Any]:
    return {
        "name": outcome.scenario.name,
        "passed": not outcome.failures,
        "seconds": round(outcome.seconds, 4),
        "failures": [_failure_json(failure) for failure in outcome.failures],
    }


def _failure_json(failure: StepFailure) -> dict[str, Any]:
    found = _finding_json(failure.finding)
    if failure.difference is None:
        return found
    names = [column.name for column in failure.columns]
    return {
        **found,
        "missing": [dict(zip(names, row, strict=True)) for row in failure.difference.missing],
        "extra": [dict(zip(names, row, strict=True)) for row in failure.difference.extra],
    }


def _finding_json(finding: Diagnostic) -> dict[str, Any]:
    return {name: getattr(finding, name) for name in ("file", "line", "column", "message", "hint")}


def _cell(value: Any) -> str:
    text = "NULL" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return clean(shortened(text, _WIDEST)).replace("\n", "\\n")


def _indented(text: str, indent: str) -> list[str]:
    return [f"{indent}{line}" for line in text.split("\n")]
