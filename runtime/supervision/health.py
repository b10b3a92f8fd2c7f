"""The health of a run, for the supervisor of its process: two pages of JSON on a port of this machine.

    GET /healthz    200 while the run is active, 503 if it has failed, seems to be stuck, or no longer responds
    GET /readyz     200 while it has its checkpoint, and its queries have planned their first batch; else 503

This module does not know Spark: the code that runs a plan reports to it. Durations are in ms, measured with a monotonic
clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from hintplan.runtime.web_server import Answer, json_answer, serving

STARTING, WAITING, RUNNING, RESTARTING, STOPPING = "starting", "waiting", "running", "restarting", "stopping"
SILENT_SECONDS = 60.0
"""A run checks its queries several times a second. Without a check for this time, it counts as hung."""

Lease = Callable[[], dict[str, Any] | None]


@dataclass(slots=True, kw_only=True)
class Health:
    """The state of the run of ``plan``.

    The thread that supervises the run writes it, and the threads that serve the pages read it. ``clock_behind`` is the
    number of seconds by which the clock was set back, during which Spark starts no batch. ``lease`` returns the state
    of the lease on its checkpoint, or None if a lock holds it.
    """

    plan: str
    digest: str
    clock: Callable[[], float] = time.monotonic
    phase: str = STARTING
    planned: bool = False
    failure: str | None = None
    restarts: int = 0
    clock_behind: float = 0.0
    lease: Lease = lambda: None
    _began: float = field(default=0.0)
    _seen: float = field(default=0.0)
    _batches: dict[str, tuple[int, float]] = field(default_factory=dict)
    _stuck: dict[str, tuple[int, int | None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._began = self._seen = self.clock()

    def enter(self, phase: str) -> None:
        """Record that the run enters ``phase``."""
        self.phase, self.planned = phase, self.planned and phase in (RUNNING, STOPPING)
        self._stuck.clear()
        self.clock_behind = 0.0
        self.seen()

    def seen(self) -> None:
        """Record that the run has checked its queries."""
        self._seen = self.clock()

    def batch(self, sink: str, number: int) -> None:
        """Record that a batch has ended."""
        self._batches[sink] = (number, self.clock())
        self._stuck.pop(sink, None)

    def running(self, sink: str, done: int | None) -> None:
        """Record the number of ended tasks of the current batch; a new one shows that it is no longer stuck."""
        if sink in self._stuck and self._stuck[sink][1] != done:
            del self._stuck[sink]

    def stuck(self, sink: str, running_ms: int, done: int | None) -> None:
        """Record that a batch seems to be stuck, with ``done`` tasks ended."""
        self._stuck[sink] = running_ms, done

    def healthz(self) -> tuple[int, dict[str, Any]]:
        """Return the status and the body of the liveness page, which decides if the process is to be killed."""
        silent = self.clock() - self._seen
        hung = self.phase == RUNNING and silent >= SILENT_SECONDS
        stuck = self._stuck or self.clock_behind
        word = "failed" if self.failure else "hung" if hung else "stuck" if stuck else "ok"
        return (200 if word == "ok" else 503), self._body(word) | {"seen_ms_ago": int(silent * 1000)}

    def readyz(self) -> tuple[int, dict[str, Any]]:
        """Return the status and the body of the readiness page."""
        lease = self.lease()
        lost = lease is not None and not lease["in_force"]
        ready = self.phase == RUNNING and self.planned and not lost and self.failure is None
        word = "ok" if ready else "failed" if self.failure else "without its lease" if lost else self.phase
        return (200 if ready else 503), self._body("planning" if word == RUNNING else word)

    def _body(self, status: str) -> dict[str, Any]:
        now = self.clock()
        return {
            "status": status,
            "phase": self.phase,
            "plan": self.plan,
            "digest": self.digest,
            "uptime_ms": int((now - self._began) * 1000),
            "batches": {
                sink: {"batch": number, "ended_ms_ago": int((now - ended) * 1000)}
                for sink, (number, ended) in list(self._batches.items())
            },
            "stuck": {sink: running_ms for sink, (running_ms, _) in list(self._stuck.items())},
            "clock_behind_ms": int(self.clock_behind * 1000),
            "restarts": self.restarts,
            "lease": self.lease(),
            "error": self.failure,
        }


@contextmanager
def served(health: Health, where: tuple[str, int]) -> Iterator[str]:
    """Serve the pages at ``where`` during the block, and yield the URL; RunError if that is not possible."""
    pages = {"/healthz": health.healthz, "/readyz": health.readyz}

    def answer(path: str) -> Answer:
        page = pages.get(path.partition("?")[0])
        status, body = page() if page else (404, {"status": "not found", "pages": list(pages)})
        return json_answer(body, status)

    with serving(answer, where, "--health") as url:
        yield url
