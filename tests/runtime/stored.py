"""Checkpoints without Spark: a plan's operators on state as files, with what Spark writes beside it.

(query,) = run_on(plan, tmp_path / "checkpoint").values()
query.batch({"orders": [(1, "a")]}, now=60_000)
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hintplan.plans.analysis.streaming_queries import Query
from hintplan.plans.checkpoint.continuation import continuation, record_after
from hintplan.plans.checkpoint.record import local_record, record_line
from hintplan.plans.model.plan import Plan
from hintplan.runtime.checkpoint.files import local_files
from hintplan.runtime.operator import StatefulOperator, hash_column
from hintplan.runtime.run.places import run_number, state_places
from hintplan.runtime.storage.files import files_at
from hintplan.runtime.storage.partition import open_partition
from hintplan.runtime.storage.place import Place, partitions_of
from tests.runtime.pipeline import Pipeline

__all__ = ["StoredQuery", "run_on"]


class StoredQuery(Pipeline):
    """One query of a plan, run batch by batch on the states at ``places``."""

    def __init__(self, plan: Plan, query: Query, checkpoint: Path, places: dict[str, Place]) -> None:
        above = {name for sink in query.sinks for name in plan.upstream(sink)}
        super().__init__(replace(plan, operators=tuple(each for each in plan.operators if each.id in above)))
        self.folder = checkpoint / query.id
        self.places = places
        self.next = 1 + max((int(path.name) for path in self.folder.glob("commits/*")), default=-1)
        for name in ("offsets", "commits"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        (self.folder / "metadata").write_text('{"id":"a"}')

    def batch(self, rows: Any, now: int = 0, *, committed: bool = True) -> None:
        # Batches have the time of a test, which may stand still; no two of Spark's have the same.
        said = {"batchTimestampMs": now, "conf": {"batch": str(self.next)}}
        (self.folder / "offsets" / str(self.next)).write_text(f"v1\n{json.dumps(said)}\n-\n")
        super().batch(rows, now)
        if committed:
            (self.folder / "commits" / str(self.next)).write_text("v1\n{}\n")
            self.next += 1

    def _process(self, name: str, operator: StatefulOperator, deltas: Sequence[pa.Table | None], now: int) -> pa.Table:
        place, found = self.places[name], []
        for partition in range(place.partitions):
            mine = [_of_partition(table, partition, place.partitions) for table in deltas]
            store = open_partition(files_at(place.root), place, partition, self.next)
            tables = operator.inherit(store) if store.inherited else store.tables
            result = operator.process(mine, tables, store, now)
            store.publish(result.manifest, result.state_rows, result.state_bytes)
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


def _of_partition(table: pa.Table | None, partition: int, partitions: int) -> pa.Table | None:
    if table is None:
        return None
    targets = partitions_of(table[hash_column(0)].to_numpy(), partitions)
    found = table.filter(pc.equal(pa.array(targets), partition))
    return found if found.num_rows else None
