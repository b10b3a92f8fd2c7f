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
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from hintplan.plans.files.codec import fingerprint
from hintplan.plans.model.plan import Plan
from hintplan.runtime.metrics import table
from hintplan.runtime.metrics.measure import Measured
from hintplan.runtime.metrics.recent import Recent
from hintplan.runtime.progress import BatchProgress, JobProgress
from hintplan.runtime.running import RunningBatch

_LOOK_SECONDS = 1.0
_LAST_LOOK_SECONDS = 2.0


@dataclass(slots=True)
class Followed:
    """Follows the run of a plan, once per second, in a thread of its own; ``clock`` is monotonic, in seconds.

    ``recent`` keeps its recent past, for a page.
    """

    measured: Measured
    clock: Callable[[], float]
    recent: Recent | None = None
    _execution: Any = None
    _times_read: int = 0
    _since: dict[str, tuple[int | None, float]] = field(default_factory=dict)
    _ended: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def told(self, ended: BatchProgress | JobProgress) -> None:
        """Measure a batch, or the job of a sink, that has ended."""
        self.measured.progress(ended)
        if self.recent is not None:
            self.recent.ended(ended, main=self.measured.query_of(ended.sink)[1], now=self.clock())

    def working(self, query: str, batch: RunningBatch) -> None:
        """Record the progress of a batch at work."""
        if self.recent is not None:
            self.recent.at_work[query] = batch

    def begin_plan(self, plan: Plan) -> None:
        """Measure ``plan`` from now on, if an edit has made it of the plan that ran so far."""
        into = self.measured.into
        if plan == self.measured.plan:
            return
        for labels, _ in into.values(table.RUN_INFO):
            if labels[0] == plan.name:
                into.set(table.RUN_INFO, None, *labels)
                into.set(table.RUN_INFO, 1, plan.name, fingerprint(plan), *labels[2:])
        self.measured = replace(self.measured, plan=plan)
        self.measured.begun()

    @property
    def checkpoint(self) -> str | None:
        """The directory with the state of the run; None before it has one, and for a batch plan."""
        return getattr(self._execution, "checkpoint", None)

    @property
    def failure(self) -> str | None:
        """The reason for which the run has failed, if it has."""
        error = None if self._execution is None else self._execution.exception
        return None if error is None else str(error)

    @property
    def has_ended(self) -> bool:
        """True once the run no longer needs to be followed."""
        return self._ended.is_set() or (self._thread is not None and not self._thread.is_alive())

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
