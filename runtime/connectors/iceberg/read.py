"""Reads a snapshot of an Iceberg table in batch jobs: the driver lists the files, and tasks read them."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from hintplan.plans.declarations.tables import Table
from hintplan.runtime.connectors.iceberg.write import by_pyiceberg, iceberg_target
from hintplan.runtime.connectors.lakes.reading import FileReading, read_by_tasks
from hintplan.runtime.connectors.schema import physical_schema


def read_batch(spark: SparkSession, name: str, table: Table, columns: tuple[str, ...]) -> DataFrame:
    """Return the rows of the newest snapshot, or of the snapshot in the options; raise RunError if it is unreadable."""
    target = iceberg_target(name, table).here()
    scan = by_pyiceberg("scan").scanned(target)
    schema = pa.schema([target.schema.field(column).with_nullable(True) for column in columns])
    reading = FileReading(table=name, storage=scan.storage, files=scan.files, schema=schema, ids=scan.ids)
    return read_by_tasks(spark, reading, physical_schema(table, columns))
