"""Runs a plan: its streaming queries (:mod:`plans.analysis.streaming_queries`) on a session of their own, guarded by
the checkpoint.

A batch plan runs as a :class:`runtime.batch.session.Session` of one job per sink.

    execution = execute(hintplan.load("plan.json"), checkpoint="/data/checkpoints/revenue", once=True)
    execution.await_termination()

Knows no command line. Everything that can be refused is refused before anything is started or written.
"""

from __future__ import annotations

import shutil
import tempfile
import time
import uuid
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from plans.analysis.streaming_queries import Query, tops
from plans.analysis.validate import validate
from plans.checkpoint.continuation import continuation, record_after, record_of_begun, refuse
from plans.checkpoint.report import checkpoint_notes
from plans.connectors.policy import OPEN, Policy, refuse_reach
from plans.declarations.durations import parse_duration
from plans.errors import PlanError, RunError
from plans.model.config import PARALLELISM, TIME_ZONE
from plans.model.plan import Plan
from plans.operators import state_of
from runtime.batch.execution import BatchExecution
from runtime.batch.session import Session
from runtime.build.edges import edges_of
from runtime.build.stream import build
from runtime.build.sub_plans import shared_operators
from runtime.checkpoint.files import NO_FILES, files_of, local_directory, reached_by_workers
from runtime.checkpoint.parts import batches_kept, last_batches, refuse_damaged
from runtime.checkpoint.record import read_record, write_record
from runtime.checkpoint.run_lock import RunLock, acquire
from runtime.connectors import table as connectors
from runtime.lookup.plan import LookupRun
from runtime.progress import BatchProgress, LookupProgress, OperatorProgress, batch_progress
from runtime.progress_table import ProgressTable, as_html, as_text, stream_table
from runtime.results import files
from runtime.run.noted import Note, noted
from runtime.run.places import pins_of, places_of, run_number
from runtime.run.sink_batches import refuse_other_batches
from runtime.run.writers import query_writer
from runtime.spark.explanation import WrongLine, failed
from runtime.spark.session import (
    default_partitions,
    is_remote,
    prepare_session,
    shares_machine,
    start_session,
    write_logs_by_renaming,
)
from runtime.spark.shipping import ship_code
from runtime.spark.unread_files import unread_files
from runtime.spark.versions import version_notes

DEFAULT_TRIGGER = "1 s"
"""Time between the starts of two batches of a continuous run; without one, batches without data would follow each
other all the time."""

_POLL_SECONDS = 0.2

_MOST_UNREAD = 1_000
"""Micro-batches that wait to be read; whoever reads none must not fill the memory."""


