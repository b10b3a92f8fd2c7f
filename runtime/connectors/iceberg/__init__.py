"""The iceberg connector: Apache Iceberg tables, which pyiceberg reads and commits to; Spark needs no jar."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.utils import is_remote

from hintplan.plans.connectors.iceberg import ICEBERG
from hintplan.plans.connectors.lakes.catalogs import chosen_snapshot
from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.columns import physical_schema
from hintplan.runtime.connectors.connector import (
    NOT_THERE,
    FilesIn,
    QueryId,
    SinkFacts,
    TableRead,
    TableWrite,
    missing_batches,
    refuse_keyless_updates,
)
from hintplan.runtime.connectors.iceberg.write import by_pyiceberg, commit_to_iceberg, iceberg_target
from hintplan.runtime.connectors.lakes.reading import FileReading, read_by_tasks
from hintplan.runtime.connectors.lakes.sink import Lake, LakeBatch

__all__ = ["CODE"]


class IcebergCode(Lake):
    """Tables of Apache Iceberg."""

    connector = ICEBERG

    def read_batch(self, read: TableRead) -> DataFrame:
        """Return the rows of the newest snapshot, or of the snapshot in the options.

        The driver lists the files, and tasks read them. Raises RunError if the snapshot is unreadable.
        """
        target = iceberg_target(read.name, read.table).here()
        scan = by_pyiceberg("scan").snapshot_files(target)
        schema = pa.schema([target.schema.field(column).with_nullable(True) for column in read.columns])
        reading = FileReading(table=read.name, storage=scan.storage, files=scan.files, schema=schema, ids=scan.ids)
        return read_by_tasks(read.spark, reading, physical_schema(read.table, read.columns))

    def lake_batch(self, write: TableWrite) -> LakeBatch:
        refuse_keyless_updates(write)
        target = iceberg_target(write.name, write.table)
        for option in chosen_snapshot(write.table.options):
            raise RunError(
                f"table {write.name} is one snapshot of a table, which nobody writes to",
                hint=f"remove {option!r}, or declare another table to read that snapshot",
                path=f"{target.path}.options.{option}",
            )
        if not is_remote():
            here = target.here()
            existing = by_pyiceberg("catalog").open_iceberg_table(here)
            if existing is not None and target.primary_key:
                by_pyiceberg("deletes").refuse_equality_deletes(here, existing, None, "upserted to")
        return LakeBatch(
            target=target, checkpoint=write.checkpoint, commit=commit_to_iceberg, part=write.part, mark=write.mark
        )

    def last_batch(self, table: Table, query: QueryId, files_in: FilesIn) -> int:
        """Return the last batch of ``query`` that the table remembers.

        A client of Spark Connect may not see the table as the server does, and returns -1. The server then refuses a
        table that is ahead of the checkpoint, at the first batch.
        """
        query_id = query()
        if query_id is None or is_remote():
            return -1
        target = iceberg_target("", table).here()
        iceberg_table = by_pyiceberg("catalog").open_iceberg_table(target)
        if iceberg_table is None:
            return -1
        return int(by_pyiceberg("snapshots").last_snapshot_batch(target, iceberg_table, query_id))

    def missing(self, spark: SparkSession, table: Table, query: QueryId, facts: SinkFacts) -> str | None:
        """Return the batch in ``facts`` that the table lacks."""
        target = iceberg_target("", table).here()
        iceberg_table = by_pyiceberg("catalog").open_iceberg_table(target)
        if iceberg_table is None:
            return NOT_THERE
        last = int(by_pyiceberg("snapshots").last_snapshot_batch(target, iceberg_table, query() or ""))
        return missing_batches(last, facts["batch"])


CODE = IcebergCode()
