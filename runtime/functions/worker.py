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
from hintplan.runtime.functions.failures import Blame
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
    """An open function; ``event_loop`` is the worker's. ``returned`` is what it declares to return."""

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


def acquired(spec: Spec) -> AbstractContextManager[OpenFunction[Spec]]:
    """The function of ``spec`` in this process, opened if it is not; tasks that use it at once share it."""
    return shared(spec.identity, spec.run, lambda: OpenFunction(spec, load_function(spec)(), worker_event_loop()))


def load_function(spec: CalledFunction) -> type[Any]:
    """The class of ``spec``; RunError if it may not be loaded, or is not what the plan was compiled with."""
    path = f"functions.{spec.policy.function}.class"
    found = load_class(
        spec.class_name,
        spec.allowed_modules,
        _INTERFACES[spec.kind],
        path=path,
        group=FUNCTIONS,
        methods=function_methods(spec.kind, len(spec.declared)),
    )
    _same("arguments", found.arguments, spec.declared, spec)
    try:
        returned = returned_rows(found.result, spec.kind, ())
    except (AttributeError, TypeError, ValueError) as error:
        raise RunError(f"the class {spec.class_name} declares no result that is a type: {error}", path=path) from error
    _same("result", returned.types, [column.type for column in spec.returned], spec)
    if spec.accumulator is not None:
        _same("accumulator", [getattr(found, "accumulator", "")], [spec.accumulator], spec)
        for method in spec.methods:
            if getattr(found, method, None) is None:
                raise RunError(
                    f"the class {spec.class_name} has no {method}, but the plan was compiled with one that has",
                    hint=f"define {method}, or compile the plan again from its SQL",
                    path=f"functions.{spec.policy.function}",
                )
    return found  # type: ignore[no-any-return]


def _same(what: str, declared: Sequence[str], planned: Sequence[str], spec: CalledFunction) -> None:
    """RunError if the class has changed since the plan was compiled, for then values would mean something else."""
    if [_read(each) for each in declared] != [parse_type(each) for each in planned]:
        raise RunError(
            f"the class {spec.class_name} declares {what} {', '.join(declared) or 'none'}, "
            f"but the plan was compiled with {', '.join(planned) or 'none'}",
            hint="compile the plan again from its SQL",
            path=f"functions.{spec.policy.function}",
        )


def _read(declared: Any) -> DataType | None:
    try:
        return parse_type(declared)
    except (TypeError, ValueError):
        return None
