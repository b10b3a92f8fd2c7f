"""The clocks of a worker, in ms. Callers pass a clock in, so that tests control the time.

>>> clock = SystemClock()
>>> clock.now() > 1_700_000_000_000
True
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """A source of time. ``now`` is ms since the epoch; ``elapsed`` only grows, from an arbitrary start."""

    def now(self) -> int: ...

    def elapsed(self) -> int: ...

    def sleep(self, milliseconds: int) -> None: ...


class SystemClock:
    """The clocks of the machine."""

    def now(self) -> int:
        return time.time_ns() // 1_000_000

    def elapsed(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def sleep(self, milliseconds: int) -> None:
        time.sleep(milliseconds / 1000)
