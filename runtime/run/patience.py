"""Decides when to report that a batch in progress takes long, or that it seems to be stuck.

An instance watches one query. The caller passes in the time, in seconds, and the status.

>>> patience = Patience(pace=10.0)
>>> [patience.due(now, working=True, ended=3) for now in (0.0, 4.0, 5.0, 6.0, 15.0)]
[None, None, 5.0, None, 15.0]
>>> patience.due(16.0, working=True, ended=4) is None  # another batch
True
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from statistics import median

FIRST_SECONDS = 5.0
"""A batch that takes less time is reported only after it has ended."""

_USUAL_BATCHES = 20
_FEW = 3
"""With fewer batches, the usual duration is unknown."""

_STUCK_SECONDS = 60.0
_STUCK_TIMES = 10
_STUCK_FIRST_SECONDS = 300.0
"""The first batches of a query process all available input, so their tasks may take long."""


@dataclass(slots=True)
class Patience:
    """Watches one query; ``pace`` is the time between two reports on the same batch."""

    pace: float
    _since: float | None = None
    _ended: int = -1
    _due: float = 0.0
    _done: int | None = None
    _moved: float = 0.0
    _told: bool = False
    _took: deque[int] = field(default_factory=lambda: deque(maxlen=_USUAL_BATCHES))

    def took(self, duration_ms: int) -> None:
        """Record the duration of a batch that has ended."""
        self._took.append(duration_ms)

    def due(self, now: float, *, working: bool, ended: int) -> float | None:
        """Return how long the batch in progress has been ``working``, if a report is due, otherwise None.

        ``ended`` is the number of the last batch that has ended, which distinguishes the next batch from the current
        one.
        """
        if not working or self._since is None or ended != self._ended:
            self._since, self._ended = (now if working else None), ended
            self._due, self._moved, self._done, self._told = now + FIRST_SECONDS, now, None, False
            return None
        if now < self._due:
            return None
        self._due = now + self.pace
        return now - self._since

    @property
    def usual_ms(self) -> int | None:
        """The median duration of the last batches; None if there were too few."""
        return None if len(self._took) < _FEW else int(median(self._took))

    def quiet(self, now: float, done: int | None) -> float | None:
        """Return the time since the last task ended; ``done`` tasks have ended so far. None if that is unknown."""
        if done is None:
            return None
        if done != self._done:
            # Tasks that had ended before the first check ended at an unknown time.
            self._done, self._moved = done, self._moved if self._done is None and not done else now
        return now - self._moved

    def stuck(self, running: float, quiet: float | None) -> bool:
        """Return whether a batch that has been ``running`` so long seems to be stuck; True only once per batch."""
        if self._told:
            return False
        usual = self.usual_ms
        limit = _STUCK_FIRST_SECONDS if usual is None else _STUCK_SECONDS
        lasts = running > max(_STUCK_SECONDS, (usual or 0) / 1000 * _STUCK_TIMES)
        self._told = lasts and (running if quiet is None else quiet) >= limit
        return self._told
