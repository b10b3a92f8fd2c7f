"""The event loop of a worker process: tasks hand coroutines in from their own threads and wait for them.

The loop lives in a thread of its own from the first asynchronous call until the process ends, because connection
pools belong to the loop they were opened on, and must be served while no task runs.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import cache
from typing import Any, Protocol, TypeVar

__all__ = ["LoopThread", "Portal", "finish", "worker_portal"]

Result = TypeVar("Result")


class Portal(Protocol):
    """Where coroutines run, seen from the thread that wants their results."""

    def submit(self, work: Coroutine[Any, Any, Result]) -> Future[Result]:
        """Start ``work``; what was submitted first also starts first."""
        ...

    def wait(self, futures: Sequence[Future[Any]]) -> None:
        """Wait until one of ``futures`` is done."""
        ...


class LoopThread:
    """A portal to an event loop that runs in a daemon thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="hintplan-calls", daemon=True).start()

    def submit(self, work: Coroutine[Any, Any, Result]) -> Future[Result]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def wait(self, futures: Sequence[Future[Any]]) -> None:
        wait(futures, return_when=FIRST_COMPLETED)


def finish(portal: Portal, work: Coroutine[Any, Any, Result]) -> Result:
    """Start ``work``, wait for it and return its result."""
    done = portal.submit(work)
    portal.wait([done])
    return done.result()


@cache
def worker_portal() -> Portal:
    """The portal of this process."""
    return LoopThread()
