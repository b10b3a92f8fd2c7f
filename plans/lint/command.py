"""``hintplan lint``: what the rules find in plans, in the form that a person or a build server reads, and the fixes.

>>> lint_command.name
'lint'
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from plans.codec import loads, read_plan_bytes, write_plan_bytes
from plans.jsontext import MAX_BYTES
from plans.lint.check import Checked, Found, check, fixed
from plans.lint.ignores import Config, Ignore, config_for, is_for, matching, read_config
from plans.lint.registry import RULES, rule_called
from plans.lint.rule import Finding
from plans.names import did_you_mean
from plans.plan_source import compile_text
from plans.remarks import Remark
from plans.terminal import say, show
from plans.text_file import read_text

__all__ = ["LINT_RULES", "Report", "failing", "lint", "lint_command", "remarks_of"]

FORMATS = ("text", "json", "github", "sarif", "junit")
_LEVELS: tuple[str, ...] = ("note", "warning", "error")

LINT_RULES = {rule.id: f"{rule.slug}: {rule.about}" for rule in RULES.values()}
"""The rules with what they are about, as SARIF lists them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What was found in all plans, and what was found but is ignored, with the ignore."""

    found: tuple[Found, ...]
    ignored: tuple[tuple[Found, Ignore], ...] = ()
    mended: tuple[Found, ...] = ()


@click.command("lint")
@click.argument("paths", metavar="PLAN...", nargs=-1)
@click.option("--format", "layout", type=click.Choice(FORMATS), default="text", show_default=True)
@click.option(
    "--fail-on",
    type=click.Choice((*_LEVELS, "never")),
    default="warning",
    show_default=True,
    help="Exit with 1 if there is a finding of this level, or a graver one.",
)
@click.option("--fix", is_flag=True, help="Mend what can be mended without changing what runs.")
@click.option("--sql", "script", metavar="FILE", help="The plan's script, to find hints without effect.")
@click.option("--settings", "config", metavar="FILE", help="Read ignores from this hintplan.toml.")
@click.option("--explain", "rule", metavar="RULE", help="Say what a rule finds, why, and what to do.")
@click.option("--allow-fact-edits", is_flag=True, help="Accept, and with --fix make, changes of facts.")
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
def lint_command(
    paths: tuple[str, ...],
    layout: str,
    fail_on: str,
    fix: bool,
    script: str | None,
    config: str | None,
    rule: str | None,
    allow_fact_edits: bool,
    as_json: bool,
) -> int:
    """Find settings that are valid, and likely mistakes: states that never expire, TTLs that do not fit, idle hints.

    Ignores, each with a reason, stand in hintplan.toml; see docs/lint.md.
    """
    if rule is not None:
        _explain(rule)
        return 0
    if not paths:
        raise click.UsageError("expected PLAN...")
    if script is not None and len(paths) > 1:
        raise click.UsageError("--sql is the script of one plan")
    if fix and "-" in paths:
        raise click.UsageError("--fix writes files, and '-' is none")
    report = lint(paths, config=config, script=script, allow_fact_edits=allow_fact_edits, fix=fix)
    text = _rendered(report, "json" if as_json else layout)
    if text:
        show(text)
    if layout == "text" and not as_json:
        say(_summary(report, len(paths)))
    return 1 if failing(report, fail_on) else 0


def lint(
    paths: Sequence[str],
    *,
    config: str | None = None,
    script: str | None = None,
    allow_fact_edits: bool = False,
    fix: bool = False,
) -> Report:
    """Check the plan files at ``paths``, and mend them first if ``fix``; PlanError if one cannot be read."""
    given = None if config is None else read_config(Path(config)) or Config(file=Path(config), ignores=())
    found: list[Found] = []
    ignored: list[tuple[Found, Ignore]] = []
    mended: list[Found] = []
    configs: dict[Path, Config] = {}
    used: set[tuple[Path, int]] = set()
    for path in paths:
        plan = Path("." if path == "-" else "", "plan.json" if path == "-" else path)
        settings = given or config_for(plan)
        checked = _checked(path, allow_fact_edits)
        if fix:
            checked, repaired = _mended(path, plan, checked, settings, allow_fact_edits)
            mended += repaired
        here = [*checked.found, *(_idle_hints(script) if script is not None else ())]
        for one in here:
            ignore = next(matching(settings, plan, one.rule.id, one.finding.path), None) if settings else None
            if settings is None or ignore is None:
                found.append(one)
            else:
                ignored.append((one, ignore))
                used |= {(settings.file, i.number) for i in matching(settings, plan, one.rule.id, one.finding.path)}
        if settings is not None:
            configs[settings.file] = settings
            # An ignore for hints is idle only where hints were looked at.
            spared = {i.number for i in settings.ignores if i.rule == "HP103" and script is None}
            used |= {(settings.file, number) for number in spared}
            used |= {(settings.file, i.number) for i in settings.ignores if not _concerns(settings, i, paths)}
    found += [one for settings in configs.values() for one in _of_ignores(settings, used)]
    return Report(found=tuple(found), ignored=tuple(ignored), mended=tuple(mended))


def _concerns(config: Config, ignore: Ignore, paths: Sequence[str]) -> bool:
    return any(is_for(config, ignore, Path(path)) for path in paths)


def _checked(path: str, allow_fact_edits: bool) -> Checked:
    data = sys.stdin.buffer.read(MAX_BYTES + 1) if path == "-" else read_plan_bytes(path)
    return check(data, file="<stdin>" if path == "-" else path, allow_fact_edits=allow_fact_edits)


def _mended(
    path: str, plan: Path, checked: Checked, settings: Config | None, facts: bool
) -> tuple[Checked, tuple[Found, ...]]:
    """The plan without what could be mended and nobody has ignored; written only if it is valid then."""
    wanted = tuple(
        one
        for one in checked.found
        if settings is None or not any(matching(settings, plan, one.rule.id, one.finding.path))
    )
    data, repaired = fixed(Checked(data=checked.data, plan=checked.plan, found=wanted), facts=facts)
    if data == checked.data:
        return checked, ()
    loads(data, file=path, allow_fact_edits=facts)
    write_plan_bytes(data, path)
    return check(data, file=path, allow_fact_edits=facts), repaired


def _idle_hints(script: str) -> Iterator[Found]:
    """The keys of hints of which the planner says that they have no effect."""
    text = read_text(script, script)
    for outcome in compile_text(text, script, {}).hints:
        if outcome.status != "applied":
            line = text.count("\n", 0, outcome.offset) + 1
            column = outcome.offset - text.rfind("\n", 0, outcome.offset)
            message = f"'{outcome.key}' in {outcome.hint} has no effect: it is {outcome.status}, {outcome.detail}"
            finding = Finding(path=f"{outcome.hint}.{outcome.key}", message=message)
            yield Found(rule=RULES["HP103"], finding=finding, file=script, line=line, column=column)


def _of_ignores(config: Config, used: set[tuple[Path, int]]) -> Iterator[Found]:
    for ignore in config.ignores:
        where = f"lint.ignore[{ignore.number}]"
        if not ignore.reason:
            finding = Finding(path=where, message=f"the ignore of {ignore.rule} has no reason")
            yield Found(rule=RULES["HP001"], finding=finding, file=str(config.file), line=ignore.line, column=1)
        if (config.file, ignore.number) not in used:
            finding = Finding(path=where, message=f"the ignore of {ignore.rule} at '{ignore.at}' matches nothing")
            yield Found(rule=RULES["HP002"], finding=finding, file=str(config.file), line=ignore.line, column=1)


def failing(report: Report, fail_on: str) -> bool:
    """Whether there is a finding of the level ``fail_on``, or a graver one."""
    if fail_on == "never":
        return False
    return any(_LEVELS.index(one.rule.level) >= _LEVELS.index(fail_on) for one in report.found)


def remarks_of(found: Sequence[Found]) -> list[Remark]:
    """The findings as remarks, which the forms of build servers are written from."""
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


def _subject(one: Found) -> str:
    path = one.finding.path.removeprefix("operators.")
    return f"{path}: " if path else ""


def _rendered(report: Report, layout: str) -> str:
    if layout == "json":
        return json.dumps(_json(report), indent=2)
    if layout == "text":
        return "\n".join(_line(one) for one in report.found)
    remarks = remarks_of(report.found)
    if layout == "github":
        from plans.annotations import github

        return github(remarks)
    if layout == "sarif":
        from plans.sarif import sarif

        return json.dumps(sarif(remarks, LINT_RULES), indent=2)
    from plans.junit import junit

    return junit(remarks, suite="lint").rstrip("\n")


def _line(one: Found) -> str:
    place = ":".join(str(part) for part in (one.file, one.line, one.column) if part is not None)
    text = f"{place}: {one.rule.level} {one.rule.id} {one.rule.slug}: {_subject(one)}{one.finding.message}"
    return f"{text}\n  hint: {one.finding.advice or one.rule.advice}"


def _summary(report: Report, plans: int) -> str:
    lines = [f"mended: {_subject(one)}{one.finding.message}" for one in report.mended]
    counted: Counter[str] = Counter(one.rule.level for one in report.found)
    parts = [f"{counted[level]} {level}{'s' * (counted[level] != 1)}" for level in reversed(_LEVELS) if counted[level]]
    text = f"{', '.join(parts) or 'nothing found'} in {plans} plan{'s' if plans != 1 else ''}"
    text += f" · {len(report.ignored)} ignored" if report.ignored else ""
    mendable = sum(_mendable(one) for one in report.found)
    text += f" · --fix mends {mendable}" if mendable else ""
    return "\n".join([*lines, text])


def _mendable(one: Found) -> bool:
    fix = one.finding.fix
    return one.finding.respelled is not None or (fix is not None and not fix.facts)


def _json(report: Report) -> dict[str, Any]:
    return {
        "findings": [_found_json(one) for one in report.found],
        "ignored": [{**_found_json(one), "reason": ignore.reason} for one, ignore in report.ignored],
        "mended": [_found_json(one) for one in report.mended],
    }


def _found_json(one: Found) -> dict[str, Any]:
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


def _explain(name: str) -> None:
    rule = rule_called(name)
    if rule is None:
        known = [*RULES, *(rule.slug for rule in RULES.values())]
        raise click.UsageError(f"there is no rule '{name}'; {did_you_mean(name, known, what='rules')}")
    show(f"{rule.id} {rule.slug} ({rule.level})\n\n{rule.about}\n{rule.why}\n\nWhat to do: {rule.advice}.")
    if rule.fixable:
        show("--fix mends it where that changes nothing that runs.")
