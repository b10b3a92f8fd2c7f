"""A request with its retries after failures, its time limit, and the messages of errors that end the query.

A request is one or more calls of the user's code. After a failure the call is repeated, at most ``retries`` times, with
pauses in between. A plain RunError is final, and so is an exception that shows a fault of the code.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from hintplan.plans.errors import RunError, Unavailable
from hintplan.runtime.requests.metrics import RequestCounters
from hintplan.runtime.worker.clock import Clock
from hintplan.runtime.worker.exceptions import NEVER_HEAL, retried, said

AnyRequest = TypeVar("AnyRequest", bound="Request")
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRun:
    """The facts of a run that lookups and function calls depend on.

    ``token`` identifies the run; ``once`` is True if the run ends with its input.
    """

    token: str
    allowed_modules: tuple[str, ...] = ()
    allowed_paths: tuple[str, ...] = ()
    time_zone: str = "UTC"
    once: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestPolicy(ABC):
    """The rules by which ``operator`` makes requests; times are in ms.

    ``capacity`` bounds the requests of a task that are in flight. A failed call is repeated up to ``retries`` times.
    ``timeout`` covers all calls of a request and the pauses between them, 0 for none. Only asynchronous requests can
    time out.
    """

    operator: str
    capacity: int = 1
    timeout: int = 0
    retries: int = 0

    @abstractmethod
    def pause(self, failures: int) -> int:
        """Return the ms to wait after the ``failures``-th failure in a row, counted from 1."""


@dataclass(slots=True, kw_only=True, eq=False)
class Request(ABC):
    """A request, which names itself in errors; it owns its steps on the event loop.

    ``failures`` is the number of failed calls in a row, and ``last`` the last of them. ``size`` is the number of rows
    or keys that wait for the answer.
    """

    unit: ClassVar[str]
    """The name of what the time limit applies to."""
    retries_hint: ClassVar[str]
    """The advice for a request that has used up its retries."""
    code_hint: ClassVar[str]
    """The advice for an exception that shows a fault of the code, after the name of its class."""
    once: ClassVar[str] = " once"
    always_retries: ClassVar[bool] = True
    """False if the settings may be without retries; then a failure is final, and the advice does not apply."""

    policy: RequestPolicy
    size: int = 1
    failures: int = 0
    last: Exception | None = None

    @abstractmethod
    def __str__(self) -> str:
        """Return the operator and the call, for errors."""

    @property
    def limit(self) -> int:
        return self.policy.timeout

    def pause(self, failures: int, error: Exception, retry_on: tuple[type[Exception], ...]) -> int:
        """Return the ms until the call is repeated after ``error``; raise RunError if it is not repeated."""
        if failures > self.policy.retries or not retried(error, retry_on):
            raise self.failed(failures, error) from error
        self.failures, self.last = failures, error
        return self.policy.pause(failures)

    def failed(self, times: int, error: BaseException) -> RunError:
        """Return the error that ends the query when the call has failed ``times`` times and is not repeated."""
        message = f"{self} failed{self.once if times == 1 else f' {times} times'}: {said(error)}"
        if times <= self.policy.retries:
            return RunError(message, hint=f"{type(error).__name__} {self.code_hint}")
        if not (self.policy.retries or self.always_retries):
            return RunError(message)
        may_heal = isinstance(error, Exception) and not isinstance(error, NEVER_HEAL)
        return (Unavailable if may_heal else RunError)(message, hint=self.retries_hint)

    def timed_out(self, elapsed: int) -> RunError:
        """Return the error that ends the query when the answer takes longer than the time limit."""
        attempts = 1 + self.policy.retries
        cause = "" if self.last is None else f"; attempt {self.failures} of {attempts} failed: {said(self.last)}"
        return Unavailable(
            f"{self} timed out after {elapsed} ms, {self.policy.timeout} ms are allowed{cause}",
            hint=f"async.timeout of the operator covers all attempts of a {self.unit}",
        )

    def cancelled(self) -> RunError:
        """Return the error that ends the query when the user's code cancels its own call."""
        return RunError(f"{self} was cancelled, but not by the engine")


def answered(
    request: AnyRequest,
    call: Callable[[AnyRequest], Answer],
    *,
    retry_on: tuple[type[Exception], ...],
    clock: Clock,
    counters: RequestCounters,
) -> Answer:
    """Return the answer of ``call``, repeated after failures while the caller waits; RunError if it keeps failing."""
    counters.inFlightMax = max(counters.inFlightMax, 1)
    failures = 0
    while True:
        try:
            return call(request)
        except retry_on as error:
            if type(error) is RunError:
                raise
            counters.failures += 1
            failures += 1
            clock.sleep(request.pause(failures, error, retry_on))
        except (KeyboardInterrupt, SystemExit) as error:
            raise request.failed(failures + 1, error) from error
