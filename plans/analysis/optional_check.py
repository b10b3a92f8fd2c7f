"""Checks the optional groups of settings of a plan: that they suit its mode, and agree with its config.

>>> list(check_optional_groups(Plan(name="p")))
[]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hintplan.plans.errors import Diagnostic
from hintplan.plans.model.optional_groups import config_layer, optional_groups, reused_operators
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Operator
from hintplan.plans.settings.group import Group
from hintplan.plans.settings.origin_checks import origin_mismatch_text, update_origins_hint
from hintplan.plans.settings.setting import Value


def check_optional_groups(plan: Plan) -> Iterator[Diagnostic]:
    """Yield every problem of the optional groups; a manual edit of config is reported once, not once per operator."""
    shared = reused_operators(plan)
    reported: set[str] = set()
    for operator in plan.operators:
        for group in optional_groups(operator):
            if group.mode not in (None, plan.mode):
                yield from _check_elsewhere(operator, group)
            elif group.name not in reported:
                problem = _check_config(plan, operator, group, shared)
                if problem is not None:
                    reported.add(group.name)
                    yield problem


def _check_elsewhere(operator: Operator, group: Group) -> Iterator[Diagnostic]:
    settings, path = operator.settings.get(group.name), f"operators.{operator.id}.{group.name}"
    if settings is None:
        return
    # A group that is switched off has no effect in any mode.
    switches = [name for name in group.asking if group.settings[name].kind == "bool"]
    if not switches:
        yield Diagnostic(message=group.elsewhere, path=path, hint=f"remove '{group.name}'")
    for name in switches:
        if settings.values[name] is True:
            hint = f"write false, or compile the SQL with -c execution.runtime-mode={group.mode}"
            yield Diagnostic(message=group.elsewhere, path=f"{path}.{name}", hint=hint)


def _check_config(plan: Plan, operator: Operator, group: Group, shared: frozenset[str]) -> Diagnostic | None:
    settings = operator.settings.get(group.name)
    recorded: Mapping[str, Value] = settings.origin.get("config", {}) if settings is not None else {}
    expected = config_layer(plan, operator, group, shared)
    if recorded == expected:
        return None
    name = next(name for name in group.settings if recorded.get(name) != expected.get(name))
    key = f"config.{group.settings[name].config}"
    return Diagnostic(
        message=origin_mismatch_text(recorded, expected, name, "config"),
        path=f"operators.{operator.id}.{group.name}.origin" if settings is not None else key,
        hint=update_origins_hint(key, expected.get(name, recorded.get(name, ""))),
    )
