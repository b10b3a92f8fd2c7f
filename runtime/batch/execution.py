"""A running batch plan: one Spark job after the other, one per sink, in a thread of its own.

It has the interface of a stream's run (:class:`hintplan.runtime.run.execution.Execution`): ``active``, ``new_batches``,
``raise_failure``, ``await_termination``, ``stop``. A job that fails or is stopped leaves nothing in its sink. Sinks
that were written before keep their rows, and the error lists them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

from hintplan.plans.errors import RunError
from hintplan.runtime.batch.build import BuiltSink
from hintplan.runtime.batch.cache import ResultCache
from hintplan.runtime.functions.metrics import FUNCTION_METRICS
from hintplan.runtime.lookup.metrics import LOOKUP_METRICS
from hintplan.runtime.progress import CachedProgress, JobProgress
from hintplan.runtime.progress_table import ProgressTable, as_html, as_text, job_table
from hintplan.runtime.spark.explanation import NO_TABLES, FailedTables, failure_of_spark
from hintplan.runtime.spark.function_failed import FunctionFailed
from hintplan.runtime.spark.names import job_description, shown_as
from hintplan.runtime.spark.session import is_remote

if TYPE_CHECKING:
    from hintplan.plans.model.plan import PrettyPrinter

Told = Callable[[JobProgress], None]
"""A callback that receives each job that has succeeded."""

OFFERED = ("active", "await_termination", "exception", "new_batches", "notes", "progress", "stop")
"""The names that programs and notebooks can use."""

_POLL_SECONDS = 0.2
_CANCEL_SECONDS = 0.5


@dataclass(slots=True, kw_only=True, repr=False)
class BatchExecution:
    """A running batch plan with the name ``plan``, printed as a table of its sinks. ``jobs`` write the sinks.

    As a context manager, it stops the run at the end of the block. ``finished`` is called after the last job, with True
    if all jobs succeeded. ``told`` receives each job that has succeeded. No other run may use the session ``spark``.
    """

    plan: str
    spark: SparkSession
    jobs: tuple[BuiltSink, ...]
    cache: ResultCache
    finished: Callable[[bool], None]
    tables: FailedTables = NO_TABLES
    notes: tuple[str, ...] = ()
    temporary: bool = False
    told: Told | None = None
    _done: list[JobProgress] = field(default_factory=list)
    _told: int = 0
    _failure: RunError | None = None
    _stopping: threading.Event = field(default_factory=threading.Event)
    _future: Future[None] = field(default_factory=Future)

    def __enter__(self) -> BatchExecution:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def __dir__(self) -> list[str]:
        """Return the names that a prompt offers; the other names serve code that follows a run."""
        return sorted([*(name for name in object.__dir__(self) if name.startswith("__")), *OFFERED])

    def __repr__(self) -> str:
        return as_text(self._table())

    def start(self) -> None:
        """Start the first job."""
        pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="hintplan-batch")
        self._future = pool.submit(self._run)
        pool.shutdown(wait=False)

    @property
    def active(self) -> bool:
        """True while some job has not ended."""
        return not self._future.done()

    @property
    def progress(self) -> dict[str, JobProgress]:
        """The finished job of each sink."""
        return {job.sink: job for job in self._done}

    def new_batches(self) -> list[JobProgress]:
        """Return the jobs that finished since the last call, in order."""
        ended = self._done[self._told :]
        self._told += len(ended)
        return ended

    def await_termination(self, timeout: float | None = None) -> bool:
        """Wait until all jobs have ended, at most ``timeout`` seconds; return True if they have.

        Raise RunError if one failed.
        """
        self.wait(timeout)
        self.raise_failure()
        return not self.active

    def wait(self, seconds: float | None) -> None:
        """Wait until all jobs have ended, at most ``seconds``; a failure is not raised."""
        wait([self._future], timeout=seconds)

    def raise_failure(self) -> None:
        """Raise RunError if a job has failed, with the root cause and the sinks that were written before."""
        if (error := self.exception) is not None:
            raise error

    @property
    def exception(self) -> RunError | None:
        """The error of the job that failed, as ``await_termination`` raises it; None if no job failed."""
        if self._failure is None and not self.active and not self._stopping.is_set():
            error = self._future.exception()
            self._failure = None if error is None else self._failed(error)
        return self._failure

    def _failed(self, error: BaseException) -> RunError:
        names = [job.sink for job in self.jobs]
        written, current, rest = names[: len(self._done)], names[len(self._done)], names[len(self._done) + 1 :]
        # A function may have written before it failed.
        left = [] if isinstance(error, FunctionFailed) else ["nothing of it was written"]
        if written:
            left.append(f"written before, and left as it is: {', '.join(written)}")
        if rest:
            left.append(f"not started: {', '.join(rest)}")
        failure = failure_of_spark(
            f"the job of {current} failed", error, self.tables, "".join(f"; {each}" for each in left)
        )
        failure.__cause__ = failure.__cause__ or error
        return failure

    def stop_between_batches(self) -> bool:
        """Stop now and return True: an unfinished job leaves no rows, and then all jobs have ended."""
        self.stop()
        return True

    def stop(self) -> None:
        """Stop the current job and start no other; return when it has ended."""
        _ = self.exception  # a run that failed before it was stopped stays failed
        self._stopping.set()
        while self.active:
            # Spark cannot interrupt a job before it starts, and a write has several jobs, so one call is not enough.
            self.spark.interruptAll()
            wait([self._future], timeout=_CANCEL_SECONDS)

    def _repr_html_(self) -> str:
        """Return the state of the run and the job of each sink as HTML, for a notebook."""
        return as_html(self._table())

    def _repr_pretty_(self, printer: PrettyPrinter, cycle: bool) -> None:
        """Print the same where HTML is not available."""
        printer.text(as_text(self._table()))

    def _table(self) -> ProgressTable:
        error = self.exception
        ended = "stopped" if self._stopping.is_set() else "ended"
        status = "failed" if error is not None else "running" if self.active else ended
        return job_table(status, [job.sink for job in self.jobs], self._done, "" if error is None else str(error))

    def _run(self) -> None:
        try:
            for job in self.jobs:
                if self._stopping.is_set():
                    return
                ended = self._written(job)
                self._done.append(ended)
                if self.told is not None:
                    self.told(ended)
        finally:
            self.finished(len(self._done) == len(self.jobs))

    def _written(self, job: BuiltSink) -> JobProgress:
        timestamp = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        started = time.monotonic()
        with nullcontext() if is_remote(self.spark) else job_description(self.spark, shown_as(self.plan, job.sink)):
            job.write()
        elapsed = int((time.monotonic() - started) * 1000)
        rows_out = job.observed.of(job.sink)["rows_out"]
        cached = {}
        for entry in job.reads:
            hit = entry.served()
            rows, size = self.cache.measured(entry)
            cached[entry.operator] = CachedProgress(
                hit=hit, rows=rows, bytes=size, storage_level=entry.storage_level, hits=entry.hits
            )
        metrics_below = job.observed.rest(job.sink)
        return JobProgress(
            sink=job.sink,
            timestamp=timestamp,
            rows_out=rows_out,
            duration_ms=elapsed,
            lookups={name: _counted(metrics_below[name], LOOKUP_METRICS) for name in job.lookups},
            functions={name: _counted(metrics_below[name], FUNCTION_METRICS) for name in job.functions},
            cached=cached,
        )


def _counted(observed: Mapping[str, int], metrics: Sequence[tuple[str, Any]]) -> dict[str, int]:
    """Return the metrics of an operator, zeros if it got no rows; Spark reports no metrics then."""
    return {name: observed.get(name, 0) for name, _ in metrics}
