"""A function that is open in this Python worker: created, checked against the plan, shared by the worker's tasks."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Generic, TypeVar

from hintplan.plans.declarations.class_shape import function_methods
from hintplan.plans.declarations.classes import FUNCTIONS
from hintplan.plans.declarations.tables import FunctionKind
from hintplan.plans.declarations.types import DataType, parse_type
from hintplan.plans.errors import RunError
from hintplan.runtime.classes import load_class
from hintplan.runtime.functions.api import (
    AggregateFunction,
    AsyncScalarFunction,
    AsyncTableFunction,
    FunctionContext,
    ScalarFunction,
    TableFunction,
)
from hintplan.runtime.functions.call import Blame
from hintplan.runtime.functions.rows import ReturnedRows, returned_rows
from hintplan.runtime.functions.spec import CalledFunction
from hintplan.runtime.worker.event_loop import EventLoop, finish, worker_event_loop
from hintplan.runtime.worker.shared import shared

Function = TableFunction | ScalarFunction | AsyncTableFunction | AsyncScalarFunction | AggregateFunction

Spec = TypeVar("Spec", bound=CalledFunction)

_INTERFACES: dict[FunctionKind, Any] = {
    "table": TableFunction,
    "async-table": AsyncTableFunction,
    "scalar": ScalarFunction,
    "async-scalar": AsyncScalarFunction,
    "aggregate": AggregateFunction,
}


class OpenFunction(Generic[Spec]):
    """An open function; ``event_loop`` belongs to the worker, and ``returned`` is the declared result."""

    def __init__(self, spec: Spec, function: Function, event_loop: EventLoop) -> None:
        self.spec = spec
        self.function = function
        self.event_loop = event_loop
        self.returned: ReturnedRows = returned_rows(
            function.result, spec.kind, tuple(column.name for column in spec.returned)
        )
        self.lock = threading.Lock()
        policy = spec.policy
        context = FunctionContext(function=policy.function, operator=policy.operator)
        blame = Blame(lambda: f"operator {policy.operator}: opening function {policy.function}")
        if isinstance(function, AsyncTableFunction | AsyncScalarFunction):
            finish(event_loop, _opened(function, context, blame))
        else:
            with blame:
                function.open(context)

    def close(self) -> None:
        """Close the function."""
        if isinstance(self.function, AsyncTableFunction | AsyncScalarFunction):
            finish(self.event_loop, self.function.close())
        else:
            self.function.close()


async def _opened(function: AsyncTableFunction | AsyncScalarFunction, context: FunctionContext, blame: Blame) -> None:
    with blame:
        await function.open(context)


def shared_function(spec: Spec) -> AbstractContextManager[OpenFunction[Spec]]:
    """Return the function of ``spec`` in this process, opened if necessary; concurrent tasks share it."""
    return shared(spec.identity, spec.run, lambda: OpenFunction(spec, load_function(spec)(), worker_event_loop()))


def load_function(spec: CalledFunction) -> type[Any]:
    """Return the class of ``spec``; RunError if it may not be loaded, or differs from the class in the plan."""
    path = f"functions.{spec.policy.function}.class"
    function_class = spec.given or load_class(
        spec.class_name,
        spec.allowed_modules,
        _INTERFACES[spec.kind],
        path=path,
        group=FUNCTIONS,
        methods=function_methods(spec.kind, len(spec.declared)),
    )
    _same("arguments", function_class.arguments, spec.declared, spec)
    try:
        returned = returned_rows(function_class.result, spec.kind, ())
    except (AttributeError, TypeError, ValueError) as error:
        raise RunError(f"the class {spec.class_name} declares no result that is a type: {error}", path=path) from error
    _same("result", returned.types, [column.type for column in spec.returned], spec)
    if spec.accumulator is not None:
        _same("accumulator", [getattr(function_class, "accumulator", "")], [spec.accumulator], spec)
        for method in spec.methods:
            if getattr(function_class, method, None) is None:
                raise RunError(
                    f"the class {spec.class_name} has no {method}, but the plan was compiled with one that has",
                    hint=f"define {method}, or compile the plan again from its SQL",
                    path=f"functions.{spec.policy.function}",
                )
    return function_class


def _same(what: str, declared: Sequence[str], planned: Sequence[str], spec: CalledFunction) -> None:
    """Raise RunError if the class has changed since the plan was compiled; values would then have another meaning."""
    if [_read(type_text) for type_text in declared] != [parse_type(type_text) for type_text in planned]:
        raise RunError(
            f"the class {spec.class_name} declares {what} {', '.join(declared) or 'none'}, "
            f"but the plan was compiled with {', '.join(planned) or 'none'}",
            hint="compile the plan again from its SQL",
            path=f"functions.{spec.policy.function}",
        )


def _read(declared: str) -> DataType | None:
    try:
        return parse_type(declared)
    except (TypeError, ValueError):
        return None
