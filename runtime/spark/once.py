"""A stream source with one row, which it returns once in the life of a checkpoint.

Its offset records whether the row was returned, and Spark logs the offset of each batch. A replayed batch returns the
row again; a new batch after a restart does not. Spark receives the code by value, as in
:mod:`hintplan.runtime.spark.by_value`, so it uses nothing of hintplan where Spark runs it.

    row = one_row(spark)
"""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Iterator
from typing import ClassVar

from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from hintplan.runtime.spark.versions import available_now

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]


_AFTERWARDS = {"row": 1}
"""The offset after the row was returned. No other Python source of hintplan has this offset."""
_ITS_CLASSES = "org.apache.spark.sql.execution.datasources.v2.python."


def is_one_row_source(description: str, end_offset: str | None) -> bool:
    """Return whether a source in Spark's progress is a one-row source of hintplan, whose row is no user data.

    PySpark 4.0 reports the offset in Python's notation, later versions as JSON.
    """
    offsets = (json.dumps(_AFTERWARDS), json.dumps(_AFTERWARDS, separators=(",", ":")), str(_AFTERWARDS))
    return description.startswith(_ITS_CLASSES) and end_offset in offsets


def one_row(spark: SparkSession) -> DataFrame:
    """Return a stream with one row in its first batch, and none afterwards."""
    # A unique name: a session finds the source that another session has registered, but cannot read from it.
    name = f"hintplan_once_{uuid.uuid4().hex}"
    spark.dataSource.register(type("Once", (Once,), {"registered_as": name}))
    return spark.readStream.format(name).load()


class Once(DataSource):
    """The data source; each instance is registered under its own name."""

    registered_as: ClassVar[str]

    @classmethod
    def name(cls) -> str:
        return cls.registered_as

    def schema(self) -> str:
        return "once int"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return OnceReader()


class OnceReader(DataSourceStreamReader, available_now()):  # type: ignore[misc]
    """A reader whose offset is the number of rows returned so far.

    Spark 4.2 and later can read this source until its available input ends. For a query with a source that lacks this
    feature, they run a single micro-batch.
    """

    def initialOffset(self) -> dict[str, int]:
        return {"row": 0}

    def prepareForTriggerAvailableNow(self) -> None:
        pass

    def latestOffset(self, *limits: object) -> dict[str, int]:
        return _AFTERWARDS

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return [InputPartition(row) for row in range(start["row"], end["row"])]

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        yield (partition.value,)

    def commit(self, end: object) -> None:
        pass