@dataclass(slots=True, kw_only=True)
class Execution:
    """A running plan. ``queries`` has Spark's handle of each query by its id; ``checkpoint`` is where they keep state.

    A query has the id of its sink; one with several ``sinks`` (:mod:`plans.analysis.streaming_queries`) that of the
    operator above them.
    """

    queries: dict[str, Any]
    checkpoint: str
    temporary: bool
    partitions: int
    notes: tuple[str, ...] = ()
    sinks: Mapping[str, Sequence[str]] = field(default_factory=dict)
    _lock: RunLock | None = None
    _wrong_line: WrongLine = lambda file: None
    _note: Note = lambda operators: None
    _counts: dict[tuple[str, int], int] = field(default_factory=dict)
    _seen: dict[str, int] = field(default_factory=dict)
    _operators: dict[str, Mapping[str, OperatorProgress]] = field(default_factory=dict)
    _lookups: dict[str, Mapping[str, LookupProgress]] = field(default_factory=dict)
    _last: dict[str, BatchProgress] = field(default_factory=dict)
    _unread: deque[BatchProgress] = field(default_factory=partial(deque, maxlen=_MOST_UNREAD))
    _stopping: dict[str, int] = field(default_factory=dict)

    @property
    def active(self) -> bool:
        """Whether any query runs."""
        return any(query.isActive for query in self.queries.values())

    @property
    def progress(self) -> dict[str, BatchProgress]:
        """The last finished micro-batch of each sink's query, as far as there is one."""
        self._read_batches()
        return dict(self._last)

    def new_batches(self) -> Iterator[BatchProgress]:
        """The micro-batches that finished since the last call, in order for each sink; at most the last thousand.

        Of a multi-sink query each has its own; what the query read and keeps is reported with the first one.
        """
        self._read_batches()
        while self._unread:
            yield self._unread.popleft()

    def _read_batches(self) -> None:
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
                batch = batch_progress(first, found, self._operators.get(name, {}), self.partitions, lookups, waiting)
                self._seen[name] = batch.batch
                self._operators[name] = batch.operators
                self._lookups[name] = batch.lookups
                if others:
                    batch = replace(batch, rows_out=self._counts.pop((first, batch.batch), 0))
                for one in (batch, *(self._of_other_sink(sink, batch) for sink in others)):
                    self._last[one.sink] = one
                    self._unread.append(one)
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
            self._read_batches()
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
        """If a query has failed, stop the others and raise RunError with the root cause."""
        for sink, query in self.queries.items():
            error = query.exception()
            if error is not None:
                self.stop()
                named = " and ".join(self.sinks.get(sink, (sink,)))
                raise failed(f"the query of {named} failed", error, self._wrong_line) from error

    def stop_between_batches(self) -> bool:
        """Stop every query that is not in the middle of a micro-batch, or has finished one since the first call.

        To be called until it returns True, which says that all queries have ended.
        """
        for sink, query in self.queries.items():
            last = query.lastProgress
            done = -1 if last is None else last.batchId
            first = self._stopping.setdefault(sink, done)
            if query.isActive and (done > first or not query.status["isTriggerActive"]):
                query.stop()
        if self.active:
            return False
        self._discard()
        return True

    def stop(self) -> None:
        """Stop all queries now; a batch in the middle is dropped and runs again after a restart."""
        for query in self.queries.values():
            query.stop()
        self._discard()

    def _repr_html_(self) -> str:
        """What a notebook shows: how the run stands, and the last micro-batch of each sink."""
        return as_html(self._table())

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """The same where there is no HTML."""
        printer.text(as_text(self._table()))

    def _table(self) -> ProgressTable:
        try:
            self._read_batches()
            failed_one = any(query.exception() is not None for query in self.queries.values())
            status = "failed" if failed_one else "running" if self.active else "ended"
        except (Py4JError, OSError):
            status = "ended"  # with its Spark session
        head = status if self.temporary else f"{status} · checkpoint {self.checkpoint}"
        sinks = [sink for name in self.queries for sink in self.sinks.get(name, (name,))]
        return stream_table(head, sinks, self._last)

    def _discard(self) -> None:
        with suppress(Py4JError, PySparkException, OSError):  # Spark may have ended
            self._read_batches()
        if self._lock is not None:
            self._lock.release()
        if self.temporary:
            shutil.rmtree(self.checkpoint, ignore_errors=True)


