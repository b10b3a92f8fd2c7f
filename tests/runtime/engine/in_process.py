"""The engine without Spark: rows are packed, exchanged and processed in this process, on real files of state.

stages = Stages(tmp_path, partitions=2)
stages.batch(0, lambda run: run.operator("count", operator, event_time, [run.packed(...)]))
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

import pyarrow as pa

from hintplan.runtime.engine import process
from hintplan.runtime.engine.buckets import bucket_ids
from hintplan.runtime.engine.marks import Marking
from hintplan.runtime.engine.pack import Packing, Ticking
from hintplan.runtime.engine.process import NOW, Process
from hintplan.runtime.engine.rows import Read, Report
from hintplan.runtime.engine.this_task import ThisTask
from hintplan.runtime.engine.watermarks import EventTime
from hintplan.runtime.operator import StatefulOperator, TimeOperator
from hintplan.runtime.storage.place import Place, Scale

Task = tuple[list[pa.RecordBatch], Read]
"""The batches that a task reads, and how it makes rows of them."""


@dataclass(slots=True)
class Stages:
    """The state of operators in ``root``, and the reports of their partitions in the last batch, by operator."""

    root: Path
    partitions: int = 1
    run: int = 1
    scales: tuple[Scale, ...] = ()
    reports: dict[str, list[Report]] = field(default_factory=dict)

    def source(self, rows: pa.Table, number: int, *, split: str | None = None, tasks: int = 1) -> list[Task]:
        """Tasks that read ``rows`` of source ``number``, whose rowtime and base is ``ts``, in ms."""
        marking = Marking(operator="watermark", column="ts", base=_micros, source=number, split=split)

        def read(batches: list[pa.RecordBatch], report: Report) -> Iterator[pa.Table]:
            for batch in batches:
                yield marking(pa.Table.from_batches([batch]), report.marks)

        size = -(-rows.num_rows // tasks)
        parts = [rows.slice(task * size, size) for task in range(tasks)]
        return [(part.combine_chunks().to_batches(), read) for part in parts]

    def operator(
        self,
        name: str,
        batch: int,
        operator: TimeOperator | StatefulOperator,
        event_time: EventTime | None,
        inputs: Sequence[Sequence[Task]],
        *,
        now: int = 0,
        ending: Sequence[int] = (),
    ) -> list[Task]:
        """The tasks that read the output of ``operator`` in ``batch``; the sources ``ending`` have ended."""
        buckets = bucket_ids(self.partitions)
        packed: list[pa.RecordBatch] = []
        number = 0
        for side, tasks in enumerate(inputs):
            spec = operator.inputs[side]
            for batches, read in tasks:
                packing = Packing(
                    side=side, schema=spec.columns, route=spec.hashes[0], buckets=buckets, tables=read, marks=True
                )
                with mock.patch("hintplan.runtime.engine.pack.TaskContext") as context:
                    context.get.return_value.partitionId.return_value = number
                    packed += packing(batches)
                number += 1
        if ending:
            packed += Ticking(buckets, {(source, None): (1 << 63) - 1 for source in ending})([])
        scales = (*self.scales, Scale(self.partitions)) if not self.scales else self.scales
        place = Place(root=str(self.root / name), operator=name, run=self.run, scales=scales, begun=False)
        (self.root / name).mkdir(parents=True, exist_ok=True)
        process_partition = Process(operator=operator, place=place, buckets=buckets, event_time=event_time)
        self.reports[name] = []

        def read_output(batches: list[pa.RecordBatch], report: Report) -> Iterator[pa.Table]:
            with mock.patch.object(process, "this_task", return_value=ThisTask(batch, 0)):
                yield from process_partition(batches, report)
            self.reports[name].append(report)

        return [(_of_bucket(packed, bucket, now), read_output) for bucket in buckets]

    def output(self, tasks: Sequence[Task]) -> list[tuple[int, ...]]:
        """The rows of ``tasks``, sorted."""
        tables = [table for batches, read in tasks for table in read(batches, Report())]
        return sorted(row for table in tables for row in zip(*(c.to_pylist() for c in table.columns), strict=True))


def _micros(rows: pa.Table) -> pa.Array:
    return pa.compute.multiply(rows["ts"], 1000)


def _of_bucket(packed: Sequence[pa.RecordBatch], bucket: int, now: int) -> list[pa.RecordBatch]:
    found = []
    for batch in packed:
        rows = batch.filter(pa.compute.equal(batch["bucket"], bucket))
        if rows.num_rows:
            found.append(rows.append_column(NOW, pa.array([str(now)] * rows.num_rows)))
    return found
