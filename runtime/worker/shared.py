"""What the tasks of one Python worker share: things that are opened for the first and stay for those that follow.

A worker process runs task after task. What is open is found by its identity, and closed with the process, or when it
was not used for a while and another run opens something new. Knows neither lookups nor functions.

    with shared(spec.identity, run, lambda: OpenLookup(spec)) as lookup:
        ...
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Protocol, TypeVar

from hintplan.plans.errors import RunError
from hintplan.runtime.worker.clock import SystemClock

_IDLE = 10 * 60_000
"""Milliseconds without use after which what another run opened is closed."""


class Closeable(Protocol):
    def close(self) -> None: ...


Opened = TypeVar("Opened", bound=Closeable)


class _Shared:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.opened: Any = None
        self.run = ""
        self.users = 0
        self.used = 0


_lock = threading.Lock()
_shared: dict[Hashable, _Shared] = {}
_clock = SystemClock()


@contextmanager
def shared(identity: Hashable, run: str, open_it: Callable[[], Opened]) -> Iterator[Opened]:
    """What is open in this process under ``identity``, opened if it is not; tasks that use it at once share it."""
    with _lock:
        if identity not in _shared:
            _close_idle(run)
            _shared[identity] = _Shared()
        entry = _shared[identity]
        entry.users += 1
    try:
        with entry.lock:
            if entry.opened is None:
                entry.opened = open_it()
                entry.run = run
        yield entry.opened
    finally:
        with _lock:
            entry.users -= 1
            entry.used = _clock.elapsed()


def _close_idle(run: str) -> None:
    now = _clock.elapsed()
    for identity, entry in list(_shared.items()):
        if entry.run != run and not entry.users and entry.used + _IDLE <= now:
            del _shared[identity]
            if entry.opened is not None:
                entry.opened.close()


@atexit.register
def _close_all() -> None:
    while _shared:
        _, entry = _shared.popitem()
        if entry.opened is not None:
            with suppress(RunError):  # of a loop that a call blocks, which its task has named
                entry.opened.close()
