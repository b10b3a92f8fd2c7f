"""A version of a Delta table, as batch jobs read it: the driver has the list of files, tasks read them with pyarrow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from plans.connectors.delta import DELTA, PATH, VERSION
from plans.declarations.tables import Table
from plans.errors import RunError
from runtime.connectors.lakes.storage import Storage
from runtime.connectors.lakes.target import target_of
from runtime.connectors.schema import physical_schema
from runtime.lookup.sources.failures import import_extra
from runtime.spark.map_in_arrow import map_in_arrow

_TASKS = 1_000


def read_batch(spark: SparkSession, name: str, table: Table, columns: tuple[str, ...]) -> DataFrame:
    """The rows of the newest version, or of that which the table names; RunError if they cannot be read."""
    target = target_of(name, table, PATH).here()
    version = table.options.get(VERSION)
    log = import_extra("runtime.connectors.delta.log", "delta", DELTA.name, where="where the run was started")
    files = log.files_of(target, None if version is None else int(version))
    schema = pa.schema([target.schema.field(column).with_nullable(True) for column in columns])
    reading = FileReading(table=name, storage=target.storage, files=tuple(files), schema=schema)
    numbers = spark.range(0, len(files), 1, max(1, min(len(files), _TASKS)))
    return map_in_arrow(numbers, reading, physical_schema(table, columns))


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReading:
    """Reads files of a table, whose numbers come in the batches of a task; picklable, for ``mapInArrow``.

    A column that is in neither the file nor its partition is NULL.
    """

    table: str
    storage: Storage
    files: tuple[tuple[str, Mapping[str, Any]], ...]
    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        system, root = self.storage.files()
        for batch in batches:
            for number in batch.column(0).to_pylist():
                path, partition = self.files[number]
                try:
                    with system.open_input_file(f"{root}/{path}") as source:
                        yield from self._rows(source, partition)
                except (OSError, pa.ArrowException) as error:
                    raise RunError(
                        f"table {self.table}: {path} cannot be read: {' '.join(str(error).split())}",
                        hint="can the machines of Spark's workers read it, and has nobody vacuumed the version?",
                        path=f"tables.{self.table}",
                    ) from None

    def _rows(self, source: Any, partition: Mapping[str, Any]) -> Iterator[pa.RecordBatch]:
        file = pq.ParquetFile(source, coerce_int96_timestamp_unit="us")
        present = [name for name in self.schema.names if name in file.schema_arrow.names]
        for rows in file.iter_batches(columns=present, use_threads=False):
            columns = [
                rows.column(field.name).cast(field.type)
                if field.name in present
                else pa.repeat(pa.scalar(partition.get(field.name), field.type), rows.num_rows)
                for field in self.schema
            ]
            yield pa.record_batch(columns, schema=self.schema)
