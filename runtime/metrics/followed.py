"""A run that is followed while it goes on: what has ended is read, and how long batches are at work is known.

    followed = metrics.begun(plan, queries)
    execution = Execution(..., followed=followed)  # tells it of each batch, and that it is over
    followed.begin(execution)

Whoever else reads the progress of the run may do so at the same time: each batch is measured once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from hintplan.runtime.metrics import table
from hintplan.runtime.metrics.measure import Measured
from hintplan.runtime.progress import BatchProgress, JobProgress

_LOOK_SECONDS = 1.0
_LAST_LOOK_SECONDS = 2.0


@dataclass(slots=True)
class Followed:
    """The run of a plan, looked at each second in a thread of its own; ``clock`` is monotonic, in seconds."""

    measured: Measured
    clock: Callable[[], float]
    _execution: Any = None
    _times_read: int = 0
    _since: dict[str, tuple[int | None, float]] = field(default_factory=dict)
    _ended: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def told(self, ended: BatchProgress | JobProgress) -> None:
        """A batch, or the job of a sink, has ended."""
        self.measured.progress(ended)

    def begin(self, execution: Any) -> None:
        """Follow ``execution`` from now on."""
        self._execution = execution
        self.measured.into.set(table.RUN_ACTIVE, 1, self.measured.plan.name)
        self._thread = threading.Thread(target=self._follow, name="hintplan-metrics", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Follow it no more; a look that is being taken is waited for, as Spark may end next."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(_LAST_LOOK_SECONDS)
        self._over()

    def look(self) -> bool:
        """Read what has ended, and since when batches are at work; whether the run goes on."""
        execution, plan = self._execution, self.measured.plan
        if plan.mode == "streaming":
            if execution.times_read == self._times_read:  # else whoever waits for the run has looked since
                execution.read_batches()
            self._times_read = execution.times_read
            for query in execution.queries:
                found = execution.at_work(query)
                since = self._since.get(query)
                if not found.working:
                    self._since.pop(query, None)
                    self.measured.into.set(table.BATCH_RUNNING, 0, plan.name, query)
                elif since is None or since[0] != found.ended:
                    began = self.clock()
                    self._since[query] = (found.ended, began)
                    self.measured.into.set(table.BATCH_RUNNING, partial(self._running, began), plan.name, query)
        return bool(execution.active)

    def _running(self, began: float) -> float:
        return self.clock() - began

    def _follow(self) -> None:
        with suppress(Py4JError, PySparkException, OSError):  # Spark has ended
            while self.look() and not self._ended.wait(_LOOK_SECONDS):
                pass
        self._over()

    def _over(self) -> None:
        plan, into = self.measured.plan, self.measured.into
        into.set(table.RUN_ACTIVE, 0, plan.name)
        for query in self.measured.queries if plan.mode == "streaming" else ():
            into.set(table.BATCH_RUNNING, 0, plan.name, query)
