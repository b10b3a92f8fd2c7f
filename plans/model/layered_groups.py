"""Groups of settings that follow from their layers alone, with their current values from config and tables.

They are all groups except the groups of operators that send requests, which depend on each other and on the source. A
plan contains an optional group only if a layer sets it.

>>> from hintplan.plans.operators import Sink
>>> list(layered_groups(Sink(id="sink_r", inputs=("calc_r",), table="r")))
[]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Operator, Requesting
from hintplan.plans.settings.group import Group
from hintplan.plans.settings.layers import EDIT, Settings, edits_of
from hintplan.plans.settings.setting import Layers, Value


def layered_groups(operator: Operator) -> Iterator[Group]:
    """Return the groups of ``operator`` that follow from their layers alone."""
    return (
        group
        for group in operator.groups
        if operator.heeds(group) and (group.optional or not isinstance(operator, Requesting))
    )


def reused_operators(plan: Plan) -> frozenset[str]:
    """Return the ids of the computed operators that are read more than once.

    Scans are left out: reading a table twice costs less than keeping a copy of it.
    """
    readers = plan.readers
    return frozenset(operator.id for operator in plan.operators if operator.inputs and len(readers[operator.id]) > 1)


def current_layers(plan: Plan, operator: Operator, group: Group, shared: frozenset[str]) -> Layers:
    """Return the values that each layer sets now in a group of ``operator``.

    Config and the options of the table below are read from ``plan``, and the other layers from the recorded origin.
    """
    old = operator.settings.get(group.name)
    table = table_below(plan, operator) if "table" in group.layers else None
    options = plan.tables[table].options if table is not None else {}
    layers = group.asked({}, options, origin=old.origin if old is not None else {})
    return {**layers, "config": _config_layer(plan, operator, group, shared)} if "config" in layers else layers


def table_below(plan: Plan, operator: Operator) -> str | None:
    """Return the nearest table below ``operator`` that is scanned, or None if the plan has no such table."""
    below = (plan.by_id[name] for name in plan.upstream(operator.id))
    return next((scan.table for scan in below if scan.is_source and scan.table in plan.tables), None)


def _config_layer(plan: Plan, operator: Operator, group: Group, shared: frozenset[str]) -> Mapping[str, Value]:
    """Return the values that the configuration of ``plan`` sets in a group of ``operator``.

    For a group that is meant for shared operators, only operators in ``shared`` get the values that switch it on. Other
    operators get the remaining values if another layer has set the group.
    """
    if group.mode not in (None, plan.mode):
        return {}
    values = group.asked(plan.config)["config"]
    if not group.shared:
        return values
    asks = operator.id in shared and any(values.get(name) is True for name in group.asking)
    if not asks and group.name not in operator.settings:
        return {}
    return {name: value for name, value in values.items() if name not in group.asking or (asks and value is True)}


def resolve_group(
    plan: Plan, operator: Operator, group: Group, edits: Mapping[str, Value], shared: frozenset[str]
) -> Settings | None:
    """Return the group with the plan's current config and tables, and with ``edits`` as the strongest layer.

    Return None if the group is optional and no layer sets it.
    """
    layers = current_layers(plan, operator, group, shared)
    if group.optional and group.name not in operator.settings and not layers.get("config") and not edits:
        return None
    settings = group.resolved({**layers, EDIT: edits})
    asking = group.asking or tuple(group.settings)
    asked = any(name in values for layer, values in settings.origin.items() if layer != "default" for name in asking)
    return settings if asked or edits_of(settings) or not group.optional else None


def with_config_layers(plan: Plan) -> Plan:
    """Return the plan with the layers of its current configuration and tables in these groups; edits stay edits."""
    shared = reused_operators(plan)
    operators = []
    for operator in plan.operators:
        for group in layered_groups(operator):
            old = operator.settings.get(group.name)
            if group.mode in (None, plan.mode):
                edits = edits_of(old) if old is not None else {}
                operator = with_group(operator, group.name, resolve_group(plan, operator, group, edits, shared))
        operators.append(operator)
    return replace(plan, operators=tuple(operators))


def with_group(operator: Operator, name: str, settings: Settings | None) -> Operator:
    """Return the operator with this group of settings instead of its own; None removes the group."""
    if operator.settings.get(name) == settings:
        return operator
    remaining = {other: group for other, group in operator.settings.items() if other != name}
    return operator.with_settings(remaining if settings is None else {**remaining, name: settings})
