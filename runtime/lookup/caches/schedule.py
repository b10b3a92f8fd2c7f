"""Things to do later: what reload triggers run on.

Actions of :meth:`Scheduler.call_at` are short and run one after the other on one thread; what may take long runs on
another one (:meth:`Scheduler.run`), so that a slow load delays no trigger.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol

from hintplan.runtime.worker.clock import Clock

_log = logging.getLogger(__name__)

_LONGEST_WAIT = 60.0
"""Seconds: the calendar may be set while a thread waits for a time of day, so it looks again."""


class Scheduler(Protocol):
    """``time`` is in ms since the epoch."""

    def call_at(self, time: int, action: Callable[[], None]) -> Callable[[], None]:
        """Call ``action`` once at ``time``; returns what cancels it."""
        ...

    def run(self, work: Callable[[], None]) -> Future[None]:
        """Start ``work`` after what was handed in before; it may take long."""
        ...

    def close(self) -> None:
        """Forget what is due later."""
        ...


class ThreadScheduler:
    """Threads of this process: one waits, one runs actions, one runs what takes long."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._cancelled: set[int] = set()
        self._changed = threading.Condition()
        self._closed = False
        self._triggers = ThreadPoolExecutor(max_workers=1, thread_name_prefix="hintplan-trigger")
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="hintplan-reload")
        threading.Thread(target=self._serve, name="hintplan-schedule", daemon=True).start()

    def call_at(self, time: int, action: Callable[[], None]) -> Callable[[], None]:
        with self._changed:
            number = next(self._order)
            heapq.heappush(self._due, (time, number, action))
            self._changed.notify()

        def cancel() -> None:
            with self._changed:
                if any(found == number for _, found, _ in self._due):
                    self._cancelled.add(number)

        return cancel

    def run(self, work: Callable[[], None]) -> Future[None]:
        return self._worker.submit(work)

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()
        for pool in (self._triggers, self._worker):
            pool.shutdown(wait=False, cancel_futures=True)

    def _serve(self) -> None:
        while True:
            with self._changed:
                if self._closed:
                    return
                wait = min((self._due[0][0] - self._clock.now()) / 1000, _LONGEST_WAIT) if self._due else None
                if wait is None or wait > 0:
                    self._changed.wait(wait)
                    continue
                _, number, action = heapq.heappop(self._due)
                if number in self._cancelled:
                    self._cancelled.discard(number)
                    continue
            # An action that fails is reported, and ends neither this thread nor other triggers.
            self._triggers.submit(action).add_done_callback(_report)


def _report(done: Future[None]) -> None:
    error = done.exception()
    if error is not None:
        _log.error("a reload trigger failed and is not called again: %r", error, exc_info=error)
