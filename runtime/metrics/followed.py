"""Follows a run while it is active: reads finished batches, and measures how long current batches have run.

    followed = metrics.begun(plan, queries)
    execution = Execution(..., followed=followed)  # reports each batch, and the end of the run
    followed.begin(execution)

Other code may read the progress of the run at the same time: each batch is measured once.
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
    """Follows the run of a plan, once per second, in a thread of its own; ``clock`` is monotonic, in seconds."""

    measured: Measured
    clock: Callable[[], float]
    _execution: Any = None
    _times_read: int = 0
    _since: dict[str, tuple[int | None, float]] = field(default_factory=dict)
    _ended: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def told(self, ended: BatchProgress | JobProgress) -> None:
        """Measure a batch, or the job of a sink, that has ended."""
        self.measured.progress(ended)

    def begin(self, execution: Any) -> None:
        """Start to follow ``execution``."""
        self._execution = execution
        self.measured.into.set(table.RUN_ACTIVE, 1, self.measured.plan.name)
        self._thread = threading.Thread(target=self._follow, name="hintplan-metrics", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Stop following the run, and wait for a look in progress, because Spark may end next."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(_LAST_LOOK_SECONDS)
        self._over()

    def look(self) -> bool:
        """Read finished batches, and the start of running ones; return True while the run is active."""
        execution, plan = self._execution, self.measured.plan
        if plan.mode == "streaming":
            unfinished = execution.is_unfinished
            if execution.times_read == self._times_read:  # else the code that waits for the run has read them
                execution.read_batches()
            self._times_read = execution.times_read
            for query in execution.queries:
                work = execution.at_work(query)
                since = self._since.get(query)
                if not work.working:
                    self._since.pop(query, None)
                    self.measured.into.set(table.BATCH_RUNNING, 0, plan.name, query)
                elif since is None or since[0] != work.ended:
                    began = self.clock()
                    self._since[query] = (work.ended, began)
                    self.measured.into.set(table.BATCH_RUNNING, partial(self._running, began), plan.name, query)
        else:
            unfinished = execution.active
        return bool(unfinished)

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
