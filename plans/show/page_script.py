"""The script beside a plan, and which of its lines set what in this plan.

A line is linked to a layer of a setting only if the script still asks for what that layer says in the plan: the script
may have moved on since.

>>> Script(file="job.sql", text="SELECT 1").places
()
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hintplan.plans.model.plan import Plan
from hintplan.plans.model.settings import PlanSetting, operator_settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """The text of a script. ``places`` are (line, path of a setting, layer), where they are known."""

    file: str
    text: str
    places: tuple[tuple[int, str, str], ...] = ()


def script_of(file: str, text: str, plan: Plan, compiled: Plan, places: Mapping[tuple[str, str, str], Any]) -> Script:
    """The script with its places in ``plan``; ``compiled`` and ``places`` are what the planner makes of the text."""
    ours, theirs = _settings(plan), _settings(compiled)
    found = set()
    for (operator_id, below, layer), place in places.items():
        path = f"{operator_id}.{below}"
        if place.file is not None:
            continue  # the page shows the script, without its init files
        if path in ours and path in theirs and ours[path].layers.get(layer) == theirs[path].layers.get(layer):
            found.add((place.line, path, layer))
    return Script(file=file, text=text, places=tuple(sorted(found)))


def _settings(plan: Plan) -> dict[str, PlanSetting]:
    return {setting.path: setting for operator in plan.operators for setting in operator_settings(operator)}
