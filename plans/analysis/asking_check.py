"""Checks the settings of lookups and calls in a plan, and the declared results of its functions.

:mod:`hintplan.plans.analysis.columns` checks columns and argument types.

>>> list(check_functions(Plan(name="p"))), list(check_asking(Plan(name="p"), {}))
([], [])
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hintplan.plans.declarations.row_kinds import INSERT_ONLY, RowKinds
from hintplan.plans.errors import Diagnostic
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Requesting


def check_functions(plan: Plan) -> Iterator[Diagnostic]:
    """Yield every problem of the functions of ``plan``; the check of columns reports calls of unknown ones."""
    for name, function in plan.functions.items():
        path = f"functions.{name}"
        if (function.kind == "aggregate") != (function.accumulator is not None):
            only = "has none" if function.accumulator is None else "is none"
            message = f"an aggregate function, and no other, has an accumulator; '{name}' {only}"
            yield Diagnostic(message=message, path=f"{path}.accumulator")
        if function.kind == "aggregate" and len(function.output) != 1:
            message = f"an aggregate function returns one column, found {len(function.output)}"
            yield Diagnostic(message=message, path=f"{path}.output")
        if function.kind in ("scalar", "async-scalar") and len(function.output) != 1:
            message = f"a scalar function returns one column, found {len(function.output)}"
            yield Diagnostic(message=message, path=f"{path}.output")


def check_asking(plan: Plan, kinds: Mapping[str, RowKinds] | None) -> Iterator[Diagnostic]:
    """Yield every problem of the settings of lookups and calls.

    ``kinds`` has the row kinds that operators emit; it is None if edges or tables are invalid.
    """
    for operator in plan.operators:
        if isinstance(operator, Requesting):
            insert_only = None if kinds is None else all(kinds[name] == INSERT_ONLY for name in operator.inputs)
            yield from operator.check_settings(plan, insert_only)
