"""The delta connector: Delta Lake tables, which delta-rs reads and commits to; Spark needs no jar."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.utils import is_remote

from hintplan.plans.connectors.delta import DELTA, PATH, VERSION
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
from hintplan.runtime.connectors.delta.write import by_delta_rs, commit_to_delta
from hintplan.runtime.connectors.lakes.reading import FileReading, read_by_tasks
from hintplan.runtime.connectors.lakes.sink import Lake, LakeBatch
from hintplan.runtime.connectors.lakes.target import lake_target

__all__ = ["CODE"]


class DeltaCode(Lake):
    """Tables of Delta Lake."""

    connector = DELTA

    def read_batch(self, read: TableRead) -> DataFrame:
        """Return the rows of the newest version, or of the version in the options.

        The driver lists the files, and tasks read them. Raises RunError if the version is unreadable.
        """
        target = lake_target(read.name, read.table, PATH).here()
        version = read.table.options.get(VERSION)
        files = by_delta_rs("files").files_of(target, None if version is None else int(version))
        schema = pa.schema([target.schema.field(column).with_nullable(True) for column in read.columns])
        reading = FileReading(table=read.name, storage=target.storage, files=files, schema=schema)
        return read_by_tasks(read.spark, reading, physical_schema(read.table, read.columns))

    def lake_batch(self, write: TableWrite) -> LakeBatch:
        refuse_keyless_updates(write)
        target = lake_target(write.name, write.table, PATH)
        if VERSION in target.options:
            raise RunError(
                f"table {target.name} is one version of a table, which nobody writes to",
                hint=f"remove {VERSION!r}, or declare another table to read that version",
                path=f"{target.path}.options.{VERSION}",
            )
        if not is_remote():
            by_delta_rs("table").open_delta_table(target.here())
        return LakeBatch(
            target=target, checkpoint=write.checkpoint, commit=commit_to_delta, part=write.part, mark=write.mark
        )

    def last_batch(self, table: Table, query: QueryId, files_in: FilesIn) -> int:
        """Return the last batch of ``query`` that the table remembers.

        A client of Spark Connect may not see the table as the server does, and returns -1. The server then refuses a
        table that is ahead of the checkpoint, at the first batch.
        """
        query_id = query()
        if query_id is None or is_remote():
            return -1
        log, target = by_delta_rs("table"), lake_target("", table, PATH).here()
        delta_table = log.open_delta_table(target)
        return -1 if delta_table is None else int(log.last_delta_batch(target, delta_table, query_id))

    def missing(self, spark: SparkSession, table: Table, query: QueryId, facts: SinkFacts) -> str | None:
        """Return the batch or the version in ``facts`` that the table lacks.

        The batches prove nothing in two cases. The table's log shows whether it was restored to an older version. A
        table that forgets its writers passes if its version is not older.
        """
        log, target = by_delta_rs("table"), lake_target("", table, PATH).here()
        delta_table = log.open_delta_table(target)
        if delta_table is None:
            return NOT_THERE
        back = log.restored_to(target, delta_table, facts["version"])
        if back is not None:
            return f"was restored to version {back}, and had version {facts['version']}"
        last = int(log.last_delta_batch(target, delta_table, query() or ""))
        if last < facts["batch"] and delta_table.version() >= facts["version"] and log.forgets(delta_table):
            return None
        return missing_batches(last, facts["batch"])


CODE = DeltaCode()
