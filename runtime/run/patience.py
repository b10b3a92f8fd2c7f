"""When there is something to say of a batch that has not ended: that it is at work, and that it seems to be stuck.

It is told what the time is, in seconds, and looks at nothing itself. What it is told of is one query.

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
"""A batch that takes less is not talked about before it has ended."""

_USUAL_BATCHES = 20
_FEW = 3
"""Batches that say nothing yet of what is usual."""

_STUCK_SECONDS = 60.0
_STUCK_TIMES = 10
_STUCK_FIRST_SECONDS = 300.0
"""A query's first batches take what is there, so their tasks may be long."""


@dataclass(slots=True)
class Patience:
    """Of one query; ``pace`` is the time between two looks at the same batch."""

    pace: float
    _since: float | None = None
    _ended: int = -1
    _due: float = 0.0
    _done: int | None = None
    _moved: float = 0.0
    _told: bool = False
    _took: deque[int] = field(default_factory=lambda: deque(maxlen=_USUAL_BATCHES))

    def took(self, duration_ms: int) -> None:
        """A batch has ended."""
        self._took.append(duration_ms)

    def due(self, now: float, *, working: bool, ended: int) -> float | None:
        """For how long the batch in progress has been ``working``, if that is to be looked at now.

        ``ended`` is the number of the last batch that has ended, so that the next one is not taken for the same.
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
        """How long half of the last batches took at most; None if there were hardly any."""
        return None if len(self._took) < _FEW else int(median(self._took))

    def quiet(self, now: float, done: int | None) -> float | None:
        """For how long no task has ended, of which ``done`` have so far; None if that is not known."""
        if done is None:
            return None
        if done != self._done:
            # What was done when it was first looked at, ended at an unknown time before.
            self._done, self._moved = done, self._moved if self._done is None and not done else now
        return now - self._moved

    def stuck(self, running: float, quiet: float | None) -> bool:
        """Whether a batch seems to be stuck that is ``running`` for so long; once a batch."""
        if self._told:
            return False
        usual = self.usual_ms
        limit = _STUCK_FIRST_SECONDS if usual is None else _STUCK_SECONDS
        lasts = running > max(_STUCK_SECONDS, (usual or 0) / 1000 * _STUCK_TIMES)
        self._told = lasts and (running if quiet is None else quiet) >= limit
        return self._told
