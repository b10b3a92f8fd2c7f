"""Rows that several operators of a query read: packed once, behind one exchange, so that Spark makes them once a batch.

Spark computes what stands below two exchanges that are equal only once. So the rows go as blobs through an exchange of
their own, and each reader unpacks them in Python: what it chooses there cannot be pushed below the exchange, which
would make it another one. Which partition a blob goes to does not matter; the rows of a task stay together, in order.

What leaves a query for several sinks goes as blobs, too: of each operator above them as a branch of one frame.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from runtime.engine.arrow_rows import ArrowRows, Metrics, Read
from runtime.engine.blobs import blob_column, chunks, from_blob
from runtime.engine.buckets import bucket_ids
from runtime.engine.named import named
from runtime.engine.pack import as_it_is, gather
from runtime.spark.map_in_arrow import map_in_arrow
from runtime.worker.metered import METRICS_COLUMN

_DDL = f"bucket int, task int, seq int, blob binary, {METRICS_COLUMN} array<bigint>"
_PACKED = pa.schema(
    [
        ("bucket", pa.int32()),
        ("task", pa.int32()),
        ("seq", pa.int32()),
        ("blob", pa.binary()),
        (METRICS_COLUMN, pa.list_(pa.int64())),
    ]
)


def shared(rows: ArrowRows | DataFrame, schema: pa.Schema, partitions: int, name: str) -> ArrowRows:
    """``rows`` with ``schema``, of the operator ``name``, for several readers; what they count is observed once."""
    frame = _packed(rows, schema, bucket_ids(partitions), name, reader=f"{name}/shared")
    return ArrowRows(frame=frame.repartition(partitions, "bucket"), read=unpacked, schema=schema)


def branches(rows: Sequence[tuple[str, ArrowRows | DataFrame, pa.Schema]]) -> DataFrame:
    """The rows of several operators, each given with its name and schema, in one frame, to be taken apart again."""
    packed = [_packed(each, schema, (branch,), name) for branch, (name, each, schema) in enumerate(rows)]
    return reduce(DataFrame.union, packed)


def of_branch(frame: DataFrame, branch: int, schema: pa.Schema) -> ArrowRows:
    """The rows with ``schema`` of what :func:`branches` was given as number ``branch``."""
    return ArrowRows(frame=frame.where(F.col("bucket") == branch), read=unpacked, schema=schema)


def few_rows(frame: DataFrame, schemas: Mapping[int, pa.Schema], most: int) -> dict[int, pa.Table]:
    """The rows of those branches, given with their schemas, that have at most ``most`` bytes, all together no more.

    The sizes of all blobs are asked first, which computes them, for ``frame`` to have them from then on: it is kept.
    """
    sizes = frame.select("bucket", F.length("blob").alias("size")).toArrow()
    left = most
    few: list[int] = []
    for branch in schemas:
        size = pc.sum(sizes.filter(pc.equal(sizes["bucket"], branch))["size"]).as_py() or 0
        if size <= left:
            left, few = left - size, [*few, branch]
    if not few:
        return {}
    batches = frame.where(F.col("bucket").isin(few)).select("bucket", "task", "seq", "blob").toArrow().to_batches()
    found = {branch: [batch.filter(pc.equal(batch["bucket"], branch)) for batch in batches] for branch in few}
    return {
        branch: pa.concat_tables([schemas[branch].empty_table(), *unpacked(rows, [])]) for branch, rows in found.items()
    }


def _packed(
    rows: ArrowRows | DataFrame, schema: pa.Schema, buckets: Sequence[int], name: str, *, reader: str = ""
) -> DataFrame:
    if not isinstance(rows, ArrowRows):
        columns = [F.col("`" + column.replace("`", "``") + "`") for column in schema.names]
        rows = ArrowRows(frame=rows.select(*columns), read=as_it_is, schema=schema)
    packing = _Packing(tables=rows.tables(), schema=schema, buckets=buckets)
    packed = map_in_arrow(rows.frame, named(packing, name), _DDL)
    return rows.observe(packed, reader or name).where(F.col("blob").isNotNull()).drop(METRICS_COLUMN)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Packing:
    """Packs the rows that ``tables`` makes of a task's batches; the last row has what it has counted."""

    tables: Read
    schema: pa.Schema
    buckets: Sequence[int]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = TaskContext.get()
        number = 0 if task is None else task.partitionId()
        bucket = self.buckets[number % len(self.buckets)]
        metrics: Metrics = []
        sequence = 0
        for found in gather(self.tables(batches, metrics)):
            for table in chunks(found.select(self.schema.names).cast(self.schema)):
                yield _row(bucket, number, sequence, blob_column([table]), None)
                sequence += 1
        if metrics:
            yield _row(bucket, number, sequence, pa.nulls(1, pa.binary()), metrics)


def _row(bucket: int, task: int, sequence: int, blob: pa.Array, metrics: Metrics | None) -> pa.RecordBatch:
    columns = [
        pa.array([bucket], pa.int32()),
        pa.array([task], pa.int32()),
        pa.array([sequence], pa.int32()),
        blob,
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
