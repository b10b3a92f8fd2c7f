"""The interfaces that users implement for their own functions.

A class declares the types of its arguments and of its result in Flink's spelling. Every Python worker that needs it
creates it without arguments, opens it once, calls it for many rows, and closes it when the worker ends. Values are
Python values, as pyarrow's ``to_pylist`` returns them for their types; NULL is None. This module does not know Spark,
and importing it needs nothing but Python.

    class Words(TableFunction):
        arguments = ("STRING",)
        result = "ROW<word STRING, length INT>"

        def eval(self, text):
            for word in (text or "").split():
                yield word, len(word)

A result of ``ROW<...>`` gives a table function one column per field. Each row is then a tuple, a list or a dict with a
value for every field. Any other result is one column, and each row is the value itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from hintplan.plans.declarations.tables import FunctionKind


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionContext:
    """The name of a function in the plan, and the operator that calls it; a function gets them when it is opened."""

    function: str
    operator: str


class UserDefinedFunction(ABC):
    """The declarations that all functions share. Implement one of the five subclasses."""

    function_kind: ClassVar[FunctionKind]

    arguments: ClassVar[tuple[str, ...]] = ()
    """The type of each argument of ``eval``, such as ``"STRING"`` or ``"ARRAY<INT>"``."""

    result: ClassVar[str]
    """The type that ``eval`` returns: of each row, or of the value."""

    deterministic: ClassVar[bool] = True
    """True if equal arguments always give equal results. The results of any other function are pinned in the
    checkpoint, so that a batch that runs again uses them.
    """


class _Synchronous(UserDefinedFunction):
    """A function whose calls return their results; the task waits for them."""

    def open(self, context: FunctionContext) -> None:
        """Prepare for calls: connections, models, files."""

    def close(self) -> None:
        """Release everything that :meth:`open` acquired."""


class _Asynchronous(UserDefinedFunction):
    """A function whose calls are coroutines."""

    deterministic: ClassVar[bool] = False  # an asynchronous function usually queries a service

    retry_on: ClassVar[tuple[type[Exception], ...]] = (Exception,)

    async def open(self, context: FunctionContext) -> None:
        """Prepare for calls: connections, pools, models."""

    async def close(self) -> None:
        """Release everything that :meth:`open` acquired."""


class TableFunction(_Synchronous):
    """A function that returns any number of rows for each input row, while the task waits.

    One thread at a time makes calls. An exception fails the query.
    """

    function_kind = "table"

    @abstractmethod
    def eval(self, *args: Any, **kwargs: Any) -> Any:
        """Return or yield the rows for one input row; None for no rows."""


class ScalarFunction(_Synchronous):
    """A function that returns one value for each input row, while the task waits; see :class:`TableFunction`."""

    function_kind = "scalar"

    @abstractmethod
    def eval(self, *args: Any, **kwargs: Any) -> Any:
        """Return the value for one input row; None for NULL."""


class AsyncTableFunction(_Asynchronous):
    """A function that returns any number of rows for each input row; many calls are in flight at once.

    All coroutines, also ``open`` and ``close``, run on one event loop of the engine, which lives as long as the worker.
    At most ``buffer-capacity`` calls of a task are in flight.

    After an exception in ``retry_on``, the engine repeats the call by the retry settings, and then fails the query. Any
    other exception fails the query at once, and so does a plain :class:`hintplan.plans.errors.RunError`. If a row takes
    longer than the timeout, the engine cancels its call and fails the query.
    """

    function_kind = "async-table"

    @abstractmethod
    def eval(self, *args: Any, **kwargs: Any) -> Any:
        """Return or yield the rows for one input row, as ``async def``; None for no rows."""


class AsyncScalarFunction(_Asynchronous):
    """A function that returns one value for each input row, asynchronously; see :class:`AsyncTableFunction`."""

    function_kind = "async-scalar"

    @abstractmethod
    async def eval(self, *args: Any, **kwargs: Any) -> Any:
        """Return the value for one input row; None for NULL."""


class AggregateFunction(_Synchronous):
    """A function that returns one value for all rows of a group, from an accumulator; like Flink's AggregateFunction.

        class WeightedAverage(AggregateFunction):
            arguments = ("BIGINT", "BIGINT")
            accumulator = "ROW<total BIGINT, weight BIGINT>"
            result = "DOUBLE"

            def create_accumulator(self):
                return [0, 0]

            def accumulate(self, accumulator, value, weight):
                accumulator[0] += value * weight
                accumulator[1] += weight

            def get_value(self, accumulator):
                return accumulator[0] / accumulator[1] if accumulator[1] else None

    An accumulator of ``ROW<...>`` is a list with a value for each field, at any depth. Methods change a ROW, an ARRAY
    or a MAP in place; an accumulator of any other type is replaced with the value that the method returns. Between
    calls the engine keeps it as state, so it may only hold values of its declared type.

    Two more methods are optional. ``retract(self, accumulator, *args)`` takes back a row that was accumulated before;
    inputs with updates or deletes require it. ``merge(self, accumulator, accumulators)`` adds accumulators of other
    rows of the group; with it, rows are summed up before the shuffle.
    """

    function_kind = "aggregate"

    accumulator: ClassVar[str]
    """The type of an accumulator."""

    @abstractmethod
    def create_accumulator(self) -> Any:
        """Return the accumulator of a group without rows."""

    @abstractmethod
    def accumulate(self, accumulator: object, *args: Any) -> Any:
        """Add a row with these arguments."""

    @abstractmethod
    def get_value(self, accumulator: object) -> Any:
        """Return the result; None for NULL."""
