"""Check the text of a plan with the rules, locate each finding in the text, and apply fixes to the text.

>>> [found.rule.slug for found in lint_plan(b"{}", file="plan.json").found][:1]
['invalid-plan']
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from hintplan.plans.analysis.validate import plan_problems
from hintplan.plans.declarations.durations import DurationError, parse_duration
from hintplan.plans.errors import Diagnostic, PlanError
from hintplan.plans.files.codec import loads, read_document
from hintplan.plans.files.rewrite import Patch, apply, rewrite
from hintplan.plans.format.paths import find
from hintplan.plans.frozen import frozen
from hintplan.plans.lint.registry import RULES
from hintplan.plans.lint.rule import Finding, Rule
from hintplan.plans.model.plan import Plan
from hintplan.plans.text.jsontext import JsonText, Path


@frozen
class LocatedFinding:
    """A finding of a rule, and its location."""

    rule: Rule
    finding: Finding
    file: str | None
    line: int | None = None
    column: int | None = None


@frozen
class LintedPlan:
    """The findings of one plan, in the order of its file; ``plan`` is None if it cannot be read."""

    data: bytes
    plan: Plan | None
    found: tuple[LocatedFinding, ...]


def lint_plan(
    data: bytes, *, file: str | None, allow_fact_edits: bool = False, rules: Iterable[Rule] = RULES.values()
) -> LintedPlan:
    """Apply ``rules`` to the plan in ``data``.

    An invalid plan is itself a finding, HP000. Other rules run only if all its problems are in settings, tables or
    reasons.
    """
    try:
        plan = loads(data, file=file, allow_fact_edits=allow_fact_edits, check_meaning=False)
    except PlanError as error:
        return LintedPlan(data=data, plan=None, found=tuple(_invalid(problem) for problem in error.diagnostics))
    problems = plan_problems(plan)
    if any(_breaks_rules(problem) for problem in problems):
        # Rules follow edges, so they cannot run on a plan whose edges lead nowhere.
        findings = [(RULES["HP000"], _said(problem)) for problem in problems]
        return LintedPlan(data=data, plan=plan, found=_placed(data, file, findings))
    findings = [(rule, finding) for rule in rules if rule.check is not None for finding in rule.check(plan)]
    findings += [(RULES["HP101"], finding) for finding in _respelled(data) if RULES["HP101"] in [*rules]]
    reported = {finding.path for rule, finding in findings if rule.level == "error"}
    findings += [(RULES["HP000"], _said(problem)) for problem in problems if problem.path not in reported]
    return LintedPlan(data=data, plan=plan, found=_placed(data, file, findings))


_OF_SETTINGS = re.compile(r"operators\.[^.]+\.(state|async|retry|cache|watermark)")


def _breaks_rules(problem: Diagnostic) -> bool:
    path = problem.path or ""
    return not path.startswith(("config", "reasons", "tables")) and not _OF_SETTINGS.match(path)


def _invalid(problem: Diagnostic) -> LocatedFinding:
    finding = Finding(path=problem.path or "", message=problem.message, advice=problem.hint)
    return LocatedFinding(
        rule=RULES["HP000"], finding=finding, file=problem.file, line=problem.line, column=problem.column
    )


def _said(problem: Diagnostic) -> Finding:
    return Finding(path=problem.path or "", message=problem.message, advice=problem.hint)


def _respelled(data: bytes) -> Iterator[Finding]:
    """Yield TTLs that are equal to the value they override but spelled differently, so they only look like edits."""
    for operator in read_document(data)["operators"]:
        for entry in (entry for entry in operator.get("state", ()) if "ttl" in entry):
            strongest = [*entry["origin"].values()][-1:]
            if strongest and entry["ttl"] != strongest[0] and _as_long(entry["ttl"], strongest[0]):
                yield Finding(
                    path=f"operators.{operator['id']}.state.{entry['name']}.ttl",
                    message=f"the edit, {entry['ttl']}, equals the value of the {[*entry['origin']][-1]}, "
                    f"{strongest[0]}",
                    advice=f'write "{strongest[0]}"',
                    respelled=strongest[0],
                )


def _as_long(a: str, b: str) -> bool:
    try:
        return parse_duration(a) == parse_duration(b)
    except DurationError:
        return False


def _placed(data: bytes, file: str | None, found: list[tuple[Rule, Finding]]) -> tuple[LocatedFinding, ...]:
    if not found:
        return ()
    source = JsonText(data, file=file)
    index = {operator["id"]: number for number, operator in enumerate(source.value["operators"])}
    paths = [_path(finding.path, source.value, index) for _, finding in found]
    spans = source.spans({path[:length] for path in paths for length in range(len(path) + 1)})
    offsets = [spans[path][0 if path[:1] == ("config",) else 1] for path in paths]
    lines = _lines(source.text, offsets)
    placed = [
        LocatedFinding(rule=rule, finding=finding, file=file, line=lines[offset][0], column=lines[offset][1])
        for (rule, finding), offset in zip(found, offsets, strict=True)
    ]
    return tuple(sorted(placed, key=lambda entry: (entry.line or 0, entry.column or 0, entry.rule.id)))


def _path(text: str, document: Mapping[str, Any], index: dict[str, int]) -> Path:
    """Find a path like :func:`hintplan.plans.format.paths.find`, without a search through all operators."""
    head, _, below = text.partition(".")
    name = below.partition(".")[0]
    if head == "operators" and name in index:
        operator = document["operators"][index[name]]
        return ("operators", index[name], *find(below.removeprefix(name).removeprefix("."), operator))
    return find(text, document)


def _lines(text: str, offsets: Iterable[int]) -> dict[int, tuple[int, int]]:
    """Return the line and column of each offset, reading the text once."""
    positions: dict[int, tuple[int, int]] = {}
    line = position = 0
    for offset in sorted(set(offsets)):
        line += text.count("\n", position, offset)
        position = offset
        positions[offset] = (line + 1, offset - text.rfind("\n", 0, offset))
    return positions


def fixed(checked: LintedPlan, *, facts: bool) -> tuple[bytes, tuple[LocatedFinding, ...]]:
    """Apply all fixes to the text, including changes of ``facts`` if set; return the text and the fixed findings."""
    plan = checked.plan
    repaired: list[LocatedFinding] = []
    if plan is None:
        return checked.data, ()
    edited = plan
    for entry in checked.found:
        fix = entry.finding.fix
        if fix is not None and (facts or not fix.facts):
            edited = fix.change(edited)
            repaired.append(entry)
    data = rewrite(checked.data, plan, edited) if edited != plan else checked.data
    respelled = [entry for entry in checked.found if entry.finding.respelled is not None]
    if respelled:
        source = JsonText(data)
        index = {operator["id"]: number for number, operator in enumerate(source.value["operators"])}
        patches = [
            Patch(path=_path(entry.finding.path, source.value, index), value=entry.finding.respelled)
            for entry in respelled
        ]
        data = apply(source, patches)
    return data, (*repaired, *respelled)
