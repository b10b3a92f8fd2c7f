"""Edits of cached results, and what is wrong with them: ``join_o_c.cached.enabled``, also where nobody asked.

>>> from plans.operators import Scan
>>> scan = Scan(id="scan_o", table="o", columns=("a",))
>>> edited = set_cached(Plan(name="p", mode="batch", operators=(scan,)), "", scan, "enabled", "true")
>>> edited.operators[0].cached.enabled
True
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from plans.errors import Diagnostic, PlanError
from plans.model.plan import Plan
from plans.operators import Operator, Sink
from plans.settings.cached import (
    CONFIG_ENABLED,
    CONFIG_STORAGE_LEVEL,
    ENABLED,
    SETTINGS,
    cached_of,
    cached_values,
    config_layer,
    layered,
    set_by,
    shared_operators,
    simplified,
)
from plans.settings.values import SettingError, parse_value, shown
from plans.text.names import did_you_mean

__all__ = ["check_cached", "set_cached", "settable_cached"]

ONLY_IN_BATCH = "results are cached in batch mode only: a stream's are never complete"


def settable_cached(operator: Operator) -> list[str]:
    """The paths of ``operator`` that can be set here, for messages."""
    return [] if isinstance(operator, Sink) else [f"{operator.id}.cached.{name}" for name in SETTINGS]


def set_cached(plan: Plan, path: str, operator: Operator, name: str, value: str) -> Plan:
    """Set the setting ``name`` of the cached result of ``operator``; PlanError if there is none, or for a bad value.

    What is set back to what its layers say is no edit any more.
    """
    can = f"can be set: {', '.join(settable_cached(operator))}"
    if isinstance(operator, Sink):
        message = f"'{operator.id}' is a sink: it has no result to cache"
        raise PlanError(message, path=path, hint=f"cache its input: {operator.inputs[0]}.cached.{ENABLED}")
    if plan.mode != "batch":
        raise PlanError(ONLY_IN_BATCH, path=path, hint="compile the SQL with -c execution.runtime-mode=batch")
    if name == "origin" or name.startswith("origin."):
        message = "an origin records what default, config, hint and statement asked for; it is not set"
        raise PlanError(message, path=path, hint=can)
    if name not in SETTINGS:
        hint = did_you_mean(name, SETTINGS, what="settings") if name else can
        raise PlanError(f"'cached' has no setting '{name}'" if name else "not a setting", path=path, hint=hint)
    try:
        parsed = parse_value(SETTINGS[name], value)
    except SettingError as error:
        raise PlanError(f"'{name}': {error}", path=path, hint=error.hint) from error
    old = operator.cached
    edits = {k: v for k, v in cached_values(old).items() if set_by(old, k) == "edit"} if old is not None else {}
    asked = {layer: said for layer, said in old.origin.items() if layer != "config"} if old is not None else {}
    # Whether config speaks of the storage level depends on whether anyone speaks of the operator.
    speaks = replace(operator, cached=layered(asked, edits))
    asked = {**asked, "config": config_layer(plan, speaks, shared_operators(plan))}
    edited = replace(operator, cached=simplified(layered(asked, {**edits, name: parsed})))
    return replace(plan, operators=tuple(edited if other.id == operator.id else other for other in plan.operators))


def check_cached(plan: Plan) -> Iterator[Diagnostic]:
    """Every problem with the cached results of ``plan``: in a stream, or origins out of step with the configuration."""
    shared = shared_operators(plan)
    for operator in plan.operators:
        settings = cached_of(operator)
        path = f"operators.{operator.id}.cached"
        if plan.mode != "batch":
            if settings is not None and settings.enabled:
                hint = "write false, or compile the SQL with -c execution.runtime-mode=batch"
                yield Diagnostic(message=ONLY_IN_BATCH, path=f"{path}.{ENABLED}", hint=hint)
            continue
        says = dict(settings.origin.get("config", {})) if settings is not None else {}
        must = config_layer(plan, operator, shared)
        if says != must:
            name = next(name for name in SETTINGS if says.get(name) != must.get(name))
            asks = f"says {shown(must[name])}" if name in must else f"says nothing of '{name}'"
            said = f"'{name}' is {shown(says[name])}" if name in says else f"nothing was said of '{name}'"
            key = CONFIG_ENABLED if name == ENABLED else CONFIG_STORAGE_LEVEL
            step = f"config.{key}='{shown(must.get(name, says.get(name, '')))}' brings all origins in step"
            yield Diagnostic(
                message=f"the origin says that {said}, but config {asks}",
                path=f"{path}.origin" if settings is not None else f"config.{key}",
                hint=f"hintplan set plan.json {step}",
            )
            return  # whoever edits config by hand is told once, not per operator
