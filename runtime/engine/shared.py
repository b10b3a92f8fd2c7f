"""Rows that several operators of a query read: packed once, behind one exchange, so that Spark makes them once a batch.

Spark computes what stands below two exchanges that are equal only once. So the rows go as blobs through an exchange of
their own, and each reader unpacks them in Python: what it chooses there cannot be pushed below the exchange, which
would make it another one. Which partition a blob goes to does not matter; the rows of a task stay together, in order.

What leaves a query for several sinks goes as blobs, too: of each operator above them as a branch of one frame. Of
rows that are to be dropped, only how many there are: what is made of them is made where the operator runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from types import MappingProxyType

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hintplan.runtime.engine.arrow_rows import ArrowRows, Metrics, Read, Step
from hintplan.runtime.engine.blobs import blob_column, chunks, from_blob
from hintplan.runtime.engine.buckets import bucket_ids
from hintplan.runtime.engine.named import named
from hintplan.runtime.engine.pack import as_it_is, gather
from hintplan.runtime.spark.map_in_arrow import map_in_arrow
from hintplan.runtime.spark.names import quoted
from hintplan.runtime.worker.metered import METRICS_COLUMN

_DDL = f"bucket int, task int, seq int, blob binary, counts map<string, bigint>, {METRICS_COLUMN} array<bigint>"
_PACKED = pa.schema(
    [
        ("bucket", pa.int32()),
        ("task", pa.int32()),
        ("seq", pa.int32()),
        ("blob", pa.binary()),
        ("counts", pa.map_(pa.string(), pa.int64())),
        (METRICS_COLUMN, pa.list_(pa.int64())),
    ]
)


def shared(rows: ArrowRows | DataFrame, schema: pa.Schema, partitions: int, name: str) -> ArrowRows:
    """``rows`` with ``schema``, of the operator ``name``, for several readers; what they count is observed once."""
    frame = _packed(rows, schema, bucket_ids(partitions), name, reader=f"{name}/shared").drop("counts")
    return ArrowRows(frame=frame.repartition(partitions, "bucket"), read=unpacked, schema=schema)


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """What leaves a query at the operator ``top``, whose ``rows`` have ``schema``.

    They are in the frame if they are ``kept``; of what the steps in ``counted`` make of them, only the number is.
    """

    top: str
    rows: ArrowRows | DataFrame
    schema: pa.Schema
    kept: bool
    counted: Mapping[str, Sequence[Step]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrived:
    """What has come to the driver of a batch: the rows of branches that have few, and what was counted, by its name."""

    tables: Mapping[int, pa.Table] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)


def branches(found: Sequence[Branch]) -> DataFrame:
    """What leaves a query, in one frame, to be taken apart again: each is known by its place in ``found``."""
    packed = [
        _packed(each.rows, each.schema, (number,), each.top, kept=each.kept, counted=each.counted)
        for number, each in enumerate(found)
    ]
    return reduce(DataFrame.union, packed)


def of_branch(frame: DataFrame, branch: int, schema: pa.Schema) -> ArrowRows:
    """The rows with ``schema`` of what :func:`branches` was given as number ``branch``."""
    rows = frame.where((F.col("bucket") == branch) & F.col("blob").isNotNull())
    return ArrowRows(frame=rows, read=unpacked, schema=schema)


def arrived(frame: DataFrame, schemas: Mapping[int, pa.Schema], most: int) -> Arrived:
    """The counts of all branches, and the rows of those in ``schemas`` that have at most ``most`` bytes, all together.

    The sizes of all blobs are asked first, which computes them; a ``frame`` with blobs is one that Spark keeps, and has
    them from then on.
    """
    sizes = frame.select("bucket", F.length("blob").alias("size"), "counts").toArrow()
    counts: Counter[str] = Counter()
    for found in sizes["counts"].to_pylist():
        counts.update(dict(found or ()))
    return Arrived(tables=_few_rows(frame, sizes, schemas, most), counts=counts)


def _few_rows(frame: DataFrame, sizes: pa.Table, schemas: Mapping[int, pa.Schema], most: int) -> Mapping[int, pa.Table]:
    left = most
    few: list[int] = []
    for branch in schemas:
        size = pc.sum(sizes.filter(pc.equal(sizes["bucket"], branch))["size"]).as_py() or 0
        if size <= left:
            left, few = left - size, [*few, branch]
    if not few:
        return {}
    wanted = frame.where(F.col("bucket").isin(few) & F.col("blob").isNotNull())
    batches = wanted.select("bucket", "task", "seq", "blob").toArrow().to_batches()
    found = {branch: [batch.filter(pc.equal(batch["bucket"], branch)) for batch in batches] for branch in few}
    return {
        branch: pa.concat_tables([schemas[branch].empty_table(), *unpacked(rows, [])]) for branch, rows in found.items()
    }


def _packed(
    rows: ArrowRows | DataFrame,
    schema: pa.Schema,
    buckets: Sequence[int],
    name: str,
    *,
    reader: str = "",
    kept: bool = True,
    counted: Mapping[str, Sequence[Step]] = MappingProxyType({}),
) -> DataFrame:
    if not isinstance(rows, ArrowRows):
        rows = ArrowRows(frame=rows.select(*map(quoted, schema.names)), read=as_it_is, schema=schema)
    packing = _Packing(tables=rows.tables(), schema=schema, buckets=buckets, kept=kept, counted=dict(counted))
    packed = map_in_arrow(rows.frame, named(packing, name), _DDL)
    has_data = F.col("blob").isNotNull() | F.col("counts").isNotNull()
    return rows.observe(packed, reader or name).where(has_data).drop(METRICS_COLUMN)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Packing:
    """Packs the rows that ``tables`` makes of a task's batches, if they are ``kept``; the last row has the counts."""

    tables: Read
    schema: pa.Schema
    buckets: Sequence[int]
    kept: bool
    counted: Mapping[str, Sequence[Step]]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = TaskContext.get()
        number = 0 if task is None else task.partitionId()
        bucket = self.buckets[number % len(self.buckets)]
        metrics: Metrics = []
        sequence = 0
        counts = dict.fromkeys(self.counted, 0)
        for found in gather(self.tables(batches, metrics)):
            table = found.select(self.schema.names).cast(self.schema)
            for name, steps in self.counted.items():
                counts[name] += reduce(lambda rows, step: step(rows), steps, table).num_rows
            for chunk in chunks(table) if self.kept else ():
                yield _row(bucket, number, sequence, blob=blob_column([chunk]))
                sequence += 1
        if metrics or counts:
            yield _row(bucket, number, sequence, counts=counts or None, metrics=metrics or None)


def _row(
    bucket: int,
    task: int,
    sequence: int,
    *,
    blob: pa.Array | None = None,
    counts: Mapping[str, int] | None = None,
    metrics: Metrics | None = None,
) -> pa.RecordBatch:
    columns = [
        pa.array([bucket], pa.int32()),
        pa.array([task], pa.int32()),
        pa.array([sequence], pa.int32()),
        pa.nulls(1, pa.binary()) if blob is None else blob,
        pa.array([counts and list(counts.items())], pa.map_(pa.string(), pa.int64())),
        pa.array([metrics], pa.list_(pa.int64())),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_PACKED)


def unpacked(batches: Iterable[pa.RecordBatch], metrics: Metrics) -> Iterator[pa.Table]:
    """The rows of a task, those of each task that packed them in their order; nothing is counted again."""
    found = [
        (task, sequence, batch["blob"][row].as_buffer())
        for batch in batches
        for row, (task, sequence) in enumerate(zip(batch["task"].to_pylist(), batch["seq"].to_pylist(), strict=True))
    ]
    for _, _, blob in sorted(found, key=lambda row: row[:2]):
        yield from_blob(blob)
