"""Spark's work for a sink to a data lake: its tasks write files, and net the changes of each key.

Rows that are already on the driver are processed there, because a Spark job would cost more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, StructField, StructType

from hintplan.runtime.connectors.lakes.data_files import FILES_DDL, DataFile, FileWriting, file_of
from hintplan.runtime.connectors.lakes.target import LakeTarget
from hintplan.runtime.connectors.netted_rows import DELETED, net_rows
from hintplan.runtime.kernels.not_null import refuse_nulls
from hintplan.runtime.spark.map_in_arrow import map_in_arrow
from hintplan.runtime.spark.names import quoted

Rows: TypeAlias = "DataFrame | pa.Table"
"""The rows of a sink, whose last column may be the row kind."""

_PLACE = "__place"


def written_files(rows: Rows, target: LakeTarget, writing: FileWriting) -> list[DataFile]:
    """Return the new files with ``rows``, which are not in any version of the table yet."""
    if isinstance(rows, pa.Table):
        return list(writing.written([rows]))
    parallelism = target.options.get("sink.parallelism")
    frame = rows if parallelism is None else rows.coalesce(int(parallelism))
    return _collected(frame, writing)


def written_first(rows: DataFrame, target: LakeTarget, writing: FileWriting) -> list[DataFile]:
    """Return the new files for an empty table, with the net result of the changes in ``rows``."""
    return _collected(_by_key(rows, target), NettedFiles(target=target, writing=writing))


def net_changes(rows: Rows, target: LakeTarget) -> pa.Table:
    """Return the changes in ``rows`` on the driver, one per key.

    :func:`~hintplan.runtime.connectors.netted_rows.net_rows` defines the result.
    """
    if isinstance(rows, pa.Table):
        return _net(rows, target)
    types = {field.name: field for field in rows.schema.fields}
    schema = StructType([*(types[name] for name in target.schema.names), StructField(DELETED, BooleanType())])
    changes = map_in_arrow(_by_key(rows, target), Netting(target=target), schema).toArrow()
    return changes.cast(_with_deleted(target))


@dataclass(frozen=True, slots=True, kw_only=True)
class Netting:
    """Nets the changes of a task in ``mapInArrow``; the task has all changes of each key."""

    target: LakeTarget

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from self.net(batches).to_batches()

    def net(self, batches: Iterable[pa.RecordBatch]) -> pa.Table:
        filled = [batch for batch in batches if batch.num_rows]
        if not filled:
            return _with_deleted(self.target).empty_table()
        return _net(pa.Table.from_batches(filled).sort_by(_PLACE).drop_columns([_PLACE]), self.target)


@dataclass(frozen=True, slots=True, kw_only=True)
class NettedFiles:
    """Writes the net result of a task's changes to files, in ``mapInArrow``."""

    target: LakeTarget
    writing: FileWriting

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = Netting(target=self.target).net(batches)
        remaining = rows.filter(pc.invert(rows[DELETED])).drop_columns([DELETED])
        yield from self.writing(remaining.to_batches())


def _net(rows: pa.Table, target: LakeTarget) -> pa.Table:
    changes = net_rows(rows, target.primary_key)
    refuse_nulls(changes, target.primary_key, target.name)
    refuse_nulls(changes.filter(pc.invert(changes[DELETED])), target.required, target.name)
    return changes.select([*target.schema.names, DELETED]).cast(_with_deleted(target))


def _with_deleted(target: LakeTarget) -> pa.Schema:
    """Return the schema of changes, in which a deleted row may have no values except its key."""
    fields = [field.with_nullable(True) for field in target.schema]
    return pa.schema([*fields, pa.field(DELETED, pa.bool_())])


def _by_key(rows: DataFrame, target: LakeTarget) -> DataFrame:
    """Return the rows with their order in a column, partitioned so that one task has all changes of a key."""
    parallelism = (
        target.options.get("sink.parallelism") or rows.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1
    )
    placed = rows.withColumn(_PLACE, F.monotonically_increasing_id())
    return placed.repartition(int(parallelism), *map(quoted, target.primary_key))


def _collected(frame: DataFrame, run: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]) -> list[DataFile]:
    return [file_of(row) for row in map_in_arrow(frame, run, FILES_DDL).collect()]
