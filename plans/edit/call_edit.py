"""What follows from an edit of the settings of calls: nothing but the value, or nothing at all where none is retried.

correlate_locate.retry=off     is     correlate_locate.retry.retry-strategy=no_retry
"""

from __future__ import annotations

from dataclasses import replace

from plans.errors import PlanError
from plans.model.plan import Plan
from plans.operators import Correlate
from plans.operators.call_document import call_groups, with_call_groups
from plans.settings.calls import resolved_call
from plans.settings.groups import Value
from plans.settings.layers import Settings, edits_of, ordered

__all__ = ["resettled_call", "with_call_retry", "with_call_setting"]

STRATEGY, NO_RETRY = "retry-strategy", "no_retry"
_OF_RETRY = ("fixed-delay", "max-attempts")


def with_call_setting(operator: Correlate, path: str, group: str, name: str, value: Value) -> Correlate:
    """The operator with one setting changed; PlanError if its function is synchronous, or it would have no effect."""
    groups = call_groups(operator)
    if group not in groups:
        message = f"'{operator.function}' is synchronous, so there is no '{name}' to set"
        raise PlanError(message, path=path, hint=f"'{operator.id}' has nothing to set")
    settings = groups[group]
    if name in _OF_RETRY and settings.values[STRATEGY] == NO_RETRY and settings.values[name] != value:
        message = f"'{name}' has no effect here: the '{STRATEGY}' is {NO_RETRY}"
        raise PlanError(message, path=path, hint=f"set {operator.id}.retry='<attempts> x <delay>', which retries")
    return with_call_groups(operator, {**groups, group: _with_values(settings, {name: value})})


def with_call_retry(operator: Correlate, wanted: tuple[Value, Value] | None) -> Correlate:
    """The operator with ``wanted`` attempts and delay; None never makes a call again."""
    groups = call_groups(operator)
    values: dict[str, Value] = {STRATEGY: NO_RETRY}
    if wanted is not None:
        values = {STRATEGY: "fixed_delay", "max-attempts": wanted[0], "fixed-delay": wanted[1]}
    return with_call_groups(operator, {**groups, "retry": _with_values(groups["retry"], values)})


def resettled_call(operator: Correlate, plan: Plan) -> Correlate:
    """The operator with its settings resolved again from default and config; edits stay edits."""
    fresh = resolved_call(plan.functions[operator.function].kind, plan.config)
    groups = {
        group: _with_values(fresh[group], edits_of(settings)) if group in fresh else settings
        for group, settings in call_groups(operator).items()
    }
    return with_call_groups(operator, groups)


def _with_values(settings: Settings, values: dict[str, Value]) -> Settings:
    return replace(settings, values=ordered(settings.specs, {**settings.values, **values}))
