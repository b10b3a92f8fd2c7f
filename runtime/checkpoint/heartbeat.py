"""Renews a lease in the background, and sees that who holds it stops in time if it cannot be renewed.

Spark's JVM goes on when this process stands still, so the JVM is told to stop the queries by itself when the lease
ends, by its own clock; each renewal puts that off.

    beat = Heartbeat(lease)
    beat.stops(spark, queries)
    beat.end()
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from hintplan.runtime.checkpoint.lease import RENEWALS, Lease

_RETRIES = 4
"""After a renewal that failed, the next one comes so many times sooner."""
_END_SECONDS = 5.0
"""How long the end of a run waits for a renewal that has begun: the file system may not answer any more."""
_ASKED = 4
_ASKED_APART_MS = 2_500
"""An interrupt may go unheard: how often a query is told to stop, and with how much time between, longer than Spark
waits for one (:mod:`hintplan.runtime.spark.stopping`)."""


@dataclass(slots=True)
class Heartbeat:
    """Renews ``lease`` from now on; :meth:`end` gives it back."""

    lease: Lease
    _ended: threading.Event = field(default_factory=threading.Event)
    _switch: StopSwitch | None = None
    _thread: threading.Thread | None = None

    def start(self) -> Heartbeat:
        """Begin to renew."""
        self._thread = threading.Thread(target=self._go_on, name="hintplan-lease", daemon=True)
        self._thread.start()
        return self

    def stops(self, spark: Any, queries: Iterable[Any]) -> None:
        """See that ``queries`` of ``spark`` stop when the lease ends; of more than once, the last ones."""
        before, self._switch = self._switch, StopSwitch.of(spark, queries)
        if before is not None:
            before.close()
        self._put_off()

    def end(self) -> None:
        """Stop renewing, and give the lease back if it is still held."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(_END_SECONDS)
        if self._switch is not None:
            self._switch.close()
        if self._thread is None or not self._thread.is_alive():
            with suppress(OSError):
                self.lease.release()

    def _go_on(self) -> None:
        usual = self.lease.record.seconds / RENEWALS
        pause = usual
        while not self._ended.wait(pause):
            try:
                if not self.lease.renew():
                    return  # whoever works under the lease sees that
                pause = usual
                self._put_off()
            except OSError:
                pause = usual / _RETRIES

    def _put_off(self) -> None:
        if self._switch is not None:
            self._switch.set(self.lease.until - self.lease.clock())


@dataclass(slots=True)
class StopSwitch:
    """Stops queries from within the JVM, unless it is set anew in time."""

    jvm: Any
    timer: Any
    stops: tuple[Any, ...]
    _set: tuple[Any, ...] = ()

    @staticmethod
    def of(spark: Any, queries: Iterable[Any]) -> StopSwitch:
        """One for ``queries``, not set yet."""
        jvm = spark.sparkContext._jvm
        runnable = jvm.java.lang.Class.forName("java.lang.Runnable")
        stops = tuple(jvm.java.beans.EventHandler.create(runnable, query._jsq, "stop") for query in queries)
        return StopSwitch(jvm, jvm.java.util.concurrent.Executors.newScheduledThreadPool(1), stops)

    def set(self, seconds: float) -> None:
        """Stop the queries in so many seconds, and no sooner."""
        from py4j.protocol import Py4JError

        unit = self.jvm.java.util.concurrent.TimeUnit.MILLISECONDS
        with suppress(Py4JError, OSError):  # the JVM has ended, and the queries with it
            first = max(int(seconds * 1000), 0)
            asked = [first + again * _ASKED_APART_MS for again in range(_ASKED)]
            new = tuple(self.timer.schedule(stop, after, unit) for after in asked for stop in self.stops)
            for old in self._set:
                old.cancel(False)
            self._set = new

    def close(self) -> None:
        """Stop nothing any more."""
        from py4j.protocol import Py4JError

        with suppress(Py4JError, OSError):
            self.timer.shutdownNow()
