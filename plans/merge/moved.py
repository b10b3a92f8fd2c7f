"""Reads where operators and tables have moved from the project file: a stored form of ``--map``.

    [[moved]]                                # in hintplan.toml
    from = "join_f_p"                        # an operator's id, or tables.<name>
    to = "join_f_pl"
    plan = "plans/orders.json"               # optional: the file, relative to this one, * stands for anything

An entry remains after it has been applied: it does not affect plans that no longer have the operator. Entries may form
chains.

>>> moved_name({"a": "b", "b": "c"}, "a")
'c'
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from pathlib import Path

from hintplan.plans.errors import PlanError
from hintplan.plans.model.plan import Plan
from hintplan.plans.text.names import did_you_mean
from hintplan.plans.text.project import project_for, read_project

_KEYS = ("from", "to", "plan")


def moves_for(file: Path, old: Plan, new: Plan) -> dict[str, str]:
    """Return the moves of ids of ``old`` that ``new`` lacks, from the project file of plan ``file``.

    Raise PlanError if the project file is invalid, or the target of a move is missing from ``new``.
    """
    project = project_for(file)
    if project is None:
        return {}
    moves = _read(project, file)
    targets = _names(new)
    moved_to = {name: moved_name(moves, name) for name in sorted((_names(old) - targets) & moves.keys())}
    for name, target in moved_to.items():
        if target not in targets:
            message = f"'{name}' has moved to '{target}', which the new plan does not have"
            hint = did_you_mean(target, targets, what="operators and tables")
            raise PlanError(message, file=str(project), hint=hint)
    return moved_to


def moved_name(moves: Mapping[str, str], name: str) -> str:
    """Return the last name on the chain of ``moves`` from ``name``, or ``name`` itself if the chain is a cycle."""
    seen = {name}
    while (name := moves.get(name, name)) not in seen:
        seen.add(name)
    return name


def _names(plan: Plan) -> set[str]:
    return {operator.id for operator in plan.operators} | {f"tables.{name}" for name in plan.tables}


def _read(project: Path, file: Path) -> dict[str, str]:
    moves: dict[str, str] = {}
    for number, entry in enumerate(read_project(project).get("moved", ())):
        at = f"moved[{number}]"
        _check(entry, at, project)
        pattern = entry.get("plan", "*")
        applies = fnmatch.fnmatchcase(_relative(file, project.parent), pattern)
        if applies and moves.setdefault(entry["from"], entry["to"]) != entry["to"]:
            raise PlanError(f"'{at}' gives '{entry['from']}' a second successor", file=str(project))
    return moves


def _check(entry: object, at: str, project: Path) -> None:
    form = 'write [[moved]] with from = "OLD" and to = "NEW"'
    if not isinstance(entry, dict):
        raise PlanError(f"'{at}' must be a table", file=str(project), hint=form)
    for key, value in entry.items():
        if key not in _KEYS:
            raise PlanError(f"unknown key '{at}.{key}'", file=str(project), hint=did_you_mean(key, _KEYS))
        if not isinstance(value, str) or not value:
            raise PlanError(f"'{at}.{key}' must be a string", file=str(project), hint=form)
    for key in ("from", "to"):
        if key not in entry:
            raise PlanError(f"'{at}' has no '{key}'", file=str(project), hint=form)


def _relative(file: Path, directory: Path) -> str:
    resolved, above = file.resolve(), directory.resolve()
    return resolved.relative_to(above).as_posix() if resolved.is_relative_to(above) else resolved.as_posix()
