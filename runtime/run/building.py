"""The queries of a plan as streams: built for a checkpoint as it is before a run, and for no other.

What is read of the checkpoint decides how they are built: which states go on, in which folders, with which pins. So
whoever starts them asks first, when nobody else can use the checkpoint any more, whether it is still the same.

    building = Building(plan=plan, spark=spark, before=before_run(plan, spark, where), location=where, lookups=lookups)
    found, writers = building.writers(None, {})
    there = building.unmoved_files()

Refuses what it finds, and starts and writes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from hintplan.plans.analysis.streaming_queries import Query, tops
from hintplan.plans.checkpoint.continuation import Continuation, continuation, with_orders
from hintplan.plans.checkpoint.record import CheckpointRecord
from hintplan.plans.errors import RunError
from hintplan.plans.model.config import PARALLELISM
from hintplan.plans.model.plan import Plan
from hintplan.runtime.build.edges import edges_of
from hintplan.runtime.build.stream import build
from hintplan.runtime.checkpoint.files import NO_FILES, CheckpointFiles, files_of, reached_by_workers
from hintplan.runtime.checkpoint.foreign import refuse_foreign
from hintplan.runtime.checkpoint.parts import batches_kept, last_batches, refuse_damaged
from hintplan.runtime.checkpoint.record import read_record
from hintplan.runtime.connectors.given import NOTHING, Given
from hintplan.runtime.engine.this_task import batch_key
from hintplan.runtime.lookup.plan import LookupRun
from hintplan.runtime.run.marking import SinkMarks, sink_marks
from hintplan.runtime.run.multi_sink import RowCounts
from hintplan.runtime.run.places import pins_of, places_of, run_number
from hintplan.runtime.run.writers import query_writer
from hintplan.runtime.spark.session import default_partitions, is_remote
from hintplan.runtime.spark.source_order import source_order
from hintplan.runtime.storage.pins import PinPlace


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """What is ``there`` of a checkpoint before a run, what was ``recorded`` of it, and how the plan continues it."""

    recorded: CheckpointRecord | None
    there: CheckpointFiles
    partitions: int
    found: Continuation

    def batches(self, query: str, there: CheckpointFiles | None = None) -> tuple[int, int]:
        """The last batches of ``query`` that began and ended, in what is ``there`` now or was."""
        return last_batches(there or self.there, _logs(self.recorded, query))


def _logs(recorded: CheckpointRecord | None, query: str) -> str:
    """The folder with the logs of ``query``."""
    return next((each.logs for each in (recorded.queries if recorded else ()) if each.id == query), query)


def before_run(plan: Plan, spark: SparkSession, checkpoint: str | None, keep: Collection[str] = ()) -> Before:
    """What ``checkpoint`` is before a run of ``plan``, which may find it new; RunError if its record cannot be read."""
    recorded = None if checkpoint is None else read_record(spark, checkpoint)
    asked = int(plan.config[PARALLELISM]) if PARALLELISM in plan.config else None
    partitions = asked or (recorded.partitions if recorded else default_partitions(spark))
    there = NO_FILES if checkpoint is None else files_of(spark, checkpoint)
    if checkpoint is not None and recorded is None:
        refuse_foreign(checkpoint, (*there.sizes, *there.folders, *there.links))
    reached = {query.id: last_batches(there, query.logs)[1] + 1 for query in recorded.queries} if recorded else {}
    found = continuation(recorded, plan, share=not is_remote(spark), partitions=partitions, reached=reached, keep=keep)
    return Before(recorded=recorded, there=there, partitions=partitions, found=found)


@dataclass(slots=True, kw_only=True)
class Building:
    """Makes the queries of a plan into streams, for a checkpoint as it was ``before``."""

    plan: Plan
    spark: SparkSession
    before: Before
    location: str
    lookups: LookupRun
    given: Given = NOTHING
    _pins: dict[str, Mapping[str, PinPlace]] = field(default_factory=dict)
    _marks: dict[str, SinkMarks] = field(default_factory=dict)

    def writers(self, results: str | None, counts: RowCounts) -> tuple[Continuation, dict[str, Any]]:
        """Spark's writer of each query, and how the plan goes on with its sources as Spark has them."""
        found, reached = self.before.found, reached_by_workers(self.spark, self.location)
        run = run_number(self.before.there, int(time.time() * 1000))
        making: dict[str, Callable[[str], Any]] = {}
        for query in found.queries:
            places = places_of(query, found, reached, run=run, batch_key=self._batch_key(query))
            self._pins[query.id] = self._pins_of(query, self.before.there, run)
            pins = self._pins[query.id]
            edges = edges_of(self.plan, self.spark, places=places, lookups=self.lookups, pins=pins, given=self.given)
            rows = build(edges, tops(self.plan, query))
            if not is_remote(self.spark):
                self._marks[query.id] = sink_marks(self.spark, self.location, query.id)
            making[query.id] = partial(
                query_writer, query, edges, rows, results=results, counts=counts, marks=self._marks.get(query.id)
            )
        logs = {record.id: record.logs for record in found.records}
        writers = {name: make(f"{self.location.rstrip('/')}/{logs[name]}") for name, make in making.items()}
        if is_remote(self.spark):
            return found, writers
        orders = {name: source_order(writer._df) for name, writer in writers.items()}
        found = with_orders(found, self.before.recorded, orders)
        for record in found.records:
            if record.id in making and record.logs != logs[record.id]:
                writers[record.id] = making[record.id](f"{self.location.rstrip('/')}/{record.logs}")
        return found, writers

    def unmoved_files(self) -> CheckpointFiles:
        """The files of the checkpoint now; RunError if another run has used it since the writers were made."""
        before, there = self.before, files_of(self.spark, self.location)
        running = before.found.queries
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
        """Have sinks marked from what is ``there``, once nobody else uses the checkpoint and nothing is refused."""
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
        (logs,) = (record.logs for record in self.before.found.records if record.id == query.id)
        return batch_key(f"{self.location.rstrip('/')}/{logs}")
