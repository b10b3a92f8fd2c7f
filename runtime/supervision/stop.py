"""Stops a run after signals, and limits the time for the current batch.

The first SIGINT or SIGTERM ends a run after its batch, the second one at once. After SIGTERM, the batch has a grace
period, because the sender will finally kill the process. A batch plan ends at the first signal, since an unfinished job
leaves nothing behind. Spark cannot be stopped while it plans a query, so the third signal kills the process. The exit
codes are the shell's, 130 and 143.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from hintplan.plans.text.terminal import print_message

STOPS_AFTER_BATCH = "stopping after this batch; once more to stop now"
STOPS_IN_TIME = "stopping after this batch, or in {0:g} s; once more to stop now"
STOPS_NOW = "stopping now"
OR_KILLS = "; once more to kill the process"
STOPS_WHEN_STARTED = "stopping as soon as Spark has started; once more to stop now"
GRACE_SECONDS = 20.0
"""Kubernetes kills a process 30 s after SIGTERM, and Spark needs a few seconds to end."""
_SLICE_SECONDS = 0.2


class Stopped(Exception):
    """A signal arrived while no batch was in progress."""


@dataclass(slots=True)
class Stop:
    """The signals received so far. ``grace`` is the limit in seconds for the batch after SIGTERM, or None for no limit.

    With ``now``, the first signal stops the run at once. ``kill`` ends the process with an exit code, without Spark.
    """

    grace: float | None = GRACE_SECONDS
    now: bool = False
    received: int = 0
    number: int = 0
    clock: Callable[[], float] = time.monotonic
    kill: Callable[[int], Any] | None = None
    _until: float | None = None
    _is_foreseen: bool = False

    def asked_by_jvm(self) -> None:
        """Handle a SIGTERM of the JVM. If Python receives the same signal, that one is ignored."""
        if not self.received:
            self(signal.SIGTERM, None)
            self._is_foreseen = True

    def __call__(self, number: int, frame: object) -> None:
        if self._is_foreseen and number == signal.SIGTERM:
            self._is_foreseen = False
            return
        self.received += 1
        self.number = number
        if self.received > 1:
            self._heed_another()
            return
        timed = number == signal.SIGTERM and self.grace is not None and not self.now
        if timed and self.grace is not None:
            self._until = self.clock() + self.grace
            print_message(STOPS_IN_TIME.format(self.grace))
        else:
            print_message(STOPS_NOW if self.now else STOPS_AFTER_BATCH)

    def _heed_another(self) -> None:
        """Kill the process at the third signal; print that at the second one."""
        if self.kill is not None and self.received > 2:
            self.kill(self.exit_code)
        elif self.kill is not None:
            print_message(STOPS_NOW + OR_KILLS)

    @property
    def is_overdue(self) -> bool:
        """True if the batch has exceeded its grace period."""
        return self._until is not None and self.clock() >= self._until

    @property
    def exit_code(self) -> int:
        """The exit code of a process that was stopped."""
        return 128 + self.number

    def sleep(self, seconds: float) -> None:
        """Wait for this time; raise Stopped as soon as a signal arrives."""
        end = self.clock() + seconds
        while (left := end - self.clock()) > 0:
            self.require()
            time.sleep(min(left, _SLICE_SECONDS))
        self.require()

    def require(self) -> None:
        """Raise Stopped if a signal has arrived."""
        if self.received:
            raise Stopped

    @contextmanager
    def listening(self, *numbers: int) -> Iterator[Stop]:
        """Handle the signals ``numbers``, by default SIGINT and SIGTERM, during the block."""
        previous = {number: signal.signal(number, self) for number in numbers or (signal.SIGINT, signal.SIGTERM)}
        try:
            yield self
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)
