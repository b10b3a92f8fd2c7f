"""Builds the streaming queries of a plan for the current state of a checkpoint.

The checkpoint determines how queries are built: which states carry over, in which folders, and with which pins. Before
a caller starts the queries, it locks the checkpoint and checks that nothing has changed.

    building = Building(plan=plan, spark=spark, before=before_run(plan, spark, where), location=where, lookups=lookups)
    continued, writers = building.writers(None, {})
    there = building.unmoved_files()

This module refuses invalid checkpoints. It starts and writes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from pyspark.sql import SparkSession

from hintplan.plans.analysis.scan_readers import IN_ARROW, below_state, scan_readers
from hintplan.plans.analysis.streaming_queries import Query, tops
from hintplan.plans.checkpoint.continuation import Continuation, continuation, with_orders
from hintplan.plans.checkpoint.record import CheckpointRecord
from hintplan.plans.errors import RunError
from hintplan.plans.model.config import PARALLELISM
from hintplan.plans.model.plan import Plan
from hintplan.runtime.builders.backend import SparkBackend
from hintplan.runtime.builders.edges import edges_of
from hintplan.runtime.builders.stream import build_stream
from hintplan.runtime.checkpoint.files import NO_FILES, CheckpointFiles, checkpoint_files, reached_by_workers
from hintplan.runtime.checkpoint.foreign import refuse_foreign
from hintplan.runtime.checkpoint.parts import batches_kept, last_batches, refuse_damaged
from hintplan.runtime.checkpoint.record import read_record
from hintplan.runtime.connectors.program_objects import NO_OBJECTS, ProgramObjects
from hintplan.runtime.engine.this_task import batch_key
from hintplan.runtime.requests.request import RequestRun
from hintplan.runtime.run.marking import SinkMarks, sink_marks
from hintplan.runtime.run.multi_sink import RowCounts
from hintplan.runtime.run.places import pins_of, run_number, state_places
from hintplan.runtime.run.writers import query_writer
from hintplan.runtime.spark.session import default_partitions, is_remote
from hintplan.runtime.spark.source_order import source_order
from hintplan.runtime.storage.pins import PinPlace


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """The state of a checkpoint before a run.

    ``there`` are its files, ``recorded`` is its record, and ``continuation`` is how the plan continues it.
    """

    recorded: CheckpointRecord | None
    there: CheckpointFiles
    partitions: int
    continuation: Continuation

    def batches(self, query: str, there: CheckpointFiles | None = None) -> tuple[int, int]:
        """Return the last batches of ``query`` that began and that ended, in ``there`` or before the run."""
        return last_batches(there or self.there, _logs(self.recorded, query))


def _logs(recorded: CheckpointRecord | None, query: str) -> str:
    """Return the folder with the logs of ``query``."""
    return next((record.logs for record in (recorded.queries if recorded else ()) if record.id == query), query)


def before_run(plan: Plan, spark: SparkSession, checkpoint: str | None, keep: Collection[str] = ()) -> Before:
    """Return the state of ``checkpoint`` before a run of ``plan``; RunError if its record cannot be read.

    The checkpoint may be new.
    """
    recorded = None if checkpoint is None else read_record(spark, checkpoint)
    configured = int(plan.config[PARALLELISM]) if PARALLELISM in plan.config else None
    partitions = configured or (recorded.partitions if recorded else default_partitions(spark))
    there = NO_FILES if checkpoint is None else checkpoint_files(spark, checkpoint)
    if checkpoint is not None and recorded is None:
        refuse_foreign(checkpoint, (*there.sizes, *there.folders, *there.links))
    reached = {query.id: last_batches(there, query.logs)[1] + 1 for query in recorded.queries} if recorded else {}
    continued = continuation(
        recorded, plan, share=not is_remote(spark), partitions=partitions, reached=reached, keep=keep
    )
    return Before(recorded=recorded, there=there, partitions=partitions, continuation=continued)


def _notes_on_readers(plan: Plan, running: Sequence[Query], backends: Mapping[str, SparkBackend]) -> Iterator[str]:
    """Yield a note for each scan below an operator with state that Spark reads for a reason that the plan lacks."""
    readers = scan_readers(plan)
    reasons: dict[str, str] = {}
    for query in running:
        upstream = {*plan.upstream(*tops(plan, query))}
        below = below_state([operator for operator in plan.operators if operator.id in upstream])
        reasons |= {scan: reason for scan, reason in backends[query.id].spark_reads.items() if scan in below}
    for scan, reason in sorted(reasons.items()):
        if readers.get(scan, "").startswith(IN_ARROW):
            yield f"{scan} is read by Spark: {reason}"


@dataclass(slots=True, kw_only=True)
class Building:
    """Builds the queries of a plan as streams, for a checkpoint in the state ``before``."""

    plan: Plan
    spark: SparkSession
    before: Before
    location: str
    lookups: RequestRun
    objects: ProgramObjects = NO_OBJECTS
    _pins: dict[str, Mapping[str, PinPlace]] = field(default_factory=dict)
    _marks: dict[str, SinkMarks] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    """Notes to print, on scans that Spark reads for a reason that the plan does not show."""

    def writers(
        self, results: str | None, counts: RowCounts, *, endings: Mapping[str, str] = MappingProxyType({})
    ) -> tuple[Continuation, dict[str, Any]]:
        """Return how the plan continues with the source order of Spark's queries, and Spark's writer of each query.

        The next batch of a query with a file in ``endings`` closes all windows.
        """
        continued, reached = self.before.continuation, reached_by_workers(self.spark, self.location)
        run = run_number(self.before.there, int(time.time() * 1000))
        making: dict[str, Callable[[str], Any]] = {}
        timers = {record.id: record.timers for record in continued.records}
        backends: dict[str, SparkBackend] = {}
        for query in continued.queries:
            places = state_places(query, continued, reached, run=run, batch_key=self._batch_key(query))
            self._pins[query.id] = self._pins_of(query, self.before.there, run)
            pins = self._pins[query.id]
            backend = SparkBackend(session=self.spark, ending=endings.get(query.id))
            edges = edges_of(
                self.plan,
                backend,
                places=places,
                lookups=self.lookups,
                pins=pins,
                objects=self.objects,
            )
            edges = replace(edges, waking=frozenset(timers[query.id]))
            rows = build_stream(edges, tops(self.plan, query))
            if not is_remote(self.spark):
                self._marks[query.id] = sink_marks(self.spark, self.location, query.id)
            backends[query.id] = backend
            making[query.id] = partial(
                query_writer, query, edges, rows, results=results, counts=counts, marks=self._marks.get(query.id)
            )
        logs = {record.id: record.logs for record in continued.records}
        writers = {name: make(f"{self.location.rstrip('/')}/{logs[name]}") for name, make in making.items()}
        self.notes = [*_notes_on_readers(self.plan, continued.queries, backends)]
        if is_remote(self.spark):
            return continued, writers
        orders = {name: source_order(writer._df) for name, writer in writers.items()}
        continued = with_orders(continued, self.before.recorded, orders)
        for record in continued.records:
            if record.id in making and record.logs != logs[record.id]:
                writers[record.id] = making[record.id](f"{self.location.rstrip('/')}/{record.logs}")
        return continued, writers

    def unmoved_files(self) -> CheckpointFiles:
        """Return the current files of the checkpoint; RunError if another run has used it in the meantime."""
        before, there = self.before, checkpoint_files(self.spark, self.location)
        running = before.continuation.queries
        scaled = before.recorded is not None and before.recorded.partitions != before.partitions
        moved = scaled and any(before.batches(query.id) != before.batches(query.id, there) for query in running)
        moved |= any(
            self._pins_of(query, there, next((pin.run for pin in pins.values()), 0)) != pins
            for query in running
            if (pins := self._pins[query.id])
        )
        if moved or read_record(self.spark, self.location) != before.recorded:
            raise RunError(
                f"another run has used checkpoint {self.location} while this one was starting", hint="start it again"
            )
        refuse_damaged(there, before.recorded, self.location, kept=batches_kept(self.spark))
        return there

    def begin_marks(self, there: CheckpointFiles) -> None:
        """Load the sink marks from ``there``, once the checkpoint is locked and accepted."""
        for query, marks in self._marks.items():
            marks.begin(there, query, max(self.before.batches(query, there)))

    def _pins_of(self, query: Query, there: CheckpointFiles, run: int) -> dict[str, PinPlace]:
        reached = reached_by_workers(self.spark, self.location)
        cores = "" if is_remote(self.spark) else f" of {default_partitions(self.spark)}"
        division, batches = f"{self.before.partitions}{cores}", self.before.batches(query.id, there)
        return pins_of(
            query, self.plan, there, reached, run=run, division=division, batches=batches,
            batch_key=self._batch_key(query),
        )  # fmt: skip

    def _batch_key(self, query: Query) -> str:
        (logs,) = (record.logs for record in self.before.continuation.records if record.id == query.id)
        return batch_key(f"{self.location.rstrip('/')}/{logs}")
