"""``hintplan.set``: a plan with other settings, checked.

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
    """``plan`` with the setting at ``path`` set to ``value``, and with everything that follows from it.

    A path is one that ``hintplan set`` takes, such as ``join_o_c.state.leftState.ttl``; ``*`` stands for anything in
    it. A mapping sets several at once, which are checked together. None removes a config key or a table option.
    ``reason`` is kept beside what is set; an empty one takes the old one away. ``on_warning`` gets what is worth
    knowing of the edit. PlanError, with all that is wrong, if a path is no setting, a value is none that it takes, or
    the plan would be wrong with it.
    """
    values = {path: value} if isinstance(path, str) else path
    edited = assigned(
        plan,
        [(one, shown(wanted)) for one, wanted in values.items() if wanted is not None],
        [one for one, wanted in values.items() if wanted is None],
        reason=reason,
    )
    if problems := validate(edited):
        raise PlanError(diagnostics=problems)
    if on_warning is not None:
        for found in one_sided_changes(plan, edited):
            on_warning(Diagnostic(message=found.message, path=found.path))
    return edited
