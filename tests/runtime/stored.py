"""Checkpoints without Spark: a plan's operators on state as files, and the logs that Spark writes.

Watermarks are in these files, too: a batch has its own marks only, and reads the earlier ones.

(query,) = run_on(plan, tmp_path / "checkpoint").values()
query.batch({"orders": [(1, "a")]}, now=60_000)
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from hintplan.plans.analysis.streaming_queries import Query
from hintplan.plans.checkpoint.continuation import continuation, record_after
from hintplan.plans.checkpoint.record import local_record, record_line
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Operator
from hintplan.runtime.builders.event_time import event_times
from hintplan.runtime.checkpoint.files import local_files
from hintplan.runtime.engine.marks import Marks
from hintplan.runtime.engine.process import stored_with
from hintplan.runtime.engine.watermarks import Moved, moved_watermark
from hintplan.runtime.operator import FOREVER, StatefulOperator, Watermarks
from hintplan.runtime.run.places import run_number, state_places
from hintplan.runtime.storage.files import files_at
from hintplan.runtime.storage.partition import PartitionStore, open_partition
from hintplan.runtime.storage.place import Place
from tests.runtime.partitioned import partition_of
from tests.runtime.pipeline import Pipeline

__all__ = ["StoredQuery", "run_on"]


class StoredQuery(Pipeline):
    """One query of a plan, run batch by batch on the states at ``places``."""

    def __init__(self, plan: Plan, query: Query, checkpoint: Path, places: dict[str, Place]) -> None:
        above = {name for sink in query.sinks for name in plan.upstream(sink)}
        super().__init__(replace(plan, operators=tuple(each for each in plan.operators if each.id in above)))
        self.folder = checkpoint / query.id
        self.places = places
        self.event_times = event_times(self.plan)
        self.moved: dict[str, list[Moved]] = {}
        """The watermark of each operator that goes by time, as it moved in the last batch, by partition."""
        self.stored_dues: dict[str, list[int]] = {}
        """The times in manifests at which operators have something to do, after the last batch."""
        self.next = 1 + max((int(path.name) for path in self.folder.glob("commits/*")), default=-1)
        for name in ("offsets", "commits"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        (self.folder / "metadata").write_text('{"id":"a"}')

    def batch(self, rows: Any, now: int = 0, *, ended: Collection[str] = (), committed: bool = True) -> None:
        # Batches have the time of a test, which may stand still; no two of Spark's have the same.
        said = {"batchTimestampMs": now, "conf": {"batch": str(self.next)}}
        (self.folder / "offsets" / str(self.next)).write_text(f"v1\n{json.dumps(said)}\n-\n")
        self.marks, self.moved, self.stored_dues = {}, {}, {}
        super().batch(rows, now, ended=ended)
        self.dues = self.stored_dues
        if committed:
            (self.folder / "commits" / str(self.next)).write_text("v1\n{}\n")
            self.next += 1

    def _moved(self, operator: Operator, now: int) -> Watermarks:
        """Move the stored watermark of an operator by the marks of this batch; all partitions have the same."""
        event_time, partitions = self.event_times[operator.id], range(self.places[operator.id].partitions)
        stores = [self._opened(operator.id, partition) for partition in partitions]
        moved = [moved_watermark(store.watermark, self._marks(operator), event_time, now) for store in stores]
        (watermarks,) = {of_partition.watermarks for of_partition in moved}
        self.moved[operator.id], self.watermarks[operator.id] = moved, watermarks.after
        return watermarks

    def _marks(self, operator: Operator) -> Marks:
        """The marks of this batch, of sources and of the operators below; a source ends with all of its splits."""
        if operator.goes_by_clock:
            return self.event_times[operator.id].ends if self.is_ended else {}
        numbers = {operator.id: number for number, operator in enumerate(self.plan.operators)}
        marks: Marks = {}
        for name, seen in self.marks.items():
            has_ended = FOREVER in seen.highest.values()
            highest = {None: FOREVER} if has_ended else seen.highest
            marks |= {(numbers[name], split): mark for split, mark in highest.items()}
        for name, moved in self.moved.items():
            marks[numbers[name], ""] = moved[0].mark(self.event_times[name].hold)
        return marks

    def _opened(self, name: str, partition: int) -> PartitionStore:
        place = self.places[name]
        return open_partition(files_at(place.root), place, partition, self.next)

    def _process(self, name: str, operator: StatefulOperator, deltas: Sequence[pa.Table | None], now: int) -> pa.Table:
        partitions, found = self.places[name].partitions, []
        for partition in range(partitions):
            mine = [partition_of(table, partition, partitions) for table in deltas]
            store = self._opened(name, partition)
            tables = operator.inherit(store) if store.inherited else store.tables
            result = operator.process(mine, tables, store, now)
            watermark = stored_with(self.moved[name][partition].stored, result) if name in self.moved else None
            store.publish(result.manifest, result.state_rows, result.state_bytes, watermark=watermark)
            if watermark is not None and watermark.due is not None:
                self.stored_dues.setdefault(name, []).append(watermark.due)
            found.append(result.output)
        return pa.concat_tables(found)


def run_on(plan: Plan, checkpoint: Path, *, partitions: int = 2) -> dict[str, StoredQuery]:
    """The queries of ``plan``, by id, as it begins or continues ``checkpoint``; state that it has not is dropped."""
    recorded = local_record(str(checkpoint))
    known = () if recorded is None else recorded.queries
    numbers = {query.id: [int(path.name) for path in (checkpoint / query.id).glob("commits/*")] for query in known}
    reached = {query: max(committed, default=-1) + 1 for query, committed in numbers.items()}
    found = continuation(recorded, plan, partitions=partitions, reached=reached)
    record = record_after(found, recorded, plan, partitions=partitions, spark="4.3.0")
    if record is not None:
        (checkpoint / "hintplan").mkdir(parents=True, exist_ok=True)
        with (checkpoint / "hintplan" / "record.jsonl").open("a") as lines:
            lines.write(record_line(record) + "\n")
    files = local_files(checkpoint)
    number = run_number(files, 1)
    return {
        query.id: StoredQuery(plan, query, checkpoint, state_places(query, found, str(checkpoint), run=number))
        for query in found.queries
    }
