"""Resources that the tasks of one Python worker share: the first task opens them, and later tasks reuse them.

A worker process runs task after task. An open resource is found by its identity. It is closed with the process, or when
it was idle for a while and another run opens a new resource. Knows no lookups and no functions.

    with shared(spec.identity, run, lambda: OpenLookup(spec)) as lookup:
        ...
"""

from __future__ import annotations

import atexit
import hashlib
import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Protocol, TypeVar

from hintplan.plans.errors import RunError
from hintplan.runtime.worker.clock import SystemClock

_IDLE = 10 * 60_000
"""Milliseconds of idle time after which a resource of another run is closed."""


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


def shared_identity(operator: str, *facts: object) -> tuple[str, str]:
    """Return the key of an open object in a worker: the operator, and a digest of ``facts``, which include the run."""
    return operator, hashlib.sha256(repr(facts).encode()).hexdigest()[:16]


@contextmanager
def shared(identity: Hashable, run: str, open_it: Callable[[], Opened]) -> Iterator[Opened]:
    """Return the resource of this process with ``identity``, opened if necessary; concurrent tasks share it."""
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
            with suppress(RunError):  # a call blocks the loop, and its task has reported it
                entry.opened.close()
