"""The blackhole sink: takes every row, of any kind, and drops it. Spark still computes them all."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from plans.model import Table

__all__ = ["writer"]


def writer(
    df: DataFrame, name: str, table: Table, *, changelog: bool, checkpoint: str | None = None
) -> DataStreamWriter:
    """A writer into Spark's ``noop`` sink."""
    return df.writeStream.format("noop").outputMode("append")
