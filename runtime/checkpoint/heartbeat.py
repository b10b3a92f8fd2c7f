"""Renews a lease in the background, and stops the queries in time if the lease cannot be renewed.

Spark's JVM keeps running when this Python process is suspended. The JVM therefore has a timer that stops the queries
when the lease ends, by the JVM's own clock. Each renewal postpones it.

    beat = Heartbeat(lease)
    beat.stops(spark, queries)
    beat.end()
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hintplan.runtime.checkpoint.lease import RENEWALS, Lease
from hintplan.runtime.jvm.java import jvm_of

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject, JVMView
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_RETRIES = 4
"""After a failed renewal, the next one comes this many times sooner."""
_END_SECONDS = 5.0
"""The time that the end of a run waits for a renewal in progress, because the file system may no longer answer."""
_ASKED = 4
_ASKED_APART_MS = 2_500
"""Spark may miss an interrupt, so a stop is repeated this many times, with this pause in between. The pause is longer
than Spark waits for a stop (:mod:`hintplan.runtime.spark.stopping`).
"""


@dataclass(slots=True)
class Heartbeat:
    """Renews ``lease`` until :meth:`end` releases it."""

    lease: Lease
    _ended: threading.Event = field(default_factory=threading.Event)
    _switch: StopSwitch | None = None
    _thread: threading.Thread | None = None

    def start(self) -> Heartbeat:
        """Start to renew."""
        self._thread = threading.Thread(target=self._go_on, name="hintplan-lease", daemon=True)
        self._thread.start()
        return self

    def stops(self, spark: SparkSession, queries: Iterable[StreamingQuery]) -> None:
        """Stop ``queries`` of ``spark`` when the lease ends. A later call replaces the queries of an earlier one."""
        before, self._switch = self._switch, StopSwitch.of(spark, queries)
        if before is not None:
            before.close()
        self._put_off()

    def end(self) -> None:
        """Stop renewing, and release the lease if it is still held."""
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
                    return  # the run that holds the lease checks it
                pause = usual
                self._put_off()
            except OSError:
                pause = usual / _RETRIES

    def _put_off(self) -> None:
        if self._switch is not None:
            self._switch.set(self.lease.until - self.lease.clock())


@dataclass(slots=True)
class StopSwitch:
    """Stops queries from within the JVM, unless it is reset in time."""

    jvm: JVMView
    timer: JavaObject
    stops: tuple[JavaObject, ...]
    _set: tuple[JavaObject, ...] = ()

    @staticmethod
    def of(spark: SparkSession, queries: Iterable[StreamingQuery]) -> StopSwitch:
        """Return a switch for ``queries`` that is not set yet."""
        jvm = jvm_of(spark)
        runnable = jvm.java.lang.Class.forName("java.lang.Runnable")
        stops = tuple(jvm.java.beans.EventHandler.create(runnable, query._jsq, "stop") for query in queries)
        return StopSwitch(jvm, jvm.java.util.concurrent.Executors.newScheduledThreadPool(1), stops)

    def set(self, seconds: float) -> None:
        """Stop the queries after this many seconds, and cancel earlier settings."""
        from py4j.protocol import Py4JError

        unit = self.jvm.java.util.concurrent.TimeUnit.MILLISECONDS
        with suppress(Py4JError, OSError):  # the JVM has ended, and the queries with it
            first = max(int(seconds * 1000), 0)
            delays = [first + again * _ASKED_APART_MS for again in range(_ASKED)]
            new = tuple(self.timer.schedule(stop, delay, unit) for delay in delays for stop in self.stops)
            for old in self._set:
                old.cancel(False)
            self._set = new

    def close(self) -> None:
        """Cancel the switch."""
        from py4j.protocol import Py4JError

        with suppress(Py4JError, OSError):
            self.timer.shutdownNow()
