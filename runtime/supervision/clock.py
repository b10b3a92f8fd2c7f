"""Detects that the clock of this machine was set back. Spark then starts no batch until the old time is reached.

>>> wall, steady = iter([100.0, 101.0, 41.0]), iter([0.0, 1.0, 2.0])
>>> clock = WallClock(wall=lambda: next(wall), steady=lambda: next(steady))
>>> clock.behind(), clock.behind()
(0.0, 61.0)
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

TOLERANCE_SECONDS = 10.0
"""Smaller corrections are ignored, because time synchronization makes them regularly."""


@dataclass(slots=True, kw_only=True)
class WallClock:
    """Compares the wall clock with a monotonic clock."""

    wall: Callable[[], float] = time.time
    steady: Callable[[], float] = time.monotonic
    _ahead: float = field(default=0.0)

    def __post_init__(self) -> None:
        self.forget()

    def behind(self) -> float:
        """Return the seconds by which the clock was set back; 0 within the tolerance."""
        ahead = self.wall() - self.steady()
        self._ahead = max(self._ahead, ahead)
        behind = self._ahead - ahead
        return behind if behind > TOLERANCE_SECONDS else 0.0

    def forget(self) -> None:
        """Accept the current time as correct: a batch has begun, and the next batches follow it."""
        self._ahead = self.wall() - self.steady()
