"""What errors say about a call of a function: which operator, which function, which arguments, how often, how long.

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


def shown(value: Any) -> str:
    """A value for a message, shortened."""
    return _short.repr(value)


def call_text(policy: CallPolicy, arguments: Sequence[Any]) -> str:
    """The operator and the call."""
    return f"operator {policy.operator}: {policy.function}({', '.join(map(shown, arguments))})"


def failed(policy: CallPolicy, arguments: Sequence[Any], times: int, error: BaseException) -> RunError:
    """What ends the query when a call fails for good."""
    often = "" if times == 1 else f" {times} times"
    hint = "retry.max-attempts of the operator says how often a failed call is made again" if times > 1 else None
    if times <= policy.retries:
        hint = f"{type(error).__name__} says that the code is wrong, and is tried again only if retry_on names it"
    may_heal = policy.retries and times > policy.retries and not isinstance(error, NEVER_HEAL)
    kind = Unavailable if may_heal else RunError
    return kind(f"{call_text(policy, arguments)} failed{often}: {said(error)}", hint=hint)


def timed_out(
    policy: CallPolicy, arguments: Sequence[Any], elapsed: int, failures: int = 0, last: BaseException | None = None
) -> RunError:
    """What ends the query when a row takes too long, ``elapsed`` in ms; ``last`` is how its last failure was."""
    cause = "" if last is None else f"; attempt {failures} of {1 + policy.retries} failed: {said(last)}"
    return Unavailable(
        f"{call_text(policy, arguments)} timed out after {elapsed} ms, {policy.timeout} ms are allowed{cause}",
        hint="async.timeout of the operator covers all attempts of a row",
    )


def cancelled(policy: CallPolicy, arguments: Sequence[Any]) -> RunError:
    """What ends the query when a function ends its call by cancelling itself."""
    return RunError(f"{call_text(policy, arguments)} was cancelled, but not by the engine")


class Blame:
    """Turns an exception of user code inside it into a RunError that says which call ``what`` is.

    A RunError passes, and so does what is in ``passing``.
    """

    def __init__(self, what: Callable[[], str], passing: tuple[type[Exception], ...] = ()) -> None:
        self._what = what
        self._passing: tuple[type[Exception], ...] = (RunError, *passing)

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # A function that calls sys.exit() must not take the event loop with it. What ends a coroutine passes.
        if error is not None and not isinstance(error, (*self._passing, CancelledError, GeneratorExit)):
            raise RunError(f"{self._what()} failed: {said(error)}") from error
