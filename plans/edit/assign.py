"""Several edits of a plan, which are applied all or not at all.

>>> apply_edits(Plan(name="p"), [("config.parallelism.default", "4"), ("name", "q")]).name
'q'
"""

from __future__ import annotations

from collections.abc import Iterable

from hintplan.plans.edit.edit import remove_value, set_value
from hintplan.plans.errors import Diagnostic, PlanError
from hintplan.plans.model.plan import Plan
from hintplan.plans.model.settings import paths_like


def apply_edits(
    plan: Plan, values: Iterable[tuple[str, str]], removals: Iterable[str] = (), *, reason: str | None = None
) -> Plan:
    """Set ``values`` by path, then remove ``removals``; raise PlanError with all errors.

    ``*`` in the path of a value matches anything. ``reason`` is stored with each value. The meaning of the result is
    not checked, because edits may repair a plan.
    """
    problems: list[Diagnostic] = []
    for path, value in values:
        try:
            for setting in paths_like(plan, path) if "*" in path else (path,):
                plan, _ = set_value(plan, setting, value, reason=reason)
        except PlanError as error:
            problems += error.diagnostics
    for path in removals:
        try:
            plan, _ = remove_value(plan, path)
        except PlanError as error:
            problems += error.diagnostics
    if problems:
        raise PlanError(diagnostics=tuple(problems))
    return plan
