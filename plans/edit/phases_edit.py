"""Edits of the phases of aggregates, what follows from config, and what is wrong with them.

>>> from plans.settings.groups import StateEntry
>>> state = StateEntry(index=0, name="groupAggregateState", input="t", ttl="1 d", origin={"config": "1 d"})
>>> total = Aggregate(id="aggregate_t", inputs=("scan_t",), keys=(), aggregates=(), state=(state,), changelog=("+I",))
>>> plan = Plan(name="p", operators=(total,))
>>> edited = set_phases(plan, "aggregate_t.agg-phase-strategy", total, "agg-phase-strategy", "two_phase")
>>> edited.operators[0].phases.strategy
'TWO_PHASE'
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from plans.errors import Diagnostic, PlanError
from plans.model.plan import Plan
from plans.operators import Aggregate, Operator
from plans.settings.layers import edits_of
from plans.settings.origins import origins_apart
from plans.settings.phases import CONFIG_KEY, PHASES, SPECS, STRATEGY, phase_groups, settings_for, with_phase_groups
from plans.settings.values import SettingError, parse_value, shown
from plans.text.names import did_you_mean

__all__ = ["check_phases", "set_phases", "settable_phases", "with_phases_layer"]

_ONLY_IN_STREAMS = "Spark decides itself in how many phases an aggregate of a batch job runs"


def settable_phases(operator: Operator) -> list[str]:
    """The paths of ``operator`` that can be set here, for messages."""
    return [f"{operator.id}.{STRATEGY}"] if isinstance(operator, Aggregate) else []


def set_phases(plan: Plan, path: str, operator: Aggregate, name: str, value: str) -> Plan:
    """Set the setting ``name`` of the group; PlanError if there is none, in a batch plan, or for a bad value.

    What is set back to what config says, or else the default, is no edit any more.
    """
    if plan.mode == "batch":
        raise PlanError(_ONLY_IN_STREAMS, path=path, hint="leave it out; it holds for streams")
    if name == "origin" or name.startswith("origin."):
        message = "an origin records what default and config asked for; it is not set"
        raise PlanError(message, path=path, hint=f"set {operator.id}.{STRATEGY}")
    if name not in SPECS:
        hint = did_you_mean(name, SPECS, what="settings")
        raise PlanError(f"'{PHASES}' has no setting '{name}'", path=path, hint=hint)
    try:
        parsed = parse_value(SPECS[name], value)
    except SettingError as error:
        raise PlanError(f"'{name}': {error}", path=path, hint=error.hint) from error
    edited = with_phase_groups(operator, {PHASES: settings_for(plan.config, {name: parsed})})
    return replace(plan, operators=tuple(edited if other.id == operator.id else other for other in plan.operators))


def with_phases_layer(plan: Plan) -> Plan:
    """The plan with the layer ``config`` of every aggregate as its configuration says; edits stay edits."""
    if plan.mode == "batch":
        return plan
    return replace(plan, operators=tuple(_with_layer(plan, operator) for operator in plan.operators))


def _with_layer(plan: Plan, operator: Operator) -> Operator:
    if not isinstance(operator, Aggregate):
        return operator
    old = phase_groups(operator).get(PHASES)
    settings = settings_for(plan.config, edits_of(old) if old is not None else {})
    return with_phase_groups(operator, {PHASES: settings})


def check_phases(plan: Plan) -> Iterator[Diagnostic]:
    """Every problem with the phases of aggregates: in a batch plan, or origins out of step with the configuration."""
    for operator in plan.operators:
        if not isinstance(operator, Aggregate):
            continue
        path = f"operators.{operator.id}.{PHASES}"
        groups = phase_groups(operator)
        if plan.mode == "batch":
            if groups:
                yield Diagnostic(message=_ONLY_IN_STREAMS, path=path, hint=f"remove '{PHASES}'")
            continue
        must = settings_for(plan.config)
        if not groups and must.origin.get("config"):
            said = shown(must.values[STRATEGY])
            yield Diagnostic(
                message=f"config says {said} for '{STRATEGY}', but aggregate '{operator.id}' does not know",
                path=f"config.{CONFIG_KEY}",
                hint=f"hintplan set plan.json config.{CONFIG_KEY}={said} brings all origins in step",
            )
            return  # whoever edits config by hand is told once, not per operator
        yield from origins_apart(operator.id, groups, {PHASES: must}, "the table")
