"""A running plan: its streaming queries, how they get on, and how they are stopped.

Knows no plans and no command line; :func:`hintplan.runtime.run.execute.execute` starts one.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from types import TracebackType
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from hintplan.plans.errors import RunError
from hintplan.runtime.checkpoint.held_checkpoint import RunLock
from hintplan.runtime.metrics.followed import Followed
from hintplan.runtime.progress import BatchProgress, LookupProgress, OperatorProgress, batch_progress
from hintplan.runtime.progress_table import ProgressTable, as_html, as_text, stream_table
from hintplan.runtime.run.noted import Note
from hintplan.runtime.spark.explanation import NO_TABLES, FailedTables, failed
from hintplan.runtime.spark.failure import evidence
from hintplan.runtime.spark.function_failed import FunctionFailed
from hintplan.runtime.spark.stopping import stop_query
from hintplan.runtime.spark.unread_files import unread_files

_AT_WORK = "Processing new data"
"""What Spark says of a query while a batch with data is in progress."""

_POLL_SECONDS = 0.2

OFFERED = (
    "active",
    "await_termination",
    "checkpoint",
    "exception",
    "new_batches",
    "notes",
    "progress",
    "queries",
    "stop",
    "stop_between_batches",
)
"""What there is of a run for programs and notebooks."""

_MOST_UNREAD = 1_000
"""Micro-batches that wait to be read; whoever reads none must not fill the memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AtWork:
    """Whether a query works on a batch with data, and the last batch that ``ended``, None if none is known."""

    working: bool
    ended: int | None


