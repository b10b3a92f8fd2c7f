"""A plan whose operators run in several partitions in memory, and whose number of partitions changes between batches.

Rows go to partitions by the leading bits of their hashes, as in a job on Spark. After a change, each partition takes
over the state that its hashes had before. With ``tasks``, the rows of an input come from several tasks, each of which
sums its rows up before they go to partitions, if the operator can.

pipeline = Partitioned(plan, partitions=2)
pipeline.batch({"orders": [(1, "a")]})
pipeline = pipeline.rescaled(5)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hintplan.plans.model.plan import Plan
from hintplan.runtime.engine.process import joined
from hintplan.runtime.operator import InputSpec, StatefulOperator, hash_column
from hintplan.runtime.state.layout import HASH
from hintplan.runtime.state.memory import MemoryStore
from hintplan.runtime.storage.place import bounds, partitions_of
from tests.runtime.pipeline import Pipeline

__all__ = ["Partitioned", "partition_of"]


@dataclass
class Part:
    """The state of an operator in one partition."""

    store: MemoryStore
    manifest: bytes | None
    state_rows: int = 0


class Inherited(MemoryStore):
    """The store of a partition that takes over the state of other partitions."""

    def __init__(self, parts: Sequence[Part], between: tuple[int, int]) -> None:
        super().__init__()
        self.parts, self.bounds = parts, between
        self.manifests = [part.manifest for part in parts if part.manifest is not None]
        begins = [bounds(number, len(parts))[0] for number, part in enumerate(parts) if part.manifest is not None]
        self.is_first_heir = [between[0] <= begin < between[1] for begin in begins]

    def inherit(self, segment: str, part: int, old: str) -> pa.Table:
        low, high = self.bounds
        table = self.read_old(part, old)
        mine = [low <= value < high for value in table[HASH].to_pylist()]
        table = table.filter(pa.array(mine, pa.bool_()))
        self.write(segment, table)
        return table

    def read_old(self, part: int, old: str) -> pa.Table:
        with_state = [each for each in self.parts if each.manifest is not None]
        return with_state[part].store.read(old)


class Partitioned(Pipeline):
    """A pipeline whose stateful operators run in ``partitions`` partitions, on rows from several ``tasks`` or none."""

    def __init__(
        self,
        plan: Plan,
        partitions: int,
        *,
        tasks: int = 0,
        computed: Mapping[str, Callable[[dict], Any]] = MappingProxyType({}),
    ) -> None:
        super().__init__(plan, computed=computed)
        self.partitions, self.tasks = partitions, tasks
        self.parts: dict[str, list[Part]] = {}
        self.old_parts: dict[str, list[Part]] = {}

    def rescaled(self, partitions: int, plan: Plan | None = None) -> Partitioned:
        """A pipeline that continues from this one's state in another number of partitions."""
        other = Partitioned(plan or self.plan, partitions, tasks=self.tasks, computed=self.computed)
        self._hand_over_to(other)
        if partitions == self.partitions:
            other.parts, other.old_parts = dict(self.parts), dict(self.old_parts)
        else:
            other.old_parts = self.old_parts | self.parts
        return other

    def _process(self, name: str, operator: StatefulOperator, deltas: Sequence[pa.Table | None], now: int) -> pa.Table:
        if name not in self.parts:
            self.parts[name] = [self._first(name, operator, number) for number in range(self.partitions)]
        summed = [self._summed(table, spec) for table, spec in zip(deltas, operator.inputs, strict=True)]
        outputs = []
        for number, part in enumerate(self.parts[name]):
            mine = [partition_of(table, number, self.partitions) for table in summed]
            result = operator.process(mine, part.manifest, part.store, now)
            part.manifest, part.state_rows = result.manifest, result.state_rows
            outputs.append(result.output)
        return pa.concat_tables(outputs)

    def _summed(self, table: pa.Table | None, spec: InputSpec) -> pa.Table | None:
        """The rows of an input after the local aggregation of each task."""
        if table is None or spec.presum is None or not self.tasks or len(spec.hashes) > 1:
            return table
        ends = [table.num_rows * task // self.tasks for task in range(self.tasks + 1)]
        parts = [table.slice(start, end - start) for start, end in pairwise(ends) if end > start]
        sums = [spec.presum.sum_up(part) for part in parts]
        return joined([part if each is None else each for part, each in zip(parts, sums, strict=True)], spec.presum)

    def _first(self, name: str, operator: StatefulOperator, number: int) -> Part:
        """The state of a partition before its first batch."""
        if name not in self.old_parts:
            return Part(MemoryStore(), None)
        store = Inherited(self.old_parts[name], bounds(number, self.partitions))
        return Part(store, operator.inherit(store) if store.manifests else None)


def partition_of(table: pa.Table | None, partition: int, partitions: int) -> pa.Table | None:
    """The rows of a delta that go to a partition; None if there are none."""
    if table is None:
        return None
    targets = partitions_of(table[hash_column(0)].to_numpy(), partitions)
    mine = table.filter(pc.equal(pa.array(targets), partition))
    return mine if mine.num_rows else None
