"""Reasons of settings: notes that a plan keeps with its edits for reviewers.

A reason is stored under the path of its setting, and is removed when the edit is undone. It is not a fact, and does not
affect a run.

>>> list(check_reasons(Plan(name="p", reasons={"config.paralelism.default": "4 is enough"})))[0].message
"there is no setting 'config.paralelism.default'"
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from hintplan.plans.errors import Diagnostic, PlanError
from hintplan.plans.model.plan import Plan
from hintplan.plans.model.plan_setting import PlanSetting
from hintplan.plans.model.settings import canonical_path, operator_settings, plan_settings
from hintplan.plans.settings.layers import EDIT
from hintplan.plans.settings.setting import same_value, value_text
from hintplan.plans.text.names import did_you_mean


def check_reasons(plan: Plan) -> Iterator[Diagnostic]:
    """Yield a problem for every reason whose setting the plan does not have."""
    if not plan.reasons:
        return
    layers_by_path = _known(plan)
    for path in plan.reasons:
        if path not in layers_by_path:
            near = did_you_mean(path, [*layers_by_path])
            hint = near if near.startswith("did") else "write the path that 'hintplan set' takes, or remove the reason"
            yield Diagnostic(message=f"there is no setting '{path}'", path=f"reasons.{path}", hint=hint)


def with_reason(plan: Plan, path: str, reason: str) -> Plan:
    """Return ``plan`` with ``reason`` for the setting at ``path``; raise PlanError if the setting is not an edit.

    An empty reason removes the old one.
    """
    path = canonical_path(plan, path)
    if not reason.strip():
        return replace(plan, reasons={key: text for key, text in plan.reasons.items() if key != path})
    by = _known(plan).get(path)
    if by is None:
        raise PlanError("there is no setting to give a reason for", path=path)
    if by not in (EDIT, "plan"):
        raise PlanError(
            f"a reason belongs to an edit, but this value comes from the {by}",
            path=path,
            hint="set another value, or leave the reason out",
        )
    return replace(plan, reasons={**plan.reasons, path: reason.strip()})


def without_idle_reasons(plan: Plan) -> Plan:
    """Return ``plan`` without the reasons of settings that are gone, or that are no longer edits."""
    if not plan.reasons:
        return plan
    layers_by_path = _known(plan)
    kept = {path: text for path, text in plan.reasons.items() if layers_by_path.get(path) in (EDIT, "plan")}
    return plan if kept == plan.reasons else replace(plan, reasons=kept)


def without_outdated_reasons(before: Plan, after: Plan) -> Plan:
    """Return ``after`` without the reasons that ``before`` gives for other values of their settings."""
    stale = {path for path, _ in outdated_reasons(before, after)}
    if not stale:
        return after
    return replace(after, reasons={path: text for path, text in after.reasons.items() if path not in stale})


def outdated_reasons(before: Plan, after: Plan) -> Iterator[tuple[str, str]]:
    """Yield the path of each reason that is the same in both plans though the value differs, with the old value."""
    same = [path for path, text in after.reasons.items() if before.reasons.get(path) == text]
    for path in same:
        was, now = (_settings_at(plan, path) for plan in (before, after))
        if was and now and not _same_values(was, now):
            yield path, " · ".join(value_text(setting.value) for setting in was.values())


def _same_values(was: Mapping[str, PlanSetting], now: Mapping[str, PlanSetting]) -> bool:
    return [*was] == [*now] and all(same_value(now[path].setting, was[path].value, now[path].value) for path in now)


def _settings_at(plan: Plan, path: str) -> dict[str, PlanSetting]:
    """Return the setting at ``path``, or all settings of the group at it, by path."""
    operator = plan.by_id.get(path.partition(".")[0])
    settings = plan_settings(plan) if operator is None else operator_settings(operator)
    return {s.path: s for s in settings if s.path == path or s.path.startswith(f"{path}.")}


def _known(plan: Plan) -> dict[str, str]:
    """Return the paths that can have a reason, each with the layer of its current value."""
    layers_by_path = {setting.path: setting.set_by for setting in plan_settings(plan)}
    for operator in plan.operators:
        if operator.group("retry") is not None:
            # An edit can add or remove retries as a whole.
            layers_by_path[f"{operator.id}.retry"] = EDIT
    return layers_by_path
