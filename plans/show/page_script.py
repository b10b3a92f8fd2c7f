"""The script of a plan, and the links from its lines to the settings of the plan.

A line is linked to a layer of a setting only if the script and the plan have the same value there: the script may have
changed since.

>>> Script(file="job.sql", text="SELECT 1").places
()
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hintplan.plans.frozen import frozen
from hintplan.plans.model.plan import Plan
from hintplan.plans.model.plan_setting import PlanSetting
from hintplan.plans.model.settings import operator_settings


@frozen
class Script:
    """The text of a script. ``places`` are (line, path of a setting, layer), if they are known."""

    file: str
    text: str
    places: tuple[tuple[int, str, str], ...] = ()


def page_script(file: str, text: str, plan: Plan, compiled: Plan, places: Mapping[tuple[str, str, str], Any]) -> Script:
    """Return the script with its positions in ``plan``; the planner returned ``compiled`` and ``places`` for it."""
    ours, theirs = _settings(plan), _settings(compiled)
    linked = set()
    for (operator_id, below, layer), place in places.items():
        path = f"{operator_id}.{below}"
        if place.file is not None:
            continue  # the page shows the script, without its init files
        if path in ours and path in theirs and ours[path].layers.get(layer) == theirs[path].layers.get(layer):
            linked.add((place.line, path, layer))
    return Script(file=file, text=text, places=tuple(sorted(linked)))


def _settings(plan: Plan) -> dict[str, PlanSetting]:
    return {setting.path: setting for operator in plan.operators for setting in operator_settings(operator)}
