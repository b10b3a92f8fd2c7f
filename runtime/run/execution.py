"""A running plan: its streaming queries, their progress, and how to stop them.

This module knows neither plans nor the command line; :func:`hintplan.runtime.run.execute.execute` starts an execution.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from hintplan.plans.errors import RunError
from hintplan.runtime.checkpoint.process_locks import RunLock
from hintplan.runtime.metrics.followed import Followed
from hintplan.runtime.progress import BatchProgress, LookupProgress, OperatorProgress, batch_progress
from hintplan.runtime.progress_table import ProgressTable, as_html, as_text, stream_table
from hintplan.runtime.run.record_writer import RecordWriter
from hintplan.runtime.spark.explanation import NO_TABLES, FailedTables, failure_of_spark
from hintplan.runtime.spark.failure import evidence
from hintplan.runtime.spark.function_failed import FunctionFailed
from hintplan.runtime.spark.stopping import stop_query
from hintplan.runtime.spark.unread_files import unread_files

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from hintplan.plans.model.plan import Plan, PrettyPrinter
    from hintplan.runtime.running import PlanEdit

_AT_WORK = "Processing new data"
"""Spark's status message of a query while a batch with data is in progress."""

_POLL_SECONDS = 0.2

OFFERED = (
    "active",
    "await_termination",
    "checkpoint",
    "edits",
    "exception",
    "new_batches",
    "notes",
    "progress",
    "queries",
    "stop",
    "stop_between_batches",
)
"""The attributes of a run for programs and notebooks."""

