"""The blackhole sink: computes every row of any kind, and drops it. Rows that are in Arrow stay there."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from hintplan.plans.connectors.blackhole import BLACKHOLE
from hintplan.plans.declarations.tables import Table
from hintplan.runtime.connectors.connector import ConnectorCode
from hintplan.runtime.connectors.micro_batch import MicroBatch


def writer(
    df: DataFrame, name: str, table: Table, *, changelog: bool, checkpoint: str | None = None
) -> DataStreamWriter:
    """Return a writer into Spark's ``noop`` sink."""
    return df.writeStream.format("noop").outputMode("append")


def micro_batch_writer(
    name: str, table: Table, *, changelog: bool, checkpoint: str | None = None, part: str = ""
) -> Callable[[MicroBatch, int], int]:
    """Return a function that computes a micro-batch, drops it, and returns the number of its rows."""
    return lambda rows, batch: rows.counted()


def batch_writer(df: DataFrame, name: str, table: Table) -> Callable[[], None]:
    """Return a function that computes all rows and drops them."""
    return df.write.format("noop").mode("overwrite").save


CODE = ConnectorCode(
    connector=BLACKHOLE, writer=writer, micro_batch_writer=micro_batch_writer, batch_writer=batch_writer
)
