"""Several edits of a plan, of which all are right or none is made.

>>> assigned(Plan(name="p"), [("config.parallelism.default", "4"), ("name", "q")]).name
'q'
"""

from __future__ import annotations

from collections.abc import Iterable

from hintplan.plans.edit.edit import remove_value, set_value
from hintplan.plans.errors import Diagnostic, PlanError
from hintplan.plans.model.plan import Plan
from hintplan.plans.model.settings import paths_like


def assigned(
    plan: Plan, values: Iterable[tuple[str, str]], removals: Iterable[str] = (), *, reason: str | None = None
) -> Plan:
    """``plan`` with ``values`` set by path, then without ``removals``; PlanError with all that is wrong with them.

    ``*`` in the path of a value stands for anything. ``reason`` is kept beside each. The meaning of the result is not
    checked: edits may be what repairs a plan.
    """
    problems: list[Diagnostic] = []
    for path, value in values:
        try:
            for one in paths_like(plan, path) if "*" in path else (path,):
                plan, _ = set_value(plan, one, value, reason=reason)
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
