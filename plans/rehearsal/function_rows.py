"""The columns of rows that stand for a function in a test: its arguments and what it returns for them.

>>> locate = Function(
...     class_name="m.L", kind="table", arguments=("STRING",), output=(Column(name="city", type="STRING"),)
... )
>>> [column.name for column in function_columns(locate)]
['arg1', 'city']
"""

from __future__ import annotations

from hintplan.plans.declarations.tables import Column, Function

RESULT = "result"
"""The column with the value that a scalar function returns."""


def is_scalar(function: Function) -> bool:
    """Return True if a call of ``function`` returns one value."""
    return function.kind in ("scalar", "async-scalar")


def argument_names(function: Function) -> tuple[str, ...]:
    """Return the columns of the arguments, in their order."""
    return tuple(f"arg{number}" for number in range(1, len(function.arguments) + 1))


def function_columns(function: Function) -> tuple[Column, ...]:
    """Return the columns of rows for a scalar or table ``function``: ``arg1``, ``arg2`` and so on, and its results."""
    arguments = zip(argument_names(function), function.arguments, strict=True)
    results = (Column(name=RESULT, type=function.output[0].type),) if is_scalar(function) else function.output
    return (*(Column(name=name, type=kind) for name, kind in arguments), *results)
