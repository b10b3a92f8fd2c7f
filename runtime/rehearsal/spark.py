"""The one Spark of all rehearsals of a process, which starts when the first expression needs it.

sparks = SharedSpark()
Rehearsal(plan, session=sparks.session("Europe/Berlin"))
sparks.stop()
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial

from pyspark.sql import SparkSession

from hintplan.runtime.jvm.launch import Launch
from hintplan.runtime.rehearsal.local_rows import Session
from hintplan.runtime.spark.quiet import SparkLog
from hintplan.runtime.spark.session import (
    is_started_by_others,
    launch_jvm,
    prepare_session,
    start_session,
    starts_jvm,
    stop_session,
)

_MASTER = "local[1]"
_CONF = {
    "spark.sql.shuffle.partitions": "1",
    # Expressions over a few rows are not worth the time that their code takes to compile.
    "spark.sql.codegen.wholeStage": "false",
    # The second compiler of the JVM pays off after minutes. Without it, tests on a busy machine take a third less time.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
}


class SharedSpark:
    """Starts Spark at the first use, and keeps a session for each time zone."""

    def __init__(self, start: Callable[[], SparkSession] | None = None) -> None:
        self._start = start
        self._log: SparkLog | None = None
        self._jvm: Launch | None = None
        self._spark: SparkSession | None = None
        self._owned = False
        self._sessions: dict[str, SparkSession] = {}

    @property
    def is_started(self) -> bool:
        """True if an expression has needed Spark."""
        return self._spark is not None

    def launch(self) -> None:
        """Start the JVM without waiting for it, unless there is one."""
        if self._jvm is None and self._spark is None and self._start is None and starts_jvm():
            with self._captured():
                self._jvm = launch_jvm(_MASTER, _CONF)

    def session(self, time_zone: str) -> Session:
        """Return the function that starts or returns the session for ``time_zone``."""
        return partial(self._session, time_zone)

    def _session(self, time_zone: str) -> SparkSession:
        if time_zone not in self._sessions:
            if self._spark is None:
                self._owned = self._start is None and not is_started_by_others()
                self._spark = self._started()
            self._sessions[time_zone] = prepare_session(self._spark, time_zone=time_zone, once=True)
        return self._sessions[time_zone]

    def _started(self) -> SparkSession:
        if self._start is not None:
            return self._start()
        with self._captured():
            return start_session(_MASTER, _CONF, name="hintplan test", jvm=self._jvm)

    def _captured(self) -> AbstractContextManager[None]:
        self._log = self._log or SparkLog()
        return self._log.captured()

    def stop(self) -> None:
        """Stop Spark, if it was started here."""
        if self._spark is not None and self._owned:
            SparkLog.mute_loss(self._spark)
            stop_session(self._spark)
        if self._jvm is not None:
            self._jvm.abandon()
        if self._log is not None:
            self._log.discard()
        self._spark = self._jvm = self._log = None
        self._sessions = {}
