"""A plan's operators on state in files, which a restart with another plan finds where the checkpoint's record says.

What a Spark job does when it is restarted with another plan, without Spark: which folder belongs to which operator says
:mod:`hintplan.runtime.run.places`, each batch opens and publishes its state as in a job; the sink has what it was given
before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from hintplan.plans.checkpoint.continuation import continuation, record_after
from hintplan.plans.checkpoint.record import CheckpointRecord
from hintplan.plans.model.plan import Plan
from hintplan.runtime.operator import StatefulOperator
from hintplan.runtime.run.places import state_places
from hintplan.runtime.storage.files import files_at
from hintplan.runtime.storage.partition import open_partition
from tests.runtime.pipeline import Pipeline

__all__ = ["Restartable", "of_sink"]


class Restartable(Pipeline):
    """A plan with one sink on a checkpoint in ``folder``, on which ``committed`` batches have run."""

    def __init__(self, plan: Plan, folder: Path, record: CheckpointRecord | None = None, committed: int = 0) -> None:
        super().__init__(plan)
        found = continuation(record, plan)
        self._folder = folder
        self._record = record_after(found, record, plan, partitions=1, spark="4.3.0") or record
        self._committed = committed
        (query,) = found.queries
        self._places = state_places(query, found, str(folder), run=committed + 1)

    def restarted(self, plan: Plan, result: Counter) -> Restartable:
        """Another plan on the same checkpoint, into a sink that holds ``result``."""
        other = Restartable(plan, self._folder, self._record, self._committed)
        other.result = Counter(result)
        return other

    def batch(self, rows: Mapping[str, Sequence[tuple]], now: int = 0) -> None:
        super().batch(rows, now)
        self._committed += 1

    def _process(self, name: str, operator: StatefulOperator, deltas: Sequence[pa.Table | None], now: int) -> pa.Table:
        place = self._places[name]
        store = open_partition(files_at(place.root), place, 0, self._committed)
        result = operator.process(deltas, store.tables, store, now)
        store.publish(result.manifest, result.state_rows, result.state_bytes)
        return result.output


def of_sink(plan: Plan, sink: str) -> Plan:
    """The part of ``plan`` that leads to one sink."""
    wanted = plan.upstream(sink)
    return replace(plan, operators=tuple(operator for operator in plan.operators if operator.id in wanted))
