"""Groups of settings that a plan has only where somebody asked for them: what config asks of each operator now.

>>> from hintplan.plans.operators import Sink
>>> list(optional_groups(Sink(id="sink_r", inputs=("calc_r",), table="r")))
[]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Operator, kind_of, with_settings
from hintplan.plans.settings.group import Group
from hintplan.plans.settings.layers import EDIT, Settings, edits_of
from hintplan.plans.settings.setting import Value


def optional_groups(operator: Operator) -> Iterator[Group]:
    """The groups that ``operator`` has only if somebody asks for them."""
    return (group for group in kind_of(operator).groups if group.optional)


def shared_operators(plan: Plan) -> frozenset[str]:
    """The ids of the operators that are read more than once, and computed.

    A scan is not among them: reading a table twice costs less than keeping a copy of it.
    """
    readers = plan.readers
    return frozenset(operator.id for operator in plan.operators if operator.inputs and len(readers[operator.id]) > 1)


def config_layer(plan: Plan, operator: Operator, group: Group, shared: frozenset[str]) -> Mapping[str, Value]:
    """What the configuration of ``plan`` says of a group of ``operator``; ``shared`` are the shared operators.

    Of one that is meant for shared operators, it asks those only, and tells others that somebody else has asked.
    """
    if group.mode not in (None, plan.mode):
        return {}
    said = group.asked(plan.config)["config"]
    if not group.shared:
        return said
    asks = operator.id in shared and any(said.get(name) is True for name in group.asking)
    if not asks and group.name not in operator.settings:
        return {}
    return {name: value for name, value in said.items() if name not in group.asking or (asks and value is True)}


def resolved(
    plan: Plan, operator: Operator, group: Group, edits: Mapping[str, Value], shared: frozenset[str]
) -> Settings | None:
    """The group with the layer ``config`` as the plan has it now and ``edits`` on top; None if nobody asks for it."""
    old = operator.settings.get(group.name)
    config = config_layer(plan, operator, group, shared)
    if old is None and not config and not edits:
        return None
    said = group.asked({}, origin=old.origin if old is not None else {})
    found = group.resolved({**said, "config": config, EDIT: edits})
    asking = group.asking or tuple(group.settings)
    asked = any(name in values for layer, values in found.origin.items() if layer != "default" for name in asking)
    return found if asked or edits_of(found) else None


def with_config_layers(plan: Plan) -> Plan:
    """The plan with the layer ``config`` of all optional groups as its configuration says; edits stay edits."""
    shared = shared_operators(plan)
    operators = []
    for operator in plan.operators:
        for group in optional_groups(operator):
            old = operator.settings.get(group.name)
            if group.mode in (None, plan.mode):
                edits = edits_of(old) if old is not None else {}
                operator = with_group(operator, group.name, resolved(plan, operator, group, edits, shared))
        operators.append(operator)
    return replace(plan, operators=tuple(operators))


def with_group(operator: Operator, name: str, settings: Settings | None) -> Operator:
    """The operator with this group of settings instead of its own; None takes it away."""
    if operator.settings.get(name) == settings:
        return operator
    others = {other: found for other, found in operator.settings.items() if other != name}
    return with_settings(operator, others if settings is None else {**others, name: settings})
