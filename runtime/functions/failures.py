"""Texts of errors about a function call: the operator, the function, the arguments, the attempts and the time.

Arguments are data of the stream, so they are shortened: enough to find the row, not enough to fill a log.

>>> policy = CallPolicy(operator="correlate_locate", function="locate", timeout=50)
>>> print(timed_out(policy, ("10.0.0.1", None), 50))
operator correlate_locate: locate('10.0.0.1', None) timed out after 50 ms, 50 ms are allowed
  hint: async.timeout of the operator covers all attempts of a row
"""

from __future__ import annotations

import reprlib
from asyncio import CancelledError
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

from hintplan.plans.errors import RunError, Unavailable
from hintplan.runtime.functions.spec import CallPolicy
from hintplan.runtime.worker.exceptions import NEVER_HEAL, said

_short = reprlib.Repr()
_short.maxstring = _short.maxother = _short.maxlong = 60
_short.maxlevel = 3


def shown(value: object) -> str:
    """Return a value for a message, shortened."""
    return _short.repr(value)


def call_text(policy: CallPolicy, arguments: Sequence[Any]) -> str:
    """Return the operator and the call for a message."""
    return f"operator {policy.operator}: {policy.function}({', '.join(map(shown, arguments))})"


def failed(policy: CallPolicy, arguments: Sequence[Any], times: int, error: BaseException) -> RunError:
    """Return the error that ends the query when a call has failed and is not repeated."""
    often = "" if times == 1 else f" {times} times"
    hint = "retry.max-attempts of the operator sets how often a failed call is repeated" if times > 1 else None
    if times <= policy.retries:
        hint = f"{type(error).__name__} says that the code is wrong, and is tried again only if retry_on names it"
    may_heal = policy.retries and times > policy.retries and not isinstance(error, NEVER_HEAL)
    kind = Unavailable if may_heal else RunError
    return kind(f"{call_text(policy, arguments)} failed{often}: {said(error)}", hint=hint)


def timed_out(
    policy: CallPolicy, arguments: Sequence[Any], elapsed: int, failures: int = 0, last: BaseException | None = None
) -> RunError:
    """Return the error that ends the query when a row takes too long: ``elapsed`` ms, with ``last`` as last failure."""
    cause = "" if last is None else f"; attempt {failures} of {1 + policy.retries} failed: {said(last)}"
    return Unavailable(
        f"{call_text(policy, arguments)} timed out after {elapsed} ms, {policy.timeout} ms are allowed{cause}",
        hint="async.timeout of the operator covers all attempts of a row",
    )


def cancelled(policy: CallPolicy, arguments: Sequence[Any]) -> RunError:
    """Return the error that ends the query when a function cancels its own call."""
    return RunError(f"{call_text(policy, arguments)} was cancelled, but not by the engine")


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