def execute(
    plan: Plan,
    spark: SparkSession | None = None,
    *,
    checkpoint: str | None = None,
    once: bool = False,
    trigger: str | None = None,
    policy: Policy = OPEN,
    allow_state_drop: bool = False,
    results: str | None = None,
    take_over: bool = False,
) -> Execution | BatchExecution:
    """Start ``plan`` on ``spark``, or on the active session, or on a new local one.

    ``checkpoint`` is a directory, on a file system that all workers share, where the run keeps its state and finds it
    again; without one, a local run uses a temporary one. ``once`` takes what is there and ends. ``trigger`` is the time
    between two batches, such as ``'5 s'``. ``policy`` says what the plan may reach and load beyond what is always open.
    A checkpoint with state that the plan does not continue (:mod:`plans.checkpoint.continuation`) is refused, unless
    ``allow_state_drop`` says to go on without it. With ``results``, a directory as for ``checkpoint``, rows are kept
    there for :class:`runtime.results.files.KeptRows` instead of written to the sink. A checkpoint has one run at a time
    (:mod:`runtime.checkpoint.run_lock`); ``take_over`` follows one on another machine, of which nothing is known. A
    batch plan takes what is there and ends; it has neither a checkpoint nor a trigger, and its cached results go with
    its last job. PlanError if the plan is wrong; RunError if it cannot run here.
    """
    problems = validate(plan)
    if problems:
        raise PlanError(diagnostics=problems)
    if plan.mode == "batch":
        _refuse_streaming_settings(checkpoint, trigger)
        return Session(spark, policy=policy).execute_and_close(plan, results=results)
    _refuse_cached(plan)
    refuse_reach(plan.tables, policy, checkpoint)
    settings = _trigger(once, trigger)
    if once:
        for scan in plan.scans:
            connectors.refuse_unbounded(scan.table, plan.tables[scan.table])
    spark = spark or SparkSession.getActiveSession() or start_session(None, {})
    own = prepare_session(spark, time_zone=plan.config.get(TIME_ZONE, "UTC"), once=once, take_over=take_over)
    if checkpoint is None and not shares_machine(own):
        raise RunError(
            "a run on a cluster keeps its state in a checkpoint that all workers can reach",
            hint="give a checkpoint directory on a shared file system",
        )
    recorded = None if checkpoint is None else read_record(own, checkpoint)
    asked = int(plan.config[PARALLELISM]) if PARALLELISM in plan.config else None
    partitions = asked or (recorded.partitions if recorded else default_partitions(own))
    there = NO_FILES if checkpoint is None else files_of(own, checkpoint)
    reached = {query.id: last_batches(there, query.id)[1] + 1 for query in recorded.queries} if recorded else {}
    found = continuation(recorded, plan, share=not is_remote(own), partitions=partitions, reached=reached)
    refuse(found, checkpoint or "", allow_drop=allow_state_drop)
    own.conf.set("spark.sql.shuffle.partitions", str(partitions))
    ship_code(own, policy.modules)
    zone = plan.config.get(TIME_ZONE, "UTC")
    lookups = LookupRun(
        token=uuid.uuid4().hex,
        allowed_modules=policy.modules,
        time_zone=zone,
        once=once,
    )
    if results is not None:
        files.keeping(own)
    location = checkpoint or tempfile.mkdtemp(prefix="hintplan-checkpoint-")
    if not is_remote(own) and local_directory(own, location) is not None:
        write_logs_by_renaming(own)
    run = run_number(there, int(time.time() * 1000))
    running = found.queries
    counts: dict[tuple[str, int], int] = {}
    writers = {}
    pinned = {}
    division = str(partitions) if is_remote(own) else f"{partitions} of {default_partitions(own)}"
    for query in running:
        places = places_of(query, found, reached_by_workers(own, location), run=run)
        pins = pins_of(query, plan, there, reached_by_workers(own, location), run=run, division=division)
        pinned[query.id] = pins
        edges = edges_of(plan, own, places=places, lookups=lookups, pins=pins)
        rows = build(edges, tops(plan, query))
        writers[query.id] = query_writer(query, edges, rows, location, results, counts)
    execution = Execution(
        queries={},
        checkpoint=location,
        temporary=checkpoint is None,
        partitions=partitions,
        notes=(
            *(() if recorded is None else checkpoint_notes(recorded, plan, str(own.version))),
            *_repeated(plan, running),
            *version_notes(str(own.version)),
        ),
        sinks={query.id: query.sinks for query in running if query.is_shared},
        _counts=counts,
        _wrong_line=partial(connectors.wrong_line, own, plan.tables),
    )
    if checkpoint is not None and not is_remote(own):
        execution._lock = acquire(own, checkpoint, take_over=take_over)
        execution._lock.in_use = partial(_is_active, execution)
    try:
        if checkpoint is not None:
            before, there = there, files_of(own, checkpoint)
            scaled = recorded is not None and recorded.partitions != partitions
            moved = scaled and any(last_batches(before, query.id) != last_batches(there, query.id) for query in running)
            reached_at = reached_by_workers(own, location)
            moved |= any(
                pins_of(query, plan, there, reached_at, run=run, division=division) != pinned[query.id]
                for query in running
            )
            if moved or read_record(own, checkpoint) != recorded:
                raise RunError(
                    f"another run has used checkpoint {checkpoint} while this one was starting", hint="start it again"
                )
            refuse_damaged(there, recorded, checkpoint, kept=batches_kept(own))
            if results is None:
                refuse_other_batches(plan, running, there, recorded, partial(files_of, own))
            record = record_after(found, recorded, plan, partitions=partitions, spark=own.version) or recorded
            if record is not None and record is not recorded:
                write_record(own, checkpoint, record)
        elif results is None:
            refuse_other_batches(plan, running, NO_FILES, None, partial(files_of, own))
        for name, writer in writers.items():
            execution.queries[name] = _started(name, writer.trigger(**settings), location)
        if checkpoint is not None and record is not None:
            if (begun := record_of_begun(record)) is not None:
                write_record(own, checkpoint, begun)
            execution._note = noted(own, checkpoint, begun or record)
    except BaseException:
        execution.stop()
        raise
    return execution


