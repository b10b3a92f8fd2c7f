"""The event loop of a worker process: tasks submit coroutines from their own threads and wait for them.

The loop runs in a thread of its own from the first asynchronous call until the process ends. Connection pools belong to
the loop that opened them, and must be served while no task runs. If the user's code blocks the loop, the task that
waits fails. If the code exits, the loop continues.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Coroutine, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import cache
from typing import Any, Protocol, TypeVar

from hintplan.runtime.worker.clock import Clock, SystemClock
from hintplan.runtime.worker.steps import Steps

_log = logging.getLogger(__name__)

Result = TypeVar("Result")

_LOOK_SECONDS = 0.1
"""The interval at which a waiting thread checks whether the loop is blocked."""


class EventLoop(Protocol):
    """Runs coroutines for other threads that need their results; ``steps`` are the steps of its loop."""

    @property
    def steps(self) -> Steps: ...

    def submit(self, work: Coroutine[Any, Any, Result]) -> Future[Result]:
        """Start ``work``; coroutines start in the order of submission."""
        ...

    def wait(self, futures: Sequence[Future[Any]]) -> None:
        """Wait until one of ``futures`` is done; RunError if a step on the loop exceeds its limit."""
        ...


class LoopThread:
    """An event loop that runs in a daemon thread."""

    def __init__(self, clock: Clock) -> None:
        self.steps = Steps(clock)
        self._loop = asyncio.new_event_loop()
        self._loop.set_task_factory(self.steps.task)
        self._thread = threading.Thread(target=self._run, name="hintplan-calls", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                self._loop.run_forever()
            except (KeyboardInterrupt, SystemExit) as error:  # from a callback, or a task that no call has started
                _log.error("a task other than a call has ended with %r on the event loop", error)

    def submit(self, work: Coroutine[Any, Any, Result]) -> Future[Result]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def wait(self, futures: Sequence[Future[Any]]) -> None:
        while not wait(futures, _LOOK_SECONDS, FIRST_COMPLETED).done:
            self.steps.check(self._thread.ident)


def finish(event_loop: EventLoop, work: Coroutine[Any, Any, Result]) -> Result:
    """Start ``work``, wait for it and return its result."""
    done = event_loop.submit(work)
    event_loop.wait([done])
    return done.result()


@cache
def worker_event_loop() -> EventLoop:
    """Return the event loop of this process."""
    return LoopThread(SystemClock())
