"""Tells when the clock of this machine is put back, upon which Spark starts no batch until it is where it was.

>>> wall, steady = iter([100.0, 101.0, 41.0]), iter([0.0, 1.0, 2.0])
>>> clock = Clock(wall=lambda: next(wall), steady=lambda: next(steady))
>>> clock.behind(), clock.behind()
(0.0, 61.0)
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

TOLERANCE_SECONDS = 10.0
"""What a clock may be put back by, as those are that are kept right, without a word."""


@dataclass(slots=True, kw_only=True)
class Clock:
    """Compares the clock with one that only goes on."""

    wall: Callable[[], float] = time.time
    steady: Callable[[], float] = time.monotonic
    _ahead: float = field(default=0.0)

    def __post_init__(self) -> None:
        self.forget()

    def behind(self) -> float:
        """The seconds by which the clock is behind what it would be; 0 if they are fewer than are tolerated."""
        ahead = self.wall() - self.steady()
        self._ahead = max(self._ahead, ahead)
        found = self._ahead - ahead
        return found if found > TOLERANCE_SECONDS else 0.0

    def forget(self) -> None:
        """Take the clock for right from now on: a batch has begun since, and the next follows it."""
        self._ahead = self.wall() - self.steady()
