"""Ignores: findings that a project accepts, each with a reason, in ``hintplan.toml`` or ``pyproject.toml``.

    [[lint.ignore]]                          # in pyproject.toml: [[tool.hintplan.lint.ignore]]
    rule = "HP201"                           # id or slug
    at = "join_o_c.state.rightState.*"       # optional: the path, * stands for anything
    plan = "plans/orders.json"               # optional: the file, relative to this one, * stands for anything
    reason = "customers are few"

The linter looks for the file in the folder of the plan, then in the folders above. An ignore without a reason is a
finding itself, and so is an ignore that matches nothing.

>>> Ignore(rule="HP201", reason="few", number=1, line=1).reason
'few'
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from hintplan.plans.errors import PlanError
from hintplan.plans.frozen import frozen
from hintplan.plans.lint.registry import RULES, rule_called
from hintplan.plans.text.names import did_you_mean
from hintplan.plans.text.project import FILE, read_project, read_toml

_T = TypeVar("_T")

_NAMES = (FILE, "pyproject.toml")
_KEYS = ("rule", "at", "plan", "reason")


@frozen
class Ignore:
    """One ignore, the ``number``-th of its file, at ``line``."""

    rule: str
    reason: str
    at: str = "*"
    plan: str = "*"
    number: int
    line: int


@frozen
class Config:
    """The ignores of ``file``."""

    file: Path
    ignores: tuple[Ignore, ...]


def config_for(plan: Path) -> Config | None:
    """Return the configuration nearest to the plan file, in its folder or above; None if there is none."""
    for place in plan.resolve().parents:
        for name in _NAMES:
            if os.path.lexists(place / name):
                config = read_config(place / name)
                if config is not None:
                    return config
    return None


def read_config(file: Path) -> Config | None:
    """Return the configuration in ``file``, or None for a pyproject.toml without one; raise PlanError for an error."""
    document, text = read_toml(file)
    if file.name == "pyproject.toml":
        tool = document.get("tool", {})
        if not isinstance(tool, dict) or "hintplan" not in tool:
            return None
        document = tool["hintplan"]
    elif file.name == FILE:
        document = {"lint": read_project(file).get("lint", {})}
    lint = _table(document, ("lint",), file, dict)
    entries = _table(lint, ("ignore",), file, list) if lint else []
    lines = [text.count("\n", 0, m.start()) + 1 for m in re.finditer(r"^\s*\[\[.*lint\.ignore\s*\]\]", text, re.M)]
    ignores = [_ignore(entry, number, file, lines) for number, entry in enumerate(entries)]
    return Config(file=file, ignores=tuple(ignores))


def _table(document: object, keys: tuple[str, ...], file: Path, kind: type[_T]) -> _T:
    """Return the first of ``keys`` in ``document``; raise PlanError for unknown keys, or if it is no ``kind``."""
    for key in document if isinstance(document, dict) else ():
        if key not in keys:
            raise PlanError(f"unknown key '{key}'", file=str(file), hint=did_you_mean(key, keys))
    member = document.get(keys[0], kind()) if isinstance(document, dict) else None
    if not isinstance(member, kind):
        raise PlanError(f"'{keys[0]}' is not as expected", file=str(file), hint="write [[lint.ignore]] tables")
    return member


def _ignore(entry: object, number: int, file: Path, lines: list[int]) -> Ignore:
    line = lines[number] if number < len(lines) else 1
    if not isinstance(entry, dict):
        raise PlanError("expected a table", file=str(file), line=line, hint="write [[lint.ignore]]")
    for key, value in entry.items():
        if key not in _KEYS:
            hint = did_you_mean(key, _KEYS, what="keys")
            raise PlanError(f"unknown key '{key}'", file=str(file), line=line, hint=hint)
        if not isinstance(value, str):
            raise PlanError(f"'{key}' must be a string", file=str(file), line=line)
    rule = rule_called(entry.get("rule", ""))
    if rule is None:
        valid = [*RULES, *(rule.slug for rule in RULES.values())]
        message = f"there is no rule '{entry['rule']}'" if "rule" in entry else "an ignore needs a 'rule'"
        raise PlanError(
            message, file=str(file), line=line, hint=did_you_mean(entry.get("rule", ""), valid, what="rules")
        )
    if rule.id.startswith("HP00"):
        hint = "fix the cause instead"
        raise PlanError(f"{rule.id} {rule.slug} cannot be ignored", file=str(file), line=line, hint=hint)
    more = {key: entry[key].removeprefix("operators.") for key in ("at", "plan") if key in entry}
    return Ignore(rule=rule.id, reason=entry.get("reason", "").strip(), number=number, line=line, **more)


def matching(config: Config, plan: Path, rule: str, path: str) -> Iterator[Ignore]:
    """Yield the ignores that apply to a finding of ``rule`` at ``path`` of ``plan``."""
    shown = path.removeprefix("operators.")
    for ignore in config.ignores:
        if ignore.rule == rule and fnmatch.fnmatchcase(shown, ignore.at) and is_for(config, ignore, plan):
            yield ignore


def is_for(config: Config, ignore: Ignore, plan: Path) -> bool:
    """Return True if the ignore applies to this plan."""
    try:
        name = plan.resolve().relative_to(config.file.resolve().parent).as_posix()
    except ValueError:
        name = plan.name
    return fnmatch.fnmatchcase(name, ignore.plan)
