"""``hintplan.set``: a plan with changed settings, checked.

>>> edited = set(Plan(name="p"), "config.parallelism.default", 4)
>>> edited.config
{'parallelism.default': '4'}
>>> set(edited, "config.parallelism.default", None).config
{}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import overload

from hintplan.plans.analysis.repeated import one_sided_changes
from hintplan.plans.analysis.validate import plan_problems
from hintplan.plans.api.plans import PlanLike, plan_of
from hintplan.plans.declarations.durations import format_duration
from hintplan.plans.edit.assign import apply_edits
from hintplan.plans.errors import Diagnostic, PlanError
from hintplan.plans.model.plan import Plan
from hintplan.plans.settings.setting import Value, value_text

Warn = Callable[[Diagnostic], None]
Given = Value | timedelta | None


@overload
def set(
    plan: PlanLike, path: str, value: Given, *, reason: str | None = None, on_warning: Warn | None = None
) -> Plan: ...


@overload
def set(
    plan: PlanLike, path: Mapping[str, Given], *, reason: str | None = None, on_warning: Warn | None = None
) -> Plan: ...


def set(
    plan: PlanLike,
    path: str | Mapping[str, Given],
    value: Given = None,
    *,
    reason: str | None = None,
    on_warning: Warn | None = None,
) -> Plan:
    """Return ``plan``, or the plan in a file, with the setting at ``path`` changed to ``value``, with all consequences.

    A path has the syntax of ``hintplan set``, such as ``join_o_c.state.leftState.ttl``; ``*`` matches anything. A
    mapping changes several settings, which are checked together. None removes a config key or a table option;
    a duration may be a ``timedelta``.
    ``reason`` is stored with the settings; an empty text removes the old reason. ``on_warning`` receives warnings about
    the edit. Raise PlanError, with all problems, for an unknown path, an invalid value, or an invalid resulting plan.
    """
    values = {path: value} if isinstance(path, str) else path
    plan = plan_of(plan)
    edited = apply_edits(
        plan,
        [(key, _text(key, wanted)) for key, wanted in values.items() if wanted is not None],
        [key for key, wanted in values.items() if wanted is None],
        reason=reason,
    )
    if problems := plan_problems(edited):
        raise PlanError(diagnostics=problems)
    if on_warning is not None:
        for warning in one_sided_changes(plan, edited):
            on_warning(Diagnostic(message=warning.message, path=warning.path))
    return edited


def _text(path: str, value: Value | timedelta) -> str:
    if not isinstance(value, timedelta):
        return value_text(value)
    milliseconds, rest = divmod(value, timedelta(milliseconds=1))
    if rest or milliseconds < 0:
        raise PlanError(f"{value!r} is no duration of whole milliseconds", hint="such as timedelta(hours=2)", path=path)
    return format_duration(milliseconds)