@dataclass(slots=True, kw_only=True, repr=False)
class Execution:
    """A running plan, printed as a table of its sinks; as a context manager, it is stopped at the end of the block.

    ``queries`` has Spark's handle of each query by its id; ``checkpoint`` is where they keep state. A query has the id
    of its sink; one with several ``sinks`` (:mod:`hintplan.plans.analysis.streaming_queries`) that of an operator that
    they share. ``scans`` has the operators that read the sources of a query, in Spark's order, as far as that is known.
    ``followed`` is told of each batch that has ended, by whichever thread finds it first, and of the end;
    ``times_read`` is how often one has looked.
    """

    queries: dict[str, Any]
    checkpoint: str
    temporary: bool
    partitions: int
    notes: tuple[str, ...] = ()
    sinks: Mapping[str, Sequence[str]] = field(default_factory=dict)
    shared: frozenset[str] = frozenset()
    scans: Mapping[str, Sequence[str]] = field(default_factory=dict)
    followed: Followed | None = None
    times_read: int = 0
    _lock: RunLock | None = None
    _lost: RunError | None = None
    _failure: RunError | None = None
    _failures: Sequence[FunctionFailed] = ()
    _tables: FailedTables = NO_TABLES
    _note: Note = lambda operators: None
    _counts: dict[tuple[str, int], int] = field(default_factory=dict)
    _seen: dict[str, int] = field(default_factory=dict)
    _operators: dict[str, Mapping[str, OperatorProgress]] = field(default_factory=dict)
    _lookups: dict[str, Mapping[str, LookupProgress]] = field(default_factory=dict)
    _last: dict[str, BatchProgress] = field(default_factory=dict)
    _unread: deque[BatchProgress] = field(default_factory=partial(deque, maxlen=_MOST_UNREAD))
    _stopping: dict[str, int] = field(default_factory=dict)
    _reading: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self) -> Execution:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def __dir__(self) -> list[str]:
        """Return what a prompt offers; the other names are for what follows a run."""
        return sorted([*(name for name in object.__dir__(self) if name.startswith("__")), *OFFERED])

    def __repr__(self) -> str:
        return as_text(self._table())

    @property
    def active(self) -> bool:
        """Whether any query runs."""
        return any(query.isActive for query in self.queries.values())

    @property
    def has_planned(self) -> bool:
        """Whether all queries have planned a batch, or have seen that there is none to plan."""
        return all(query.lastProgress is not None or query.status["isDataAvailable"] for query in self.queries.values())

    def lease(self) -> dict[str, Any] | None:
        """What there is to say of the lease on the checkpoint; None where a lock holds it, or nobody does any more."""
        beat = None if self._lock is None else self._lock.beat
        return None if beat is None else beat.lease.told()

    @property
    def progress(self) -> dict[str, BatchProgress]:
        """The last finished micro-batch of each sink's query, as far as there is one."""
        self.read_batches()
        return dict(self._last)

    def new_batches(self) -> list[BatchProgress]:
        """The micro-batches that finished since the last call, in order for each sink; at most the last thousand.

        Of a multi-sink query each has its own; what the query read and keeps is reported with the first one.
        """
        self.read_batches()
        return [self._unread.popleft() for _ in range(len(self._unread))]

    def at_work(self, name: str) -> AtWork:
        """How a query stands, as far as its batches have been read."""
        status = self.queries[name].status
        working = bool(status["isTriggerActive"]) and status["message"] == _AT_WORK
        return AtWork(working=working, ended=self._seen.get(name))

    def read_batches(self) -> None:
        """Read which micro-batches have ended since the last time."""
        with self._reading:
            self.times_read += 1
            self._read_new_batches()

    def _read_new_batches(self) -> None:
        for name, query in self.queries.items():
            last = query.lastProgress
            if last is None or last.batchId <= self._seen.get(name, -1):
                continue
            waiting = unread_files(query)
            for found in query.recentProgress:
                # A trigger that found nothing to do is reported too, under the number of the batch to come.
                if found.batchId <= self._seen.get(name, -1) or "addBatch" not in found.durationMs:
                    continue
                first, *others = self.sinks.get(name, (name,))
                lookups = self._lookups.get(name, {})
                before, scans = self._operators.get(name, {}), self.scans.get(name, ())
                batch = batch_progress(first, found, before, self.partitions, lookups, waiting, scans)
                self._seen[name] = batch.batch
                self._operators[name] = batch.operators
                self._lookups[name] = batch.lookups
                if name in self.shared:  # also if the others are gone from the plan
                    batch = replace(batch, rows_out=self._counts.pop((first, batch.batch), 0))
                for one in (batch, *(self._of_other_sink(sink, batch) for sink in others)):
                    self._last[one.sink] = one
                    self._unread.append(one)
                    if self.followed is not None:
                        self.followed.told(one)
            if self._lock is None or self._lock.in_force:
                self._note(self._operators)

    def _of_other_sink(self, sink: str, batch: BatchProgress) -> BatchProgress:
        """What a sink got in a batch that is reported with another sink of the same query."""
        return BatchProgress(
            sink=sink,
            batch=batch.batch,
            timestamp=batch.timestamp,
            rows_in=0,
            rows_out=self._counts.pop((sink, batch.batch), 0),
            duration_ms=batch.duration_ms,
            operators={},
        )

    def await_termination(self, timeout: float | None = None) -> bool:
        """Wait until all queries have ended, at most ``timeout`` seconds; whether they have.

        When a query fails, the others are stopped and RunError says why it failed.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            self.raise_failure()
            waiting = next((query for query in self.queries.values() if query.isActive), None)
            if waiting is None:
                self.raise_failure()
                self._discard()
                return True
            if deadline is not None and time.monotonic() >= deadline:
                return False
            self.read_batches()
            self.wait(_POLL_SECONDS)

    def wait(self, seconds: float) -> None:
        """Wait until a query ends, at most ``seconds``; says nothing of how it ended."""
        from pyspark.errors import StreamingQueryException

        waiting = next((query for query in self.queries.values() if query.isActive), None)
        if waiting is not None:
            try:
                waiting.awaitTermination(seconds)
            except StreamingQueryException:
                return

    def raise_failure(self) -> None:
        """If a query has failed, stop the others and raise RunError with the root cause.

        So it is if the checkpoint is not held any more, for then another run may go on there.
        """
        if self._lock is not None and self._lost is None:
            try:
                self._lock.require()
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
                own = next((each for each in self._failures if str(each) in text), None)
                sinks = " and ".join(self.sinks.get(name, (name,)))
                found = failed(f"the query of {sinks} failed", own or error, self._tables)
                found.__cause__ = found.__cause__ or error
                return found
        return None

    def stop_between_batches(self) -> bool:
        """Stop every query that is not in the middle of a micro-batch, or has finished one since the first call.

        To be called until it returns True, which says that all queries have ended.
        """
        for sink, query in self.queries.items():
            last = query.lastProgress
            done = -1 if last is None else last.batchId
            first = self._stopping.setdefault(sink, done)
            if query.isActive and (done > first or not query.status["isTriggerActive"]):
                stop_query(query)
        if self.active:
            return False
        self._discard()
        return True

    def stop(self) -> None:
        """Stop all queries now; a batch in the middle is dropped and runs again after a restart."""
        for query in self.queries.values():
            stop_query(query)
        _ = self.exception  # which nobody can ask for once the session has ended
        self._discard()

    def _repr_html_(self) -> str:
        """What a notebook shows: how the run stands, and the last micro-batch of each sink."""
        return as_html(self._table())

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """The same where there is no HTML."""
        printer.text(as_text(self._table()))

    def _table(self) -> ProgressTable:
        try:
            self.read_batches()
            active = self.active
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
        if self._lock is not None:
            self._lock.release()
            self._lock = None
        if self.temporary:
            shutil.rmtree(self.checkpoint, ignore_errors=True)
