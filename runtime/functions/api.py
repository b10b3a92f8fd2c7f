"""What a function of the user's is to the engine: the interfaces people implement.

A class declares the types of its arguments and of its result in Flink's spelling. It is created without arguments in
every Python worker that needs it, opened once, called for many rows, and closed with the worker. Values are Python
values as pyarrow's ``to_pylist`` gives them for their types; NULL is None. This module does not know Spark,
and importing it needs nothing but Python.

    class Words(TableFunction):
        arguments = ("STRING",)
        result = "ROW<word STRING, length INT>"

        def eval(self, text):
            for word in (text or "").split():
                yield word, len(word)

A result of ``ROW<...>`` gives a table function one column per field, and each row is a tuple, a list or a dict with a
value for every field. Any other result is one column, and each row is the value itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from hintplan.plans.declarations.tables import FunctionKind


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionContext:
    """What a function learns when it is opened: its name in the plan, and the operator that calls it."""

    function: str
    operator: str


class UserDefinedFunction(ABC):
    """What all functions declare. Implement one of the five below."""

    function_kind: ClassVar[FunctionKind]

    arguments: ClassVar[tuple[str, ...]] = ()
    """The type of each argument of ``eval``, such as ``"STRING"`` or ``"ARRAY<INT>"``."""

    result: ClassVar[str]
    """The type of what ``eval`` returns: of each row, or of the value."""

    deterministic: ClassVar[bool] = True
    """Whether it returns the same for the same arguments whenever it is called. What another one has returned is pinned
    in the checkpoint, so that a batch that runs again goes by it."""


class TableFunction(UserDefinedFunction):
    """Returns any number of rows for each input row, while the task waits.

    Calls are made by one thread at a time. An exception fails the query.
    """

    function_kind = "table"

    def open(self, context: FunctionContext) -> None:
        """Prepare for calls: connections, models, files."""

    @abstractmethod
    def eval(self, *args: Any, **kwargs: Any) -> Any:
        """The rows for one input row: an iterable, or a generator; None for no rows."""

    def close(self) -> None:
        """Release what :meth:`open` took."""


class ScalarFunction(UserDefinedFunction):
    """Returns one value for each input row, while the task waits. Otherwise as :class:`TableFunction`."""

    function_kind = "scalar"

    def open(self, context: FunctionContext) -> None:
        """Prepare for calls: connections, models, files."""

    @abstractmethod
    def eval(self, *args: Any, **kwargs: Any) -> Any:
        """The value for one input row; None for NULL."""

    def close(self) -> None:
        """Release what :meth:`open` took."""


class AsyncTableFunction(UserDefinedFunction):
    """Returns any number of rows for each input row; many calls are in flight at once.

    All coroutines run on one event loop that is the engine's and lives as long as the worker, ``open`` and ``close``
    too. At most ``buffer-capacity`` calls of a task are in flight. An exception in ``retry_on`` is tried again as the
    retry settings say, and then fails the query; any other one fails it at once, and so does a plain
    :class:`hintplan.plans.errors.RunError`. A row that takes longer than the timeout has its call cancelled and fails
    the query.
    """

    function_kind = "async-table"

    deterministic: ClassVar[bool] = False  # whoever waits has asked somebody

    retry_on: ClassVar[tuple[type[Exception], ...]] = (Exception,)

    async def open(self, context: FunctionContext) -> None:
        """Prepare for calls: connections, pools, models."""

    @abstractmethod
    def eval(self, *args: Any, **kwargs: Any) -> Any:
        """``async def``: the rows for one input row, returned as an iterable or yielded; None for no rows."""

    async def close(self) -> None:
        """Release what :meth:`open` took."""


class AsyncScalarFunction(UserDefinedFunction):
    """Returns one value for each input row; many calls are in flight at once. As :class:`AsyncTableFunction`."""

    function_kind = "async-scalar"

    deterministic: ClassVar[bool] = False  # whoever waits has asked somebody

    retry_on: ClassVar[tuple[type[Exception], ...]] = (Exception,)

    async def open(self, context: FunctionContext) -> None:
        """Prepare for calls: connections, pools, models."""

    @abstractmethod
    async def eval(self, *args: Any, **kwargs: Any) -> Any:
        """The value for one input row; None for NULL."""

    async def close(self) -> None:
        """Release what :meth:`open` took."""


class AggregateFunction(UserDefinedFunction):
    """Returns one value for all rows of a group, from an accumulator that the engine keeps: Flink's AggregateFunction.

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

    An accumulator of ``ROW<...>`` is a list with a value for each field, at any depth. It is changed in place, and so
    is an ARRAY or a MAP; an accumulator of any other type is replaced by what the method returns. Between calls it is
    state, so it may hold nothing but values of its declared type.

    Two more methods may be defined. ``retract(self, accumulator, *args)`` takes back a row that was accumulated before,
    and is needed where the input can change. ``merge(self, accumulator, accumulators)`` adds those of other rows of the
    group; with it rows are summed up before they are shuffled.
    """

    function_kind = "aggregate"

    accumulator: ClassVar[str]
    """The type of an accumulator."""

    def open(self, context: FunctionContext) -> None:
        """Prepare for calls."""

    @abstractmethod
    def create_accumulator(self) -> Any:
        """The accumulator of a group without rows."""

    @abstractmethod
    def accumulate(self, accumulator: Any, *args: Any) -> Any:
        """Add a row with these arguments."""

    @abstractmethod
    def get_value(self, accumulator: Any) -> Any:
        """The result; None for NULL."""

    def close(self) -> None:
        """Release what :meth:`open` took."""
