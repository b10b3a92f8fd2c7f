"""A kernel that goes by the watermark, run batch by batch in several partitions in memory.

Rows are summed up by tasks and go to partitions as in a job on Spark. The number of partitions may change between
batches: each partition then takes over the state that its hashes had before.

run = KernelRun(operator, partitions=2)
run.batch([[("a", 1, time)]], after=5000)
run.rescale(5)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa

from hintplan.plans.evidence.ages import Counts
from hintplan.runtime.operator import InputSpec, Result, TimeOperator, Watermarks
from hintplan.runtime.state.memory import MemoryStore
from hintplan.runtime.storage.manifest import added_lateness
from hintplan.runtime.storage.place import bounds
from tests.runtime.changelog import delta, events_of, stable_hash
from tests.runtime.event_time.times import NEVER
from tests.runtime.partitioned import Inherited, Part, partition_of

Row = tuple[Any, ...]


class KernelRun:
    """``operator`` in ``partitions`` partitions, with input from ``tasks`` tasks.

    ``results`` has the result of the last batch in each partition.
    """

    def __init__(
        self,
        operator: TimeOperator,
        partitions: int = 1,
        *,
        tasks: int = 1,
        hasher: Callable[[tuple], int] = stable_hash,
    ) -> None:
        self.operator, self.tasks, self.hasher = operator, tasks, hasher
        self.parts = [Part(MemoryStore(), None) for _ in range(partitions)]
        self.before, self.late, self.results = NEVER, 0, list[Result]()
        self.lateness: tuple[Counts, ...] = ()

    def batch(self, sides: Sequence[Sequence[Row]], after: int, now: int = 0) -> list[Row]:
        """Process a batch with these rows per input, which moves the watermark to ``after``; the rows put out.

        Rows of an input with changes are pairs of a kind and a row.
        """
        marks = Watermarks(self.before, max(self.before, after))
        deltas = [self._delta(spec, rows) for spec, rows in zip(self.operator.inputs, sides, strict=True)]
        self.results = []
        for number, part in enumerate(self.parts):
            mine = [partition_of(table, number, len(self.parts)) for table in deltas]
            result = self.operator.process(mine, part.manifest, part.store, now, marks)
            part.manifest = result.manifest
            assert result.output.schema.equals(self.operator.output)
            self.results.append(result)
        self.before = marks.after
        self.late += sum(result.late_rows for result in self.results)
        for result in self.results:
            self.lateness = added_lateness(self.lateness, result.lateness)
        return [row for result in self.results for _, row in events_of(result.output)]

    def rescale(self, partitions: int) -> None:
        """Continue in another number of partitions."""
        old, self.parts = self.parts, []
        for number in range(partitions):
            store = Inherited(old, bounds(number, partitions))
            self.parts.append(Part(store, self.operator.inherit(store) if store.manifests else None))

    @property
    def state_rows(self) -> int:
        return sum(result.state_rows for result in self.results)

    @property
    def segments(self) -> int:
        return sum(len(part.store.segments) for part in self.parts)

    def _delta(self, spec: InputSpec, rows: Sequence[Row]) -> pa.Table | None:
        ends = [len(rows) * number // self.tasks for number in range(self.tasks + 1)]
        events = rows if spec.changelog else [("+I", row) for row in rows]
        pieces = [delta(spec, events[a:b], self.hasher) for a, b in pairwise(ends)]
        tables = [piece for piece in pieces if piece is not None]
        if spec.presum is None or not tables:
            return pa.concat_tables(tables) if tables else None
        sums = [spec.presum.sum_up(table) for table in tables]
        if all(each is None for each in sums):
            return pa.concat_tables(tables)
        return pa.concat_tables(
            [spec.presum.lift(table) if each is None else each for table, each in zip(tables, sums, strict=True)]
        )