def _started(name: str, writer: Any, checkpoint: str) -> Any:
    """Spark's handle of a query that begins now; RunError if Spark refuses it."""
    try:
        return writer.start()
    except (Py4JError, PySparkException) as error:
        said = str(error)
        if "CONCURRENT_QUERY" in said or "another query with same id is already active" in said:
            raise RunError(
                f"the query of {name} with checkpoint {checkpoint} is already running on this Spark",
                hint="a checkpoint has one run at a time: stop the other one. If whoever started it is gone, "
                "hintplan run --take-over stops it and goes on",
            ) from error
        raise failed(f"the query of {name} cannot be started", error, lambda file: None) from error


def _is_active(execution: Execution) -> bool:
    """Whether a run goes on that nobody may have waited for; not if its session was stopped, with its queries."""
    try:
        return execution.active
    except (Py4JError, OSError):
        return False


def _refuse_streaming_settings(checkpoint: str | None, trigger: str | None) -> None:
    if checkpoint is not None:
        raise RunError("a batch plan keeps no state, so it has no checkpoint", hint="run it without one")
    if trigger is not None:
        raise RunError("a batch plan runs once, so it has no trigger", hint="run it without one")


def _refuse_cached(plan: Plan) -> None:
    for operator in plan.operators:
        settings = operator.cached
        if settings is not None and settings.enabled:
            raise RunError(
                f"operator {operator.id} is to be cached, which only batch plans can",
                hint="SET 'execution.runtime-mode' = 'batch' in the script, or remove the setting",
                path=f"operators.{operator.id}.cached",
            )


def _trigger(once: bool, trigger: str | None) -> dict[str, Any]:
    if once and trigger is not None:
        raise RunError("a run that takes what is there and stops has no trigger", hint="give one or the other")
    if once:
        return {"availableNow": True}
    try:
        milliseconds = parse_duration(trigger or DEFAULT_TRIGGER, require_unit=True)
    except ValueError as error:
        raise RunError(f"the trigger is wrong: {error}", hint="write a duration such as '5 s'") from error
    return {"processingTime": f"{milliseconds} milliseconds"}


def _repeated(plan: Plan, running: Sequence[Query]) -> list[str]:
    """What runs, and keeps its state, once in each of several queries."""
    notes = []
    query_of = {sink: " and ".join(query.sinks) for query in running for sink in query.sinks}
    for name, sinks in shared_operators(plan).items():
        found = tuple(dict.fromkeys(query_of[sink] for sink in sinks))
        if len(found) == 1:
            continue
        stateful = any(state_of(plan.operator(each)) for each in plan.upstream(name))
        notes.append(
            f"{name} runs once in the query of each of {len(found)} sinks ({', '.join(found)})"
            + (", with state of its own in each" if stateful else "")
        )
    return notes
