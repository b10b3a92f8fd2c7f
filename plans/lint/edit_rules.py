"""Rules on edits, hints and reasons without effect, and on edits of only one of several equal operators.

>>> list(idle_reasons(Plan(name="p")))
[]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hintplan.plans.analysis.repeated import one_sided_edits
from hintplan.plans.lint.rule import Finding, Fix
from hintplan.plans.model.plan import Plan
from hintplan.plans.model.plan_setting import PlanSetting
from hintplan.plans.model.settings import operator_settings, plan_settings
from hintplan.plans.settings.setting import value_text


def redundant_edits(plan: Plan) -> Iterator[Finding]:
    """Report edits that merely restore the value of a lower layer, and so cancel a hint."""
    for setting in _of_operators(plan):
        layers = [*setting.layers.items()]
        if not setting.edited or len(layers) < 2:
            continue
        top, overridden = layers[-1]
        below = next((layer for layer, value in reversed(layers[:-1]) if value == setting.value), None)
        if below is not None:
            yield Finding(
                path=f"operators.{setting.path}",
                message=f"the edit, {value_text(setting.value)}, equals the value of the {below}: it only cancels the "
                f"{top}, {value_text(overridden)}",
            )


def redundant_hints(plan: Plan) -> Iterator[Finding]:
    """Report hints with the same value as the layer below."""
    for setting in _of_operators(plan):
        layers = [*setting.layers.items()]
        if setting.set_by == "hint" and len(layers) > 1 and layers[-1][0] == "hint" and layers[-1][1] == layers[-2][1]:
            yield Finding(
                path=f"operators.{setting.path}",
                message=f"the hint, {value_text(layers[-1][1])}, equals the value of the {layers[-2][0]} below it",
            )


def edits_of_one(plan: Plan) -> Iterator[Finding]:
    """Report an edit of one lookup or call if equal lookups or calls lack it."""
    for edit in one_sided_edits(plan):
        yield Finding(path=f"operators.{edit.path}", message=f"the edit, {edit.message}")


def idle_reasons(plan: Plan) -> Iterator[Finding]:
    """Report reasons for settings that no edit sets."""
    if not plan.reasons:
        return
    unedited = {setting.path: setting for setting in plan_settings(plan) if not setting.edited}
    for path in plan.reasons:
        if path in unedited:
            by = "SQL" if unedited[path].operator is None else unedited[path].set_by
            yield Finding(
                path=f"reasons.{path}",
                message=f"there is a reason for '{path}', but no edit: the {by} sets it",
                fix=Fix(change=lambda plan, path=path: _without_reason(plan, path)),  # type: ignore[misc]
            )


def _without_reason(plan: Plan, path: str) -> Plan:
    return replace(plan, reasons={key: text for key, text in plan.reasons.items() if key != path})


def _of_operators(plan: Plan) -> Iterator[PlanSetting]:
    for operator in plan.operators:
        yield from operator_settings(operator)
