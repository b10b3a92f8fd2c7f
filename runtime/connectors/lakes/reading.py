"""Reads the Parquet files of a table version in Spark's tasks; the driver lists the files.

Needs no library of a lake, so workers need only pyarrow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.lakes.deleted_rows import not_deleted
from hintplan.runtime.connectors.lakes.storage import Storage
from hintplan.runtime.spark.map_in_arrow import map_in_arrow

_TASKS = 1_000
_ID = b"PARQUET:field_id"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedFile:
    """A file of a version: its path below the root, its partition values by column, and its deleted rows.

    The deleted rows are in the form of :func:`~hintplan.runtime.connectors.lakes.deleted_rows.packed_places`.
    """

    path: str
    partition: Mapping[str, Any]
    deleted: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReading:
    """Reads files of a table, given the file numbers in the batches of a task; picklable, for ``mapInArrow``.

    Columns are found by name. If files contain column ids, ``ids`` maps the ids of all fields to names. A column that
    is neither in the file nor in its partition is NULL.
    """

    table: str
    storage: Storage
    files: tuple[ListedFile, ...]
    schema: pa.Schema
    ids: Mapping[int, str] | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        system, root = self.storage.files()
        for batch in batches:
            for number in batch.column(0).to_pylist():
                listed = self.files[number]
                try:
                    with system.open_input_file(f"{root}/{listed.path}") as source:
                        yield from self._rows(source, listed)
                except (OSError, pa.ArrowException) as error:
                    raise RunError(
                        f"table {self.table}: {listed.path} cannot be read: {' '.join(str(error).split())}",
                        hint="can the machines of Spark's workers read it, and has nobody removed the version's files?",
                        path=f"tables.{self.table}",
                    ) from None

    def _rows(self, source: Any, listed: ListedFile) -> Iterator[pa.RecordBatch]:
        file = pq.ParquetFile(source, coerce_int96_timestamp_unit="us")
        file_names = self._names(file.schema_arrow)
        present = [name for name in self.schema.names if name in file_names]
        start = 0
        for batch in file.iter_batches(columns=[file_names[name] for name in present], use_threads=False):
            columns = [
                batch.column(file_names[field.name]).cast(field.type)
                if field.name in present
                else pa.repeat(pa.scalar(listed.partition.get(field.name), field.type), batch.num_rows)
                for field in self.schema
            ]
            rows = pa.record_batch(columns, schema=self.schema)
            yield (
                rows if listed.deleted is None else rows.filter(pa.array(not_deleted(listed.deleted, start, len(rows))))
            )
            start += len(rows)

    def _names(self, found: pa.Schema) -> dict[str, str]:
        """Return the name in the file for each column of the table."""
        ids = self.ids
        if ids is None or not any(_ID in (field.metadata or {}) for field in found):
            return {name: name for name in found.names}
        file_names = {ids[number]: field.name for field in found if (number := _number(field)) in ids}
        for name in self.schema.names:
            if name in file_names and not all(
                ids.get(_number(part)) == part.name for part in _parts(found, file_names[name])
            ):
                raise RunError(
                    f"table {self.table}: a part of column {name!r} was renamed or dropped since a file was written",
                    hint="rewrite the files of the table, as rewrite_data_files does",
                    path=f"tables.{self.table}",
                )
        return file_names


def read_by_tasks(spark: SparkSession, reading: FileReading, schema: StructType) -> DataFrame:
    """Return the rows of all files; each task reads a part of the files."""
    numbers = spark.range(0, len(reading.files), 1, max(1, min(len(reading.files), _TASKS)))
    return map_in_arrow(numbers, reading, schema)


def _number(field: pa.Field) -> int:
    return int((field.metadata or {}).get(_ID, -1))


def _parts(schema: pa.Schema, name: str) -> Iterator[pa.Field]:
    """Yield the fields of all ROWs in a column."""
    waiting = [schema.field(name).type]
    while waiting:
        kind = waiting.pop()
        inner = [kind.field(index) for index in range(kind.num_fields)] if pa.types.is_nested(kind) else []
        if pa.types.is_struct(kind):
            yield from inner
        elif pa.types.is_map(kind):
            inner = [kind.key_field, kind.item_field]
        waiting += [field.type for field in inner]
