"""Lint plan files: apply the rules, then the ignores of each project, and write fixes if asked to.

>>> has_failures(LintReport(found=()), "note")
False
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from hintplan.plans.files.codec import loads, write_plan_bytes
from hintplan.plans.files.named_script import init_of
from hintplan.plans.files.plan_source import compile_text, init_texts, read_bytes
from hintplan.plans.frozen import frozen
from hintplan.plans.lint.check import LintedPlan, LocatedFinding, fixed, lint_plan
from hintplan.plans.lint.ignores import Config, Ignore, config_for, is_for, matching, read_config
from hintplan.plans.lint.registry import RULES
from hintplan.plans.lint.rule import Finding
from hintplan.plans.text.text_file import read_text

LEVELS: tuple[str, ...] = ("note", "warning", "error")


@frozen
class LintReport:
    """The findings of all plans, the ignored findings with their ignores, and the fixed findings."""

    found: tuple[LocatedFinding, ...]
    ignored: tuple[tuple[LocatedFinding, Ignore], ...] = ()
    fixed: tuple[LocatedFinding, ...] = ()


def lint_files(
    paths: Sequence[str],
    *,
    config: str | None = None,
    script: str | None = None,
    allow_modules: Sequence[str] = (),
    init: Sequence[str] = (),
    allow_fact_edits: bool = False,
    fix: bool = False,
) -> LintReport:
    """Check the plan files at ``paths``, after fixing them if ``fix`` is set; raise PlanError if one cannot be read."""
    explicit = None if config is None else read_config(Path(config)) or Config(file=Path(config), ignores=())
    findings: list[LocatedFinding] = []
    ignored: list[tuple[LocatedFinding, Ignore]] = []
    repairs: list[LocatedFinding] = []
    configs: dict[Path, Config] = {}
    used: set[tuple[Path, int]] = set()
    for path in paths:
        plan = Path("." if path == "-" else "", "plan.json" if path == "-" else path)
        settings = explicit or config_for(plan)
        checked = _checked(path, allow_fact_edits)
        if fix:
            checked, repaired = _repaired(path, plan, checked, settings, allow_fact_edits)
            repairs += repaired
        entries = [*checked.found, *(_idle_hints(script, allow_modules, init, checked) if script is not None else ())]
        for entry in entries:
            ignore = next(matching(settings, plan, entry.rule.id, entry.finding.path), None) if settings else None
            if settings is None or ignore is None:
                findings.append(entry)
            else:
                ignored.append((entry, ignore))
                used |= {(settings.file, i.number) for i in matching(settings, plan, entry.rule.id, entry.finding.path)}
        if settings is not None:
            configs[settings.file] = settings
            # Hints are checked only with a script; without one, an ignore for them cannot count as unused.
            spared = {i.number for i in settings.ignores if i.rule == "HP103" and script is None}
            used |= {(settings.file, number) for number in spared}
            used |= {(settings.file, i.number) for i in settings.ignores if not _concerns(settings, i, paths)}
    findings += [entry for settings in configs.values() for entry in _of_ignores(settings, used)]
    return LintReport(found=tuple(findings), ignored=tuple(ignored), fixed=tuple(repairs))


def _concerns(config: Config, ignore: Ignore, paths: Sequence[str]) -> bool:
    return any(is_for(config, ignore, Path(path)) for path in paths)


def _checked(path: str, allow_fact_edits: bool) -> LintedPlan:
    data, _, file = read_bytes(path)
    return lint_plan(data, file=file, allow_fact_edits=allow_fact_edits)


def _repaired(
    path: str, plan: Path, checked: LintedPlan, settings: Config | None, facts: bool
) -> tuple[LintedPlan, tuple[LocatedFinding, ...]]:
    """Apply the fixes of findings that are not ignored; write the plan only if it is valid afterwards."""
    wanted = tuple(
        entry
        for entry in checked.found
        if settings is None or not any(matching(settings, plan, entry.rule.id, entry.finding.path))
    )
    data, repaired = fixed(LintedPlan(data=checked.data, plan=checked.plan, found=wanted), facts=facts)
    if data == checked.data:
        return checked, ()
    loads(data, file=path, allow_fact_edits=facts)
    write_plan_bytes(data, path)
    return lint_plan(data, file=path, allow_fact_edits=facts), repaired


def _idle_hints(
    script: str, allow_modules: Sequence[str], init: Sequence[str], checked: LintedPlan
) -> Iterator[LocatedFinding]:
    """Yield the keys of hints that have no effect, as reported by the planner."""
    text = read_text(script, script)
    recorded = checked.plan.init if checked.plan is not None else ()
    compiled = compile_text(text, script, {}, allow_modules, init_texts(init_of(script, recorded, init)))
    for outcome in compiled.hints:
        if outcome.status != "applied":
            message = f"'{outcome.key}' in {outcome.hint} has no effect: it is {outcome.status}, {outcome.detail}"
            at = compiled.source.diagnostic(message, outcome.offset)
            finding = Finding(path=f"{outcome.hint}.{outcome.key}", message=message)
            yield LocatedFinding(rule=RULES["HP103"], finding=finding, file=at.file, line=at.line, column=at.column)


def _of_ignores(config: Config, used: set[tuple[Path, int]]) -> Iterator[LocatedFinding]:
    working_directory = Path.cwd()
    # Build servers identify files by their path relative to the working directory.
    file = str(
        config.file.relative_to(working_directory) if config.file.is_relative_to(working_directory) else config.file
    )
    for ignore in config.ignores:
        path = f"lint.ignore[{ignore.number}]"
        if not ignore.reason:
            finding = Finding(path=path, message=f"the ignore of {ignore.rule} has no reason")
            yield LocatedFinding(rule=RULES["HP001"], finding=finding, file=file, line=ignore.line, column=1)
        if (config.file, ignore.number) not in used:
            finding = Finding(path=path, message=f"the ignore of {ignore.rule} at '{ignore.at}' matches nothing")
            yield LocatedFinding(rule=RULES["HP002"], finding=finding, file=file, line=ignore.line, column=1)


def has_failures(report: LintReport, fail_on: str) -> bool:
    """Return True if there is a finding of level ``fail_on`` or above."""
    if fail_on == "never":
        return False
    return any(LEVELS.index(entry.rule.level) >= LEVELS.index(fail_on) for entry in report.found)
