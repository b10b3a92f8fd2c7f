"""The blackhole sink: takes every row, of any kind, and drops it. Spark still computes them all."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from plans.model import Table

__all__ = ["batch_writer", "writer"]


def writer(
    df: DataFrame, name: str, table: Table, *, changelog: bool, checkpoint: str | None = None
) -> DataStreamWriter:
    """A writer into Spark's ``noop`` sink."""
    return df.writeStream.format("noop").outputMode("append")


def batch_writer(df: DataFrame, name: str, table: Table) -> Callable[[], None]:
    """What computes all rows and drops them."""
    return df.write.format("noop").mode("overwrite").save
