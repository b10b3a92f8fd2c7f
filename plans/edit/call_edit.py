"""What follows from an edit of the settings of calls: nothing but the value, or nothing at all where none is retried.

correlate_locate.retry=off     is     correlate_locate.retry.retry-strategy=no_retry
"""

from __future__ import annotations

from dataclasses import replace

from plans.errors import PlanError
from plans.model.plan import Plan
from plans.operators import Correlate
from plans.settings.calls import NO_RETRY, RETRY_STRATEGY, resolved_call
from plans.settings.layers import Settings, edits_of, ordered
from plans.settings.setting import Value

__all__ = ["resettled_call", "with_call_retry", "with_call_setting"]

_OF_RETRY = ("fixed-delay", "max-attempts")


def with_call_setting(operator: Correlate, path: str, group: str, name: str, value: Value) -> Correlate:
    """The operator with one setting changed; PlanError if its function is synchronous, or it would have no effect."""
    groups = operator.settings
    if group not in groups:
        message = f"'{operator.function}' is synchronous, so there is no '{name}' to set"
        raise PlanError(message, path=path, hint=f"'{operator.id}' has nothing to set")
    settings = groups[group]
    if name in _OF_RETRY and settings.values[RETRY_STRATEGY] == NO_RETRY and settings.values[name] != value:
        message = f"'{name}' has no effect here: the '{RETRY_STRATEGY}' is {NO_RETRY}"
        raise PlanError(message, path=path, hint=f"set {operator.id}.retry='<attempts> x <delay>', which retries")
    return replace(operator, settings={**groups, group: _with_values(settings, {name: value})})


def with_call_retry(operator: Correlate, wanted: tuple[Value, Value] | None) -> Correlate:
    """The operator with ``wanted`` attempts and delay; None never makes a call again."""
    groups = operator.settings
    values: dict[str, Value] = {RETRY_STRATEGY: NO_RETRY}
    if wanted is not None:
        values = {RETRY_STRATEGY: "fixed_delay", "max-attempts": wanted[0], "fixed-delay": wanted[1]}
    return replace(operator, settings={**groups, "retry": _with_values(groups["retry"], values)})


def resettled_call(operator: Correlate, plan: Plan) -> Correlate:
    """The operator with its settings resolved again from default and config; edits stay edits."""
    fresh = resolved_call(plan.functions[operator.function].kind, plan.config)
    groups = {
        group: _with_values(fresh[group], edits_of(settings)) if group in fresh else settings
        for group, settings in operator.settings.items()
    }
    return replace(operator, settings=groups)


def _with_values(settings: Settings, values: dict[str, Value]) -> Settings:
    return replace(settings, values=ordered(settings.specs, {**settings.values, **values}))
