"""Starts the streaming queries of a plan on a checkpoint: at the start of a run, and again after an edit of its plan.

A batch that has begun and has not ended is first repeated with the settings under which it began
(:mod:`hintplan.plans.checkpoint.live_edit`). Then the queries of the plan start. The record of the checkpoint has a new
plan before the first batch of that plan begins.

    start = Start(spark=spark, checkpoint=where, location=where, ...)
    planned = start.planned(plan, before_run(plan, spark, where))
    start.begin(execution, planned, planned.building.unmoved_files())
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from hintplan.plans.analysis.watermarks import watermark_sources
from hintplan.plans.checkpoint.continuation import Continuation, continuation, record_after, record_of_begun
from hintplan.plans.checkpoint.live_edit import plan_of_begun_batch
from hintplan.plans.checkpoint.record import CheckpointRecord, recorded_plan
from hintplan.plans.errors import RunError
from hintplan.plans.model.plan import Plan
from hintplan.runtime.checkpoint.files import NO_FILES, CheckpointFiles, checkpoint_files, reached_by_workers
from hintplan.runtime.checkpoint.generations import begin_generation, end_generations, old_logs
from hintplan.runtime.checkpoint.process_locks import RunLock
from hintplan.runtime.checkpoint.record import read_record, write_record
from hintplan.runtime.connectors.program_objects import ProgramObjects
from hintplan.runtime.requests.request import RequestRun
from hintplan.runtime.run.building import Before, Building, before_run
from hintplan.runtime.run.draining import drained_queries, queries_by_time, write_endings
from hintplan.runtime.run.execution import Execution
from hintplan.runtime.run.record_writer import RecordWriter
from hintplan.runtime.spark.explanation import failure_of_spark
from hintplan.runtime.spark.failure import evidence
from hintplan.runtime.spark.session import is_remote
from hintplan.runtime.spark.worker_faults import is_late_worker
from hintplan.runtime.storage.files import files_at

_ONE_BATCH: Mapping[str, Any] = {"once": True}
_ATTEMPTS = 3
"""Attempts to start a query whose Python process on a Spark Connect server does not start in time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """The queries of ``plan`` with their ``writers``, for a checkpoint in the state ``before``; none has started.

    If ``then`` is given, ``plan`` only repeats the begun batches of the queries ``repeated``, before ``then`` starts.
    """

    plan: Plan
    before: Before
    building: Building
    continued: Continuation
    writers: Mapping[str, DataStreamWriter]
    repeated: frozenset[str] = frozenset()
    then: Plan | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Everything that starts the queries of a run, except its plan.

    ``location`` is the checkpoint, or a temporary directory without one. ``trigger`` has the arguments of Spark's
    trigger. The other fields are as in :func:`hintplan.runtime.run.execute.execute`.
    """

    spark: SparkSession
    checkpoint: str | None
    location: str
    lookups: RequestRun
    objects: ProgramObjects
    trigger: Mapping[str, Any]
    drain: bool = False
    keep_state: Collection[str] = ()
    results: str | None = None
    counts: dict[tuple[str, int], int] = field(default_factory=dict)

    def planned(self, plan: Plan, before: Before | None = None) -> Planned:
        """Build the queries of ``plan``, or of the plan that first repeats the batches that have begun."""
        before = before or before_run(plan, self.spark, self.checkpoint, self.keep_state)
        begun = _begun(before)
        written = recorded_plan(before.recorded) if begun and before.recorded is not None else None
        if written is not None and (repeating := plan_of_begun_batch(written, plan)) != plan:
            before = before_run(repeating, self.spark, self.checkpoint, self.keep_state)
            return self._built(repeating, before, repeated=begun, then=plan)
        return self._built(plan, before)

    def record(self) -> CheckpointRecord | None:
        """Return the record of the checkpoint."""
        return None if self.checkpoint is None else read_record(self.spark, self.checkpoint)

    def refuse_unbuildable(self, plan: Plan) -> None:
        """Raise RunError if the queries of ``plan`` cannot be built; the run may be at work."""
        recorded = self.record()
        if recorded is not None:
            continued = continuation(
                recorded, plan, share=not is_remote(self.spark), partitions=recorded.partitions, keep=self.keep_state
            )
            # The files of a running checkpoint change all the time, and the queries are not going to start.
            still = Before(recorded=recorded, there=NO_FILES, partitions=recorded.partitions, continuation=continued)
            self._built(plan, still)

    def continue_with(self, execution: Execution, plan: Plan) -> None:
        """Start the queries of ``plan`` in a run whose queries have all ended."""
        planned = self.planned(plan)
        self.begin(execution, planned, planned.building.unmoved_files())

    def begin(self, execution: Execution, planned: Planned, there: CheckpointFiles) -> None:
        """Start the queries of ``planned``, and give them to ``execution``; ``there`` are the checkpoint's files."""
        before, continued, running = planned.before, planned.continued, planned.continued.queries
        lock, spark = execution.lock, self.spark
        execution.sinks = {query.id: query.sinks for query in running}
        execution.shared = frozenset(query.id for query in running if query.is_shared)
        execution.scans = {record.id: record.readers for record in continued.records}
        execution.time_sources = watermark_sources(planned.plan)
        if execution.followed is not None:
            execution.followed.begin_plan(planned.plan)
        if before.recorded is not None:
            planned.building.begin_marks(there)
        since = {query.id: before.batches(query.id, there)[1] + 1 for query in running}
        record = self._recorded(planned, there, since)
        earlier = drained_queries(before.there, before.recorded, running)
        for name, writer in planned.writers.items():
            # The last batch of a query that drains is started below.
            if name in earlier.drained | earlier.begun or (planned.then and name not in planned.repeated):
                continue
            if lock is not None:
                lock.require()
            query = start_query(name, writer.trigger(**(self.trigger if planned.then is None else _ONE_BATCH)), self)
            execution.queries = {**execution.queries, name: query}  # other threads read the old one
        if lock is not None:
            lock.stops(spark, execution.queries.values())
        if self.checkpoint is not None and record is not None:
            if (begun := record_of_begun(record)) is not None:
                write_record(spark, self.checkpoint, begun)
            if not is_remote(spark) and any(old_logs(there, record)):
                end_generations(files_at(reached_by_workers(spark, self.location)), there, record)
            execution.record_writer = RecordWriter(spark=spark, checkpoint=self.checkpoint, record=begun or record)
        if planned.then is not None:
            execution.following = partial(self.continue_with, execution, planned.then)
            return
        if execution.edits is not None:
            execution.edits.begun(planned.plan, since)
        timed = queries_by_time(planned.plan, running)
        if self.drain and timed:
            ids = {*timed} - earlier.drained
            logs = {record.id: record.logs for record in continued.records if record.id in ids}
            execution.drain = partial(self._drained, planned.building, logs, lock)

    def _built(
        self, plan: Plan, before: Before, *, repeated: frozenset[str] = frozenset(), then: Plan | None = None
    ) -> Planned:
        building = Building(
            plan=plan,
            spark=self.spark,
            before=before,
            location=self.location,
            lookups=self.lookups,
            objects=self.objects,
        )
        continued, writers = building.writers(self.results, self.counts)
        return Planned(
            plan=plan,
            before=before,
            building=building,
            continued=continued,
            writers=writers,
            repeated=repeated,
            then=then,
        )

    def _recorded(self, planned: Planned, there: CheckpointFiles, since: Mapping[str, int]) -> CheckpointRecord | None:
        """Write the new record and the logs of the generations that it names, and return the record."""
        if self.checkpoint is None:
            return None
        spark, before, recorded = self.spark, planned.before, planned.before.recorded
        record = record_after(
            planned.continued,
            recorded,
            planned.plan,
            partitions=before.partitions,
            spark=spark.version,
            reached=since,
        )
        if record is None:
            return recorded
        recorded_queries = {query.id: query for query in (recorded.queries if recorded else ())}
        for query in record.queries:
            old = recorded_queries.get(query.id)
            if old is not None and old.logs != query.logs:
                begin_generation(files_at(reached_by_workers(spark, self.checkpoint)), there, old, query)
        write_record(spark, self.checkpoint, record)
        return record

    def _drained(self, building: Building, logs: Mapping[str, str], lock: RunLock | None) -> dict[str, StreamingQuery]:
        """Start the last batch of the queries with these ``logs``, by id, which closes all windows.

        It reads what has come since, because a batch after it would find all rows too late.
        """
        there = checkpoint_files(self.spark, self.location)
        if lock is not None:
            lock.require()
        endings = write_endings(self.spark, self.location, there, logs)
        _, writers = building.writers(self.results, self.counts, endings=endings)
        building.begin_marks(there)
        if lock is not None:
            lock.require()
        queries = {name: start_query(name, writers[name].trigger(once=True), self) for name in logs}
        if lock is not None:
            lock.stops(self.spark, queries.values())
        return queries


