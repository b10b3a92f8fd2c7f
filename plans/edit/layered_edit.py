"""Edits of groups of settings that follow from their layers alone, such as ``join_o_c.cached.enabled``.

A plan may lack an optional group; the edit adds it.

>>> from hintplan.plans.operators import Scan
>>> scan = Scan(id="scan_o", table="o", columns=("a",))
>>> plan = Plan(name="p", mode="batch", operators=(scan,))
>>> from hintplan.plans.settings.cached import CACHED
>>> set_layered(plan, "", scan, CACHED, "enabled", "true").operators[0].cached.enabled
True
"""

from __future__ import annotations

from hintplan.plans.errors import PlanError
from hintplan.plans.model.layered_groups import layered_groups, resolve_group, reused_operators, with_group
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Operator
from hintplan.plans.settings.group import Group
from hintplan.plans.settings.layers import edits_of
from hintplan.plans.settings.setting import SettingError, parse_value
from hintplan.plans.text.names import did_you_mean


def layered_paths(plan: Plan, operator: Operator) -> list[str]:
    """Return the paths below ``operator`` that can be set, for messages; a group with one setting has a short form."""
    return [
        f"{operator.id}.{name}" if len(group.settings) == 1 else f"{operator.id}.{group.name}.{name}"
        for group in layered_groups(operator)
        if group.mode in (None, plan.mode)
        for name in group.settings
    ]


def set_layered(plan: Plan, path: str, operator: Operator, group: Group, name: str, value: str) -> Plan:
    """Set the setting ``name`` of a group; raise PlanError for an unknown name, a wrong mode, or a bad value.

    A setting that is set back to the value of its layers is no longer an edit.
    """
    can = f"can be set: {', '.join(layered_paths(plan, operator))}"
    if group.mode not in (None, plan.mode):
        hint = "remove it; it applies to streams"
        if group.mode == "batch":
            hint = "compile the SQL with -c execution.runtime-mode=batch"
        raise PlanError(group.elsewhere, path=path, hint=hint)
    if name == "origin" or name.startswith("origin."):
        layers = f"{', '.join(group.layers[:-1])} and {group.layers[-1]}"
        raise PlanError(f"an origin records what {layers} set; it cannot be edited", path=path, hint=can)
    if name not in group.settings:
        hint = did_you_mean(name, group.settings, what="settings") if name else can
        raise PlanError(f"'{group.name}' has no setting '{name}'" if name else "not a setting", path=path, hint=hint)
    try:
        parsed = parse_value(group.settings[name], value)
    except SettingError as error:
        raise PlanError(f"'{name}': {error}", path=path, hint=error.hint) from error
    old = operator.settings.get(group.name)
    edits = {**(edits_of(old) if old is not None else {}), name: parsed}
    # The values of config for other settings may apply only to operators that have the group.
    speaks = with_group(operator, group.name, old or group.resolved({}))
    edited = with_group(operator, group.name, resolve_group(plan, speaks, group, edits, reused_operators(plan)))
    return plan.replaced(edited)
