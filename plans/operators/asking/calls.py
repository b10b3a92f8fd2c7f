"""Settings of function calls: how calls wait and retry, whether they fit their function, and the effect of an edit.

An edit changes only the value that it names, or also the strategy if it turns retries on or off.

    correlate_locate.retry=off     is     correlate_locate.retry.retry-strategy=no_retry
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Protocol

from hintplan.plans.declarations.built_in import CLASSES_DRAWN
from hintplan.plans.errors import Diagnostic, PlanError
from hintplan.plans.operators.asking.kind import Alike, AskingKind, Groups, Retries, Waits
from hintplan.plans.operators.spec.declared import Declared
from hintplan.plans.settings.calls import CALL_GROUPS, NO_RETRY, RETRY_STRATEGY, call_groups, is_async, resolved_call
from hintplan.plans.settings.group import Group
from hintplan.plans.settings.layers import Settings, edits_of, ordered
from hintplan.plans.settings.origin_checks import check_origins
from hintplan.plans.settings.setting import Value
from hintplan.plans.settings.views import CallRetry, CallSettings

_OF_RETRY = ("fixed-delay", "max-attempts")


class _Call(Protocol):
    """The facts of a call on which its settings depend."""

    @property
    def id(self) -> str: ...

    @property
    def function(self) -> str: ...

    @property
    def join_type(self) -> str: ...

    @property
    def arguments(self) -> tuple[object, ...]: ...

    @property
    def settings(self) -> Groups: ...

    @property
    def async_(self) -> CallSettings | None: ...

    @property
    def retry(self) -> CallRetry | None: ...


def _alike(call: _Call) -> Alike:
    return Alike(target=call.function, key=call.arguments)


def _waits(call: _Call) -> Waits | None:
    waits, retry = call.async_, call.retry
    if waits is None:
        return None
    retries = None
    if retry is not None:
        attempts = 0 if retry.never else retry.max_attempts
        retries = Retries(attempts=attempts, delay=retry.fixed_delay, timeout=waits.timeout)
    return Waits(capacity=waits.buffer_capacity, capacity_name="buffer-capacity", retries=retries)


def _parks_rows(call: _Call) -> bool:
    return False


def _keys(call: _Call, plan: Declared) -> dict[str, Group]:
    return {group.name: group for group in call_groups(plan.functions[call.function].kind)}


def _settable(call: _Call) -> tuple[str, ...]:
    return tuple(group.name for group in CALL_GROUPS if group.name in call.settings)


def _idle(call: _Call) -> str:
    return f"'{call.id}' calls '{call.function}', which is synchronous: its calls neither wait nor retry"


def _with_setting(operator: _Call, plan: Declared, path: str, group: str, name: str, value: Value) -> Groups:
    """Return the settings with one setting changed.

    Raise PlanError if the function is synchronous or the setting would have no effect.
    """
    groups = operator.settings
    if group not in groups:
        message = f"'{operator.function}' is synchronous, so there is no '{name}' to set"
        raise PlanError(message, path=path, hint=f"'{operator.id}' has nothing to set")
    settings = groups[group]
    if name in _OF_RETRY and settings.values[RETRY_STRATEGY] == NO_RETRY and settings.values[name] != value:
        message = f"'{name}' has no effect here: the '{RETRY_STRATEGY}' is {NO_RETRY}"
        raise PlanError(message, path=path, hint=f"set {operator.id}.retry='<attempts> x <delay>', which retries")
    return {**groups, group: _with_values(settings, {name: value})}


def _with_retry(operator: _Call, plan: Declared, wanted: tuple[Value, Value] | None) -> Groups:
    """Return the settings with the attempts and the delay in ``wanted``; None turns retries off."""
    groups = operator.settings
    values: dict[str, Value] = {RETRY_STRATEGY: NO_RETRY}
    if wanted is not None:
        values = {RETRY_STRATEGY: "fixed_delay", "max-attempts": wanted[0], "fixed-delay": wanted[1]}
    return {**groups, "retry": _with_values(groups["retry"], values)}


def _resettled(operator: _Call, plan: Declared, insert_only: bool | None) -> Groups:
    """Return the settings resolved again from default and config; edits stay edits."""
    if operator.function not in plan.functions:
        return operator.settings
    fresh = resolved_call(plan.functions[operator.function].kind, plan.config)
    return {
        group: _with_values(fresh[group], edits_of(settings)) if group in fresh else settings
        for group, settings in operator.settings.items()
    }


def _check(operator: _Call, plan: Declared, insert_only: bool | None) -> Iterator[Diagnostic]:
    """Yield the problems of a call to a function that the plan declares."""
    function = plan.functions.get(operator.function)
    if function is None:
        return
    path, groups = f"operators.{operator.id}", operator.settings
    if operator.join_type == "left" and function.kind in ("scalar", "async-scalar"):
        message = f"'{operator.function}' returns one value for every row, so there is nothing to keep or drop"
        yield Diagnostic(message=message, path=f"{path}.join-type", hint='write "inner"')
    if insert_only is False and function.class_name in CLASSES_DRAWN:
        message = f"'{operator.function}' is called for rows that can change: none could be taken back as it was"
        yield Diagnostic(message=message, path=f"{path}.inputs", hint="call it below the join or aggregate")
    waits = is_async(function.kind)
    for group in (group.name for group in CALL_GROUPS):
        if waits and group not in groups:
            message = f"'{operator.function}' is asynchronous, so its calls have the settings '{group}'"
            hint = "compile the SQL again" if group == "async" else '"retry-strategy": "no_retry" turns retries off'
            yield Diagnostic(message=message, path=f"{path}.{group}", hint=hint)
        elif not waits and group in groups:
            message = f"'{operator.function}' is synchronous: its calls neither wait nor retry"
            yield Diagnostic(message=message, path=f"{path}.{group}", hint="write null")
    yield from check_origins(operator.id, groups, resolved_call(function.kind, plan.config), "the table")


def _with_values(settings: Settings, values: dict[str, Value]) -> Settings:
    return replace(settings, values=ordered(settings.specs, {**settings.values, **values}))


CALLS = AskingKind(
    question="call",
    alike=_alike,
    alike_text="calls {} with the same arguments",
    waits=_waits,
    parks_rows=_parks_rows,
    keys=_keys,
    settable=_settable,
    idle=_idle,
    with_setting=_with_setting,
    with_retry=_with_retry,
    resettled=_resettled,
    check=_check,
)
