"""The blackhole sink: computes every row of any kind, and drops it. Rows that are in Arrow stay there."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from hintplan.plans.connectors.blackhole import BLACKHOLE
from hintplan.runtime.connectors.connector import BatchWriter, TableSink, TableWrite


class BlackholeCode(TableSink):
    """Computes rows and drops them, through Spark's ``noop`` sink."""

    connector = BLACKHOLE

    def stream_writer(self, write: TableWrite, rows: DataFrame) -> DataStreamWriter:
        return rows.writeStream.format("noop").outputMode("append")

    def micro_batch_writer(self, write: TableWrite) -> BatchWriter:
        return lambda rows, batch: rows.counted()

    def batch_writer(self, write: TableWrite, rows: DataFrame) -> Callable[[], None]:
        return rows.write.format("noop").mode("overwrite").save


CODE = BlackholeCode()
