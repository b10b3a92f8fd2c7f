"""Calls a function with each micro-batch of a query."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from hintplan.runtime.engine.this_task import batch_key
from hintplan.runtime.spark.session import is_remote
from hintplan.runtime.spark.shipping import with_code


def written_by(write: Callable[[Any, int], object], df: DataFrame, logs: str | None) -> DataStreamWriter:
    """A writer that calls ``write`` with each micro-batch: on the driver, which on Spark Connect is the server.

    ``logs`` is the checkpoint location that the query will have; None for one whose tasks do not ask for their batch.
    """
    if is_remote(df.sparkSession) and logs is not None:
        write = _Telling(write=write, key=batch_key(logs))
    return df.writeStream.outputMode("append").foreachBatch(with_code(write, df))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Telling:
    """``write``, with the number of the batch in the configuration that its tasks are handed."""

    write: Callable[[Any, int], object]
    key: str

    def __call__(self, df: DataFrame, batch: int) -> None:
        df.sparkSession.conf.set(self.key, str(batch))
        self.write(df, batch)