_MOST_UNREAD = 1_000
"""The maximum number of unread micro-batches in memory, in case nobody reads them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AtWork:
    """The status of a query: ``working`` while it processes a batch with data.

    ``ended`` is the last batch that has ended, or None if none is known.
    """

    working: bool
    ended: int | None


class Edits(Protocol):
    """The edits of the plan of a run, as :mod:`hintplan.runtime.run.live_edits` applies them."""

    @property
    def is_pending(self) -> bool: ...

    def look(self, execution: Execution) -> None: ...

    def begun(self, plan: Plan, batches: Mapping[str, int]) -> None: ...

    def news(self) -> list[PlanEdit]: ...


@dataclass(slots=True, kw_only=True, repr=False)
class Execution:
    """A running plan, printed as a table of its sinks. As a context manager, it stops at the end of the block.

    ``queries`` maps query ids to Spark's handles; ``checkpoint`` is the directory of their state. A query has the id of
    its sink; a query with several ``sinks`` has the id of an operator that they share
    (:mod:`hintplan.plans.analysis.streaming_queries`). ``scans`` has the operators that read the sources of a query, in
    Spark's order, if known. ``time_sources`` has the sources of the watermark of each operator that goes by event time.
    ``followed`` is notified of each batch that has ended, by the thread that reads it first,
    and of the end of the run. ``times_read`` counts the reads.

    The run holds ``lock`` on its checkpoint until it ends. ``row_counts`` has the rows that a multi-sink query has
    written per sink and batch. ``failed_tables`` and ``function_failures`` explain a failure. ``drain`` starts the last
    batch of the queries that go by event time; None if their windows stay open. A run drains when the program waits for
    it or looks at it after all queries have read their input: ``await_termination``, ``active``, ``new_batches``,
    ``progress``.

    At the same moments, ``edits`` looks at the file of the plan, if the run watches it. ``following`` starts the
    queries of another plan once all queries have ended: the plan after an edit, or after a batch that was repeated.
    """

    queries: dict[str, StreamingQuery]
    checkpoint: str
    temporary: bool
    partitions: int
    notes: tuple[str, ...] = ()
    sinks: Mapping[str, Sequence[str]] = field(default_factory=dict)
    shared: frozenset[str] = frozenset()
    scans: Mapping[str, Sequence[str]] = field(default_factory=dict)
    time_sources: Mapping[str, Sequence[str]] = field(default_factory=dict)
    followed: Followed | None = None
    times_read: int = 0
    lock: RunLock | None = None
    record_writer: RecordWriter | None = None
    row_counts: dict[tuple[str, int], int] = field(default_factory=dict)
    failed_tables: FailedTables = NO_TABLES
    function_failures: Sequence[FunctionFailed] = ()
    drain: Callable[[], Mapping[str, StreamingQuery]] | None = None
    edits: Edits | None = None
    following: Callable[[], None] | None = None
    _ending: bool = False
    _lost: RunError | None = None
    _failure: RunError | None = None
    _seen: dict[str, int] = field(default_factory=dict)
    _operators: dict[str, Mapping[str, OperatorProgress]] = field(default_factory=dict)
    _lookups: dict[str, Mapping[str, LookupProgress]] = field(default_factory=dict)
    _last: dict[str, BatchProgress] = field(default_factory=dict)
    _unread: deque[BatchProgress] = field(default_factory=partial(deque, maxlen=_MOST_UNREAD))
    _stopping: dict[str, int] = field(default_factory=dict)
    _reading: threading.Lock = field(default_factory=threading.Lock)
    _advancing: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self) -> Execution:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def __dir__(self) -> list[str]:
        """Return the names that a prompt completes; the other names are internal."""
        return sorted([*(name for name in object.__dir__(self) if name.startswith("__")), *OFFERED])

    def __repr__(self) -> str:
        return as_text(self._table())

    @property
    def active(self) -> bool:
        """True while any query runs, or the next ones are about to start. They start here once all have ended."""
        if self.is_running and self.edits is None:
            return True
        self._advance()
        return self.is_running or (self.waits_to_start and self.exception is None)

    @property
    def is_running(self) -> bool:
        """True while any query runs."""
        return any(query.isActive for query in self.queries.values())

    @property
    def is_unfinished(self) -> bool:
        """True while any query runs, or the next ones are about to start."""
        if self.edits is not None and self.edits.is_pending and not self._ending:
            return True
        return self.is_running or self.waits_to_start

    @property
    def waits_to_start(self) -> bool:
        """True if more queries start once all queries have ended: to drain the run, or with another plan."""
        return self.following is not None or self.drain is not None

    @property
    def has_planned(self) -> bool:
        """True once every query has planned a batch, or has found no input for one."""
        return all(query.lastProgress is not None or query.status["isDataAvailable"] for query in self.queries.values())

    def lease(self) -> dict[str, Any] | None:
        """Return the state of the lease on the checkpoint; None if it has a lock instead, or is no longer held."""
        beat = None if self.lock is None else self.lock.beat
        return None if beat is None else beat.lease.told()

    @property
    def progress(self) -> dict[str, BatchProgress]:
        """The last finished micro-batch of each sink's query, if any."""
        self._advance()
        self.read_batches()
        return dict(self._last)

    def new_batches(self) -> list[BatchProgress]:
        """Return the micro-batches that finished since the last call, in order for each sink, a thousand at most.

        For a multi-sink query, each sink has a record. The first one includes the input and the state of the query.
        """
        self._advance()
        self.read_batches()
        return [self._unread.popleft() for _ in range(len(self._unread))]

    def at_work(self, name: str) -> AtWork:
        """Return the status of a query, based on the batches read so far."""
        status = self.queries[name].status
        working = bool(status["isTriggerActive"]) and status["message"] == _AT_WORK
        return AtWork(working=working, ended=self._seen.get(name))

    def read_batches(self) -> None:
        """Read the micro-batches that have ended since the last call."""
        with self._reading:
            self.times_read += 1
            self._read_new_batches()

    def _read_new_batches(self) -> None:
        for name, query in self.queries.items():
            last = query.lastProgress
            if last is None or last.batchId <= self._seen.get(name, -1):
                continue
            waiting = unread_files(query)
            for progress in query.recentProgress:
                # Spark also reports triggers without input, under the number of the next batch.
                if progress.batchId <= self._seen.get(name, -1) or "addBatch" not in progress.durationMs:
                    continue
                first, *other_sinks = self.sinks.get(name, (name,))
                lookups = self._lookups.get(name, {})
                before, scans = self._operators.get(name, {}), self.scans.get(name, ())
                batch = batch_progress(
                    first, progress, before, self.partitions, lookups, waiting, scans, self.time_sources
                )
                self._seen[name] = batch.batch
                self._operators[name] = batch.operators
                self._lookups[name] = batch.lookups
                if name in self.shared:  # even if the plan no longer has the other sinks
                    batch = replace(batch, rows_out=self.row_counts.pop((first, batch.batch), 0))
                for sink_batch in (batch, *(self._of_other_sink(sink, batch) for sink in other_sinks)):
                    self._last[sink_batch.sink] = sink_batch
                    self._unread.append(sink_batch)
                    if self.followed is not None:
                        self.followed.told(sink_batch)
            if self.record_writer is not None and (self.lock is None or self.lock.in_force):
                self.record_writer.write(self._operators)

    def _of_other_sink(self, sink: str, batch: BatchProgress) -> BatchProgress:
        """Return the record of ``sink`` for a ``batch`` that is reported with another sink of the same query."""
        return BatchProgress(
            sink=sink,
            batch=batch.batch,
            timestamp=batch.timestamp,
            rows_in=0,
            rows_out=self.row_counts.pop((sink, batch.batch), 0),
            duration_ms=batch.duration_ms,
            operators={},
        )

    def advance_if_read(self) -> bool:
        """Once all queries have ended, start the queries that follow, or close all windows; return True then."""
        with self._advancing:
            following, drain = self.following, self.drain
            if (following is None and drain is None) or self.is_running:
                return False
            self.raise_failure()
            self.read_batches()
            try:
                if following is not None:
                    self._follow(following)
                elif drain is not None:
                    self.queries = {**self.queries, **drain()}  # a new one, because other threads read the old one
                    self.drain = None
            except BaseException as error:
                self._failure = error if isinstance(error, RunError) else None
                self.stop()
                raise
            if self._ending:  # another thread has stopped the run meanwhile
                self.stop()
        return True

    def _follow(self, following: Callable[[], None]) -> None:
        """Start the queries that follow; until then, no batch is recorded under the earlier plan."""
        with self._reading:
            self.record_writer = None
        self._stopping.clear()
        following()
        if self.following is following:
            self.following = None

    def _advance(self) -> None:
        """Apply edits of the plan, and start the queries that follow, if the time has come.

        ``exception`` has the reason if that fails.
        """
        if self._ending or not (self.waits_to_start or self.edits) or self.exception is not None:
            return
        with suppress(RunError):
            with self._advancing:
                if self.edits is not None and self.following is None:
                    self.edits.look(self)
            self.advance_if_read()

    def await_termination(self, timeout: float | None = None) -> bool:
        """Wait until all queries have ended, at most ``timeout`` seconds, and return whether they have.

        If a query fails, stop the others and raise RunError with the reason.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            self.raise_failure()
            waiting = next((query for query in self.queries.values() if query.isActive), None)
            if waiting is None:
                self.raise_failure()
                if self.advance_if_read() or self.is_running:  # another thread may have started the next queries
                    continue
                self._discard()
                return True
            if deadline is not None and time.monotonic() >= deadline:
                return False
            self._advance()
            self.read_batches()
            self.wait(_POLL_SECONDS)

    def wait(self, seconds: float) -> None:
        """Wait until a query ends, at most ``seconds``; do not raise its failure."""
        from pyspark.errors import StreamingQueryException

        waiting = next((query for query in self.queries.values() if query.isActive), None)
        if waiting is not None:
            try:
                waiting.awaitTermination(seconds)  # type: ignore[arg-type]  # fractions of a second are accepted
            except StreamingQueryException:
                return

    def raise_failure(self) -> None:
        """If a query has failed, stop the others and raise RunError with the root cause.

        Do the same if the checkpoint is no longer held, because another run may continue it.
        """
        if self.lock is not None and self._lost is None:
            try:
                self.lock.require()
            except RunError as lost:
                self._lost = lost
                self.stop()
        if self._lost is not None:
            raise self._lost
        if (error := self.exception) is not None:
            self.stop()
            raise error

    @property
    def exception(self) -> RunError | None:
        """The error of the first query that failed, as ``await_termination`` raises it; None if no query failed."""
        if self._lost is None and self._failure is None:
            with suppress(Py4JError, OSError):  # the session may have been stopped
                self._failure = self._found_failure()
        return self._lost or self._failure

    def _found_failure(self) -> RunError | None:
        for name, query in self.queries.items():
            error = query.exception()
            if error is not None:
                text = evidence(error)
                own = next((each for each in self.function_failures if str(each) in text), None)
                sinks = " and ".join(self.sinks.get(name, (name,)))
                failure = failure_of_spark(f"the query of {sinks} failed", own or error, self.failed_tables)
                failure.__cause__ = failure.__cause__ or error
                return failure
        return None

    def stop_between_batches(self) -> bool:
        """Stop each query that is between two micro-batches, or has finished one since the first call.

        Call it until it returns True, when all queries have ended. Windows stay open.
        """
        self._end()
        if not self.end_batches():
            return False
        self._discard()
        return True

    def end_batches(self) -> bool:
        """Do the same for a run that continues with other queries."""
        for sink, query in self.queries.items():
            last = query.lastProgress
            done = -1 if last is None else last.batchId
            first = self._stopping.setdefault(sink, done)
            if query.isActive and (done > first or not query.status["isTriggerActive"]):
                stop_query(query)
        return not self.is_running

    def _end(self) -> None:
        self.drain = self.following = None
        self._ending = True

    def stop(self) -> None:
        """Stop all queries now; a batch in progress is dropped and runs again after a restart."""
        self._end()
        for query in self.queries.values():
            stop_query(query)
        _ = self.exception  # which nobody can ask for once the session has ended
        self._discard()

    def _repr_html_(self) -> str:
        """Return the table for a notebook: the status of the run, and the last micro-batch of each sink."""
        return as_html(self._table())

    def _repr_pretty_(self, printer: PrettyPrinter, cycle: bool) -> None:
        """Print the same table as text."""
        printer.text(as_text(self._table()))

    def _table(self) -> ProgressTable:
        try:
            self.read_batches()
            active = self.is_running
        except (Py4JError, OSError):
            active = False  # its Spark session has ended
        error = self.exception
        status = "failed" if error is not None else "running" if active else "ended"
        head = status if self.temporary else f"{status} · checkpoint {self.checkpoint}"
        sinks = [sink for name in self.queries for sink in self.sinks.get(name, (name,))]
        return stream_table(head, sinks, self._last, "" if error is None else str(error))

    def _discard(self) -> None:
        with suppress(Py4JError, PySparkException, OSError):  # Spark may have ended
            self.read_batches()
        if self.followed is not None:
            self.followed.end()
        if self.lock is not None:
            self.lock.release()
            self.lock = None
        if self.temporary:
            shutil.rmtree(self.checkpoint, ignore_errors=True)
