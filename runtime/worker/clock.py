"""Time, as everything in a worker sees it: in ms, and from outside, so that tests decide what time it is.

>>> clock = SystemClock()
>>> clock.now() > 1_700_000_000_000
True
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """``now`` is what a calendar shows, in ms since the epoch; ``elapsed`` only ever grows, from an arbitrary start."""

    def now(self) -> int: ...

    def elapsed(self) -> int: ...

    def sleep(self, milliseconds: int) -> None: ...


class SystemClock:
    """The machine's clocks."""

    def now(self) -> int:
        return time.time_ns() // 1_000_000

    def elapsed(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def sleep(self, milliseconds: int) -> None:
        time.sleep(milliseconds / 1000)
