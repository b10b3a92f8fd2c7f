"""Rules on edits, hints and reasons that change nothing, or one of several operators that are alike.

>>> list(idle_reasons(Plan(name="p")))
[]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hintplan.plans.analysis.repeated import one_sided_edits
from hintplan.plans.format.compiled import digest_of
from hintplan.plans.lint.rule import Finding, Fix
from hintplan.plans.model.plan import Plan
from hintplan.plans.model.settings import PlanSetting, operator_settings, plan_settings, setting_at
from hintplan.plans.operators import kind_of
from hintplan.plans.settings.layers import EDIT
from hintplan.plans.settings.setting import shown


def redundant_edits(plan: Plan) -> Iterator[Finding]:
    """An edit that says what a layer below the strongest one says: it only takes a hint back."""
    for setting in _of_operators(plan):
        layers = [*setting.layers.items()]
        if setting.set_by != EDIT or len(layers) < 2:
            continue
        top, said = layers[-1]
        below = next((layer for layer, value in reversed(layers[:-1]) if value == setting.value), None)
        if below is not None:
            yield Finding(
                path=f"operators.{setting.path}",
                message=f"the edit, {shown(setting.value)}, says what the {below} says: all it does is to take back "
                f"the {top}, {shown(said)}",
            )


def redundant_hints(plan: Plan) -> Iterator[Finding]:
    """A hint that says what the layer below it says."""
    for setting in _of_operators(plan):
        layers = [*setting.layers.items()]
        if setting.set_by == "hint" and len(layers) > 1 and layers[-1][0] == "hint" and layers[-1][1] == layers[-2][1]:
            yield Finding(
                path=f"operators.{setting.path}",
                message=f"the hint, {shown(layers[-1][1])}, says what the {layers[-2][0]} says without it",
            )


def edits_of_one(plan: Plan) -> Iterator[Finding]:
    """An edit of one lookup or call that others, which ask alike, do not have."""
    for found in one_sided_edits(plan):
        yield Finding(path=f"operators.{found.path}", message=f"the edit, {found.message}")


def idle_reasons(plan: Plan) -> Iterator[Finding]:
    """A reason for what no edit sets."""
    if not plan.reasons:
        return
    known = {setting.path: setting.set_by for setting in plan_settings(plan)}
    known |= {f"{operator.id}.retry": EDIT for operator in plan.operators if kind_of(operator).group("retry")}
    for path in plan.reasons:
        by = known.get(path)
        if by == "plan" and plan.compiled.get(path) == digest_of(_value(plan, path)):
            by = "SQL"  # what has no origin is no edit if its digest says so
        if by not in (None, EDIT, "plan"):
            yield Finding(
                path=f"reasons.{path}",
                message=f"there is a reason for '{path}', but no edit: the {by} sets it",
                fix=Fix(change=lambda plan, path=path: _without_reason(plan, path)),  # type: ignore[misc]
            )


def _value(plan: Plan, path: str) -> str:
    """The value of a setting that has no origin."""
    found = setting_at(plan, path)
    return "" if found is None else str(found.value)


def _without_reason(plan: Plan, path: str) -> Plan:
    return replace(plan, reasons={key: text for key, text in plan.reasons.items() if key != path})


def _of_operators(plan: Plan) -> Iterator[PlanSetting]:
    for operator in plan.operators:
        yield from operator_settings(operator)
