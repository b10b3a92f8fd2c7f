"""A scheduler of delayed actions, on which reload triggers run.

Actions of :meth:`Scheduler.call_at` are short and run one after the other on one thread. Work that may take long runs
on another thread (:meth:`Scheduler.run`), so a slow load delays no trigger.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import math
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol

from hintplan.runtime.worker.clock import Clock

_log = logging.getLogger(__name__)

_LONGEST_WAIT = 60.0
"""Seconds. Somebody may set the system clock while a thread waits for a time of day, so the thread looks again."""


class Scheduler(Protocol):
    """A runner of delayed actions and long work; ``time`` is in ms since the epoch."""

    def call_at(self, time: int, action: Callable[[], None]) -> Callable[[], None]:
        """Call ``action`` once at ``time``; return a function that cancels the call."""
        ...

    def call_after(self, milliseconds: int, action: Callable[[], None]) -> Callable[[], None]:
        """Call ``action`` once after ``milliseconds``; return a function that cancels the call.

        The delay does not change when somebody sets the system clock.
        """
        ...

    def run(self, work: Callable[[], None]) -> Future[None]:
        """Start ``work``, which may take long, after all work that was submitted before."""
        ...

    def close(self) -> None:
        """Cancel all pending actions and all work that has not started."""
        ...


@dataclass(frozen=True, slots=True)
class _Due:
    """A heap of actions, ordered by their due time in ms of ``clock``, and then by the order of their registration."""

    clock: Callable[[], int]
    entries: list[tuple[int, int, Callable[[], None]]] = field(default_factory=list)

    def wait(self) -> float:
        """Return the seconds until the first action is due."""
        return (self.entries[0][0] - self.clock()) / 1000 if self.entries else math.inf


class ThreadScheduler:
    """A scheduler with three threads of this process: one waits, one runs actions, one runs long work."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._calendar, self._lapse = _Due(clock.now), _Due(clock.elapsed)
        self._order = itertools.count()
        self._changed = threading.Condition()
        self._closed = False
        self._triggers = ThreadPoolExecutor(max_workers=1, thread_name_prefix="hintplan-trigger")
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="hintplan-reload")
        threading.Thread(target=self._serve, name="hintplan-schedule", daemon=True).start()

    def call_at(self, time: int, action: Callable[[], None]) -> Callable[[], None]:
        return self._added(self._calendar, time, action)

    def call_after(self, milliseconds: int, action: Callable[[], None]) -> Callable[[], None]:
        return self._added(self._lapse, self._clock.elapsed() + milliseconds, action)

    def run(self, work: Callable[[], None]) -> Future[None]:
        return self._worker.submit(work)

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()
        for pool in (self._triggers, self._worker):
            pool.shutdown(wait=False, cancel_futures=True)

    def _added(self, due: _Due, time: int, action: Callable[[], None]) -> Callable[[], None]:
        entry = (time, next(self._order), action)
        with self._changed:
            heapq.heappush(due.entries, entry)
            self._changed.notify()

        def cancel() -> None:
            with self._changed:
                if entry in due.entries:
                    due.entries.remove(entry)
                    heapq.heapify(due.entries)

        return cancel

    def _serve(self) -> None:
        while True:
            with self._changed:
                if self._closed:
                    return
                first = min((self._calendar, self._lapse), key=_Due.wait)
                if (wait := first.wait()) > 0:
                    self._changed.wait(min(wait, _LONGEST_WAIT))
                    continue
                _, _, action = heapq.heappop(first.entries)
            # A failing action is logged, and ends neither this thread nor other triggers.
            self._triggers.submit(action).add_done_callback(_report)


def _report(done: Future[None]) -> None:
    error = done.exception()
    if error is not None:
        _log.error("a reload trigger failed and is not called again: %r", error, exc_info=error)
