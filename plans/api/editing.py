"""``hintplan.set``: a plan with changed settings, checked.

>>> edited = set(Plan(name="p"), "config.parallelism.default", 4)
>>> edited.config
{'parallelism.default': '4'}
>>> set(edited, "config.parallelism.default", None).config
{}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import overload

from hintplan.plans.analysis.repeated import one_sided_changes
from hintplan.plans.analysis.validate import validate
from hintplan.plans.edit.assign import assigned
from hintplan.plans.errors import Diagnostic, PlanError
from hintplan.plans.model.plan import Plan
from hintplan.plans.settings.setting import Value, shown

Warn = Callable[[Diagnostic], None]


@overload
def set(
    plan: Plan, path: str, value: Value | None, *, reason: str | None = None, on_warning: Warn | None = None
) -> Plan: ...


@overload
def set(
    plan: Plan, path: Mapping[str, Value | None], *, reason: str | None = None, on_warning: Warn | None = None
) -> Plan: ...


def set(
    plan: Plan,
    path: str | Mapping[str, Value | None],
    value: Value | None = None,
    *,
    reason: str | None = None,
    on_warning: Warn | None = None,
) -> Plan:
    """Return ``plan`` with the setting at ``path`` changed to ``value``, and with all consequences of the change.

    A path has the syntax of ``hintplan set``, such as ``join_o_c.state.leftState.ttl``; ``*`` matches anything. A
    mapping changes several settings, which are checked together. None removes a config key or a table option.
    ``reason`` is stored with the settings; an empty text removes the old reason. ``on_warning`` receives warnings about
    the edit. Raise PlanError, with all problems, for an unknown path, an invalid value, or an invalid resulting plan.
    """
    values = {path: value} if isinstance(path, str) else path
    edited = assigned(
        plan,
        [(key, shown(wanted)) for key, wanted in values.items() if wanted is not None],
        [key for key, wanted in values.items() if wanted is None],
        reason=reason,
    )
    if problems := validate(edited):
        raise PlanError(diagnostics=problems)
    if on_warning is not None:
        for warning in one_sided_changes(plan, edited):
            on_warning(Diagnostic(message=warning.message, path=warning.path))
    return edited
