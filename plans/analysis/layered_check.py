"""Checks the groups of settings that follow from their layers: that they suit the mode, and agree with the layers.

>>> list(check_layered_groups(Plan(name="p")))
[]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hintplan.plans.errors import Diagnostic
from hintplan.plans.model.layered_groups import current_layers, layered_groups, reused_operators, table_below
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Operator
from hintplan.plans.settings.group import Group
from hintplan.plans.settings.origin_checks import origin_mismatch_text, update_origins_hint
from hintplan.plans.settings.setting import Value


def check_layered_groups(plan: Plan) -> Iterator[Diagnostic]:
    """Yield every problem of these groups; a manual edit of config is reported once, not once per operator."""
    shared = reused_operators(plan)
    reported: set[str] = set()
    for operator in plan.operators:
        for group in layered_groups(operator):
            if group.mode not in (None, plan.mode):
                yield from _check_elsewhere(operator, group)
            elif group.name not in reported:
                problem = next(_check_layers(plan, operator, group, shared), None)
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


def _check_layers(plan: Plan, operator: Operator, group: Group, shared: frozenset[str]) -> Iterator[Diagnostic]:
    """Yield a problem for each layer whose recorded values differ from what the plan sets now."""
    settings = operator.settings.get(group.name)
    current = current_layers(plan, operator, group, shared)
    if not group.optional:
        current = group.resolved(current).origin
    table = table_below(plan, operator)
    places = {"config": "config", "table": f"table '{table}'", "default": "the layer"}
    for layer, place in places.items():
        recorded: Mapping[str, Value] = settings.origin.get(layer, {}) if settings is not None else {}
        expected = current.get(layer, {})
        if recorded == expected or (layer == "default" and group.optional):
            continue
        name = next(name for name in group.settings if recorded.get(name) != expected.get(name))
        setting = group.settings[name]
        path = f"config.{setting.config}" if layer == "config" else f"tables.{table}.options.{setting.option}"
        hint = update_origins_hint(path, expected.get(name, recorded.get(name, "")))
        if layer == "default":
            hint = f"leave origins as they were compiled; set {operator.id}.{group.name}.{name} instead"
        yield Diagnostic(
            message=origin_mismatch_text(recorded, expected, name, place),
            path=f"operators.{operator.id}.{group.name}.origin" if settings is not None else path,
            hint=hint,
        )
