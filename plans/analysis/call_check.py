"""Whether the calls of a plan fit its functions, and whether their origins are in step with its config.

Columns and argument types are followed in :mod:`plans.analysis.columns`.

>>> list(check_calls(Plan(name="p")))
[]
"""

from __future__ import annotations

from collections.abc import Iterator

from plans.declarations.tables import Function
from plans.errors import Diagnostic
from plans.model.plan import Plan
from plans.operators import Correlate
from plans.settings.calls import CALL_GROUPS, is_async, resolved_call
from plans.settings.origins import origins_apart

__all__ = ["check_calls"]


def check_calls(plan: Plan) -> Iterator[Diagnostic]:
    """Every problem with the functions and calls of ``plan``; what calls an unknown function is left to the columns."""
    for name, function in plan.functions.items():
        if function.kind in ("scalar", "async-scalar") and len(function.output) != 1:
            message = f"a scalar function returns one column, found {len(function.output)}"
            yield Diagnostic(message=message, path=f"functions.{name}.output")
    for operator in plan.operators:
        if isinstance(operator, Correlate) and operator.function in plan.functions:
            yield from _check_call(operator, plan.functions[operator.function], plan)


def _check_call(operator: Correlate, function: Function, plan: Plan) -> Iterator[Diagnostic]:
    path, groups = f"operators.{operator.id}", operator.settings
    if operator.join_type == "left" and function.kind in ("scalar", "async-scalar"):
        message = f"'{operator.function}' returns one value for every row, so there is nothing to keep or drop"
        yield Diagnostic(message=message, path=f"{path}.join-type", hint='write "inner"')
    waits = is_async(function.kind)
    for group in (group.name for group in CALL_GROUPS):
        if waits and group not in groups:
            message = f"'{operator.function}' is asynchronous, so its calls have the settings '{group}'"
            hint = "compile the SQL again" if group == "async" else '"retry-strategy": "no_retry" turns retries off'
            yield Diagnostic(message=message, path=f"{path}.{group}", hint=hint)
        elif not waits and group in groups:
            message = f"'{operator.function}' is synchronous: its calls neither wait nor retry"
            yield Diagnostic(message=message, path=f"{path}.{group}", hint="write null")
    yield from origins_apart(operator.id, groups, resolved_call(function.kind, plan.config), "the table")
