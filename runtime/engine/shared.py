"""Packs rows that several operators of a query read behind one exchange, so that Spark computes them once per batch.

Spark computes the input of two equal exchanges only once. So the rows go as blobs through an exchange of their own, and
each reader unpacks them in Python. Spark cannot push a reader's column choice below the exchange, which would make the
exchanges unequal. The partition of a blob does not matter; the rows of a task stay together, in order.

The output of a query for several sinks also goes as blobs, with each top operator as a branch of one frame. For rows
that are dropped, only their number leaves the task; the calcs of the sink run where the operator runs.
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

from hintplan.runtime.engine.blobs import blob_column, from_blob, row_chunks
from hintplan.runtime.engine.buckets import bucket_ids
from hintplan.runtime.engine.marks import MARK_COLUMNS, decode_marks, encode_marks
from hintplan.runtime.engine.pack import (
    MARK,
    PACKED_DDL,
    TICK,
    Packing,
    as_it_is,
    gather,
    packed_rows,
    with_their_marks,
)
from hintplan.runtime.engine.rows import ArrowRows, Metrics, PackedFor, Read, Report, Step
from hintplan.runtime.operator import hash_column
from hintplan.runtime.spark.map_in_arrow import map_in_arrow
from hintplan.runtime.spark.names import named_function, quoted
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


def shared_rows(
    rows: ArrowRows | DataFrame, schema: pa.Schema, partitions: int, name: str, *, marks: bool = False
) -> ArrowRows:
    """Return the ``rows`` of the operator ``name`` for several readers; their metrics are observed only once.

    With ``marks``, rows carry marks, which each reader gets.
    """
    frame = _packed(rows, schema, bucket_ids(partitions), name, reader=f"{name}/shared", marks=marks).drop("counts")
    return ArrowRows(frame=frame.repartition(partitions, "bucket"), read=unpacked, schema=schema, marks=marks)


def shared_input(
    rows: ArrowRows, schema: pa.Schema, partitions: int, name: str, *, reader: PackedFor, route: tuple[str, ...]
) -> ArrowRows:
    """Return the ``rows`` of the operator ``name`` for several readers, packed as an input of ``reader``.

    ``route`` are the columns whose hash routes its input, and ``partitions`` the number of its partitions. It needs no
    exchange of its own then (:mod:`hintplan.runtime.engine.stateful`).
    """
    packing = Packing(
        side=reader.side,
        schema=schema,
        route=route,
        buckets=bucket_ids(partitions),
        tables=rows.tables(),
        as_they_are=True,
        marks=rows.marks,
    )
    packed = map_in_arrow(rows.frame, named_function(packing, name), PACKED_DDL)
    frame = rows.observe(packed, f"{name}/shared").drop(METRICS_COLUMN).repartition(partitions, "bucket")
    return ArrowRows(frame=frame, read=unpacked_input, schema=schema, marks=rows.marks, packed=reader)


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """The output of a query at the operator ``top``: its ``rows``, with ``schema``.

    The frame contains the rows if they are ``kept``. For each entry of ``counted``, it contains only the number of rows
    after the steps.
    """

    top: str
    rows: ArrowRows | DataFrame
    schema: pa.Schema
    kept: bool
    counted: Mapping[str, Sequence[Step]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrived:
    """The part of a batch that came to the driver: the rows of small branches, and row counts by name."""

    tables: Mapping[int, pa.Table] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)


def branches(outputs: Sequence[Branch]) -> DataFrame:
    """Return the output of a query as one frame; each branch is identified by its position in ``outputs``."""
    packed = [
        _packed(branch.rows, branch.schema, (number,), branch.top, kept=branch.kept, counted=branch.counted)
        for number, branch in enumerate(outputs)
    ]
    return reduce(DataFrame.union, packed)


def of_branch(frame: DataFrame, branch: int, schema: pa.Schema) -> ArrowRows:
    """Return the rows of the branch at position ``branch`` of :func:`branches`, with ``schema``."""
    rows = frame.where((F.col("bucket") == branch) & F.col("blob").isNotNull())
    return ArrowRows(frame=rows, read=unpacked, schema=schema)


def arrived(frame: DataFrame, schemas: Mapping[int, pa.Schema], most: int) -> Arrived:
    """Return the counts of all branches, and the rows of branches in ``schemas``, up to ``most`` bytes altogether.

    The sizes of all blobs are read first, which computes the blobs. Spark persists a ``frame`` with blobs, and reads
    them from there afterwards.
    """
    sizes = frame.select("bucket", F.length("blob").alias("size"), "counts").toArrow()
    counts: Counter[str] = Counter()
    for task_counts in sizes["counts"].to_pylist():
        counts.update(dict(task_counts or ()))
    return Arrived(tables=_few_rows(frame, sizes, schemas, most), counts=counts)


def _few_rows(frame: DataFrame, sizes: pa.Table, schemas: Mapping[int, pa.Schema], most: int) -> Mapping[int, pa.Table]:
    budget = most
    few: list[int] = []
    for branch in schemas:
        size = pc.sum(sizes.filter(pc.equal(sizes["bucket"], branch))["size"]).as_py() or 0
        if size <= budget:
            budget, few = budget - size, [*few, branch]
    if not few:
        return {}
    wanted = frame.where(F.col("bucket").isin(few) & F.col("blob").isNotNull())
    batches = wanted.select("bucket", "task", "seq", "blob").toArrow().to_batches()
    batches_of = {branch: [batch.filter(pc.equal(batch["bucket"], branch)) for batch in batches] for branch in few}
    return {
        branch: pa.concat_tables([schemas[branch].empty_table(), *unpacked(rows, Report())])
        for branch, rows in batches_of.items()
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
    marks: bool = False,
) -> DataFrame:
    if not isinstance(rows, ArrowRows):
        chosen = rows.select(*map(quoted, (*schema.names, *(MARK_COLUMNS.names if marks else ()))))
        rows = ArrowRows(frame=chosen, read=with_their_marks if marks else as_it_is, schema=schema)
    packing = _Packing(
        tables=rows.tables(), schema=schema, buckets=buckets, kept=kept, counted=dict(counted), marks=marks
    )
    packed = map_in_arrow(rows.frame, named_function(packing, name), _DDL)
    has_data = F.col("blob").isNotNull() | F.col("counts").isNotNull()
    return rows.observe(packed, reader or name).where(has_data).drop(METRICS_COLUMN)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Packing:
    """Packs the rows that ``tables`` makes from a task's batches, if ``kept``; the last row has the counts.

    With ``marks``, the blob of a row with the sequence number ``MARK`` has the marks of the task.
    """

    tables: Read
    schema: pa.Schema
    buckets: Sequence[int]
    kept: bool
    counted: Mapping[str, Sequence[Step]]
    marks: bool = False

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = TaskContext.get()
        number = 0 if task is None else task.partitionId()
        bucket = self.buckets[number % len(self.buckets)]
        report = Report()
        sequence = 0
        counts = dict.fromkeys(self.counted, 0)
        for gathered in gather(self.tables(batches, report)):
            table = gathered.select(self.schema.names).cast(self.schema)
            for name, steps in self.counted.items():
                counts[name] += reduce(lambda rows, step: step(rows), steps, table).num_rows
            for chunk in row_chunks(table) if self.kept else ():
                yield _row(bucket, number, sequence, blob=blob_column([chunk]))
                sequence += 1
        if self.marks and report.marks:
            yield _row(bucket, number, MARK, blob=pa.array([encode_marks(report.marks)], pa.binary()))
        if report.metrics or counts:
            yield _row(bucket, number, sequence, counts=counts or None, metrics=report.metrics or None)


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


def unpacked_input(batches: Iterable[pa.RecordBatch], report: Report) -> Iterator[pa.Table]:
    """Yield the rows that are packed as the input of an operator, as :func:`unpacked` does."""
    packed = [row for batch in batches for row in packed_rows(batch) if row.side != TICK]
    for row in sorted(packed, key=lambda row: (row.task, row.sequence)):
        if row.side == MARK:
            decode_marks(row.blob, report.marks)
        else:
            yield from_blob(row.blob).drop_columns([hash_column(0)])


def unpacked(batches: Iterable[pa.RecordBatch], report: Report) -> Iterator[pa.Table]:
    """Yield the rows of a task, sorted by the task that packed them and their order there, and report their marks."""
    blobs = [
        (task, sequence, batch["blob"][row].as_buffer())
        for batch in batches
        for row, (task, sequence) in enumerate(zip(batch["task"].to_pylist(), batch["seq"].to_pylist(), strict=True))
    ]
    for _, sequence, blob in sorted(blobs, key=lambda row: row[:2]):
        if sequence == MARK:
            decode_marks(blob, report.marks)
        else:
            yield from_blob(blob)