def _begun(before: Before) -> frozenset[str]:
    """Return the queries with a batch that has begun and not ended, unless the batch drains the checkpoint."""
    queries = before.continuation.queries
    unended = {query.id for query in queries for began, ended in [before.batches(query.id)] if began > ended}
    if not unended:
        return frozenset()
    return frozenset(unended - drained_queries(before.there, before.recorded, queries).begun)


def start_query(name: str, writer: DataStreamWriter, start: Start) -> StreamingQuery:
    """Start the query of the sink ``name``, and return Spark's handle; RunError if Spark refuses it.

    A start that fails because Python was late on a busy Spark Connect server has begun nothing, and is tried again.
    """
    attempts = 0
    while True:
        attempts += 1
        try:
            return writer.start()
        except (Py4JError, PySparkException) as error:
            text = str(error)
            if "CONCURRENT_QUERY" in text or "another query with same id is already active" in text:
                raise RunError(
                    f"the query of {name} with checkpoint {start.location} is already running on this Spark",
                    hint="a checkpoint has one run at a time: stop the other one. If nobody controls it, "
                    "hintplan run --take-over stops it and continues",
                ) from error
            if attempts == _ATTEMPTS or not is_late_worker(evidence(error)):
                raise failure_of_spark(f"the query of {name} cannot be started", error) from error
