"""Function calls: their rules, their arguments, and the texts of errors.

Arguments are data of the stream, so they are shortened: enough to find the row, not enough to fill a log.

>>> policy = CallPolicy(operator="correlate_locate", function="locate", timeout=50)
>>> print(CallRequest(policy=policy, arguments=("10.0.0.1", None)).timed_out(50))
operator correlate_locate: locate('10.0.0.1', None) timed out after 50 ms, 50 ms are allowed
  hint: async.timeout of the operator covers all attempts of a row
"""

from __future__ import annotations

import reprlib
from asyncio import CancelledError
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import isawaitable
from types import TracebackType
from typing import Any, ClassVar

from hintplan.plans.errors import RunError
from hintplan.runtime.functions.api import AsyncScalarFunction, AsyncTableFunction
from hintplan.runtime.requests.async_requests import AsyncRequests
from hintplan.runtime.requests.metrics import RequestCounters
from hintplan.runtime.requests.request import Request, RequestPolicy
from hintplan.runtime.worker.exceptions import said
from hintplan.runtime.worker.steps import Steps

Arguments = tuple[Any, ...]

_AHEAD = 1024
"""The rows that may wait for a slot: enough to keep the slots busy until the next batch is read."""

_short = reprlib.Repr()
_short.maxstring = _short.maxother = _short.maxlong = 60
_short.maxlevel = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPolicy(RequestPolicy):
    """The rules by which an operator calls ``function``; a failed call is repeated after ``delay`` ms.

    Synchronous functions are called once per row, without a timeout.
    """

    function: str
    delay: int = 0

    def pause(self, failures: int) -> int:
        return self.delay


@dataclass(slots=True, kw_only=True, eq=False)
class CallRequest(Request):
    """A request for the rows that a function returns for ``arguments``."""

    unit: ClassVar[str] = "row"
    retries_hint: ClassVar[str] = "retry.max-attempts of the operator sets how often a failed call is repeated"
    code_hint: ClassVar[str] = "indicates an error in the code, and is retried only if retry_on names it"
    once: ClassVar[str] = ""
    always_retries: ClassVar[bool] = False

    policy: CallPolicy
    arguments: Arguments

    def __str__(self) -> str:
        return call_text(self.policy, self.arguments)


class AsyncCalls(AsyncRequests[CallRequest, list[Any]]):
    """All calls of one task to an asynchronous function."""

    _policy: CallPolicy

    def __init__(
        self,
        function: AsyncTableFunction | AsyncScalarFunction,
        policy: CallPolicy,
        counters: RequestCounters,
        steps: Steps,
    ) -> None:
        most = policy.capacity + max(policy.capacity, _AHEAD)
        super().__init__(policy, counters, steps, retry_on=function.retry_on, most=most)
        self._function = function

    async def call_all(self, rows: Sequence[Arguments], results: list[list[Any]]) -> None:
        """Append the rows that the function returns for each of ``rows`` to ``results``; RunError if a call fails."""
        results += await self.answers([CallRequest(policy=self._policy, arguments=arguments) for arguments in rows])

    async def call(self, request: CallRequest) -> list[Any]:
        with Blame(lambda: str(request), passing=self._retry_on):
            returned = self._function.eval(*request.arguments)
            if hasattr(returned, "__aiter__"):
                return [row async for row in returned]
            if not isawaitable(returned):
                raise RunError(f"{request} did not return an awaitable", hint="write async def eval(...)")
            value = await returned
            if isinstance(self._function, AsyncScalarFunction):
                return [value]
            return row_list(value, lambda: str(request))


def short_text(value: object) -> str:
    """Return a value for a message, shortened."""
    return _short.repr(value)


def call_text(policy: CallPolicy, arguments: Sequence[Any]) -> str:
    """Return the operator and the call for a message."""
    return f"operator {policy.operator}: {policy.function}({', '.join(map(short_text, arguments))})"


def row_list(returned: object, where: Callable[[], str]) -> list[Any]:
    """Return the result of a table function's ``eval`` as a list; RunError if it cannot be rows. None means no rows."""
    if isinstance(returned, list):
        return returned
    if returned is None:
        return []
    if isinstance(returned, str | bytes | Mapping):
        raise RunError(
            f"{where()} returned {short_text(returned)}, which is one value, where any number of rows is expected",
            hint="return a list of rows, or yield each row",
        )
    try:
        rows: Iterator[object] = iter(returned)  # type: ignore[call-overload]
    except TypeError as error:
        raise RunError(
            f"{where()} returned {short_text(returned)}, which is no rows",
            hint="return a list of rows, or yield each row",
        ) from error
    return list(rows)


class Blame:
    """A context manager that turns exceptions of user code into a RunError that names the call ``what``.

    RunErrors and exceptions in ``passing`` pass through unchanged.
    """

    def __init__(self, what: Callable[[], str], passing: tuple[type[Exception], ...] = ()) -> None:
        self._what = what
        self._passing: tuple[type[Exception], ...] = (RunError, *passing)

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # A function that calls sys.exit() must not end the event loop. Exceptions that end a coroutine pass.
        if error is not None and not isinstance(error, (*self._passing, CancelledError, GeneratorExit)):
            raise RunError(f"{self._what()} failed: {said(error)}") from error
