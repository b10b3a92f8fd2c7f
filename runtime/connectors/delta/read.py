"""Reads a version of a Delta table in batch jobs: the driver lists the files, and tasks read them with pyarrow."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from hintplan.plans.connectors.delta import DELTA, PATH, VERSION
from hintplan.plans.declarations.tables import Table
from hintplan.runtime.connectors.lakes.reading import FileReading, read_by_tasks
from hintplan.runtime.connectors.lakes.target import target_of
from hintplan.runtime.connectors.schema import physical_schema
from hintplan.runtime.lookup.sources.failures import import_extra


def read_batch(spark: SparkSession, name: str, table: Table, columns: tuple[str, ...]) -> DataFrame:
    """Return the rows of the newest version, or of the version in the options; raise RunError if it is unreadable."""
    target = target_of(name, table, PATH).here()
    version = table.options.get(VERSION)
    listed = import_extra(
        "hintplan.runtime.connectors.delta.files", "delta", DELTA.name, where="where the run was started"
    )
    files = listed.files_of(target, None if version is None else int(version))
    schema = pa.schema([target.schema.field(column).with_nullable(True) for column in columns])
    reading = FileReading(table=name, storage=target.storage, files=files, schema=schema)
    return read_by_tasks(spark, reading, physical_schema(table, columns))
