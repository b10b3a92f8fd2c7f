"""A stream source of ours with one row, which it has once in the life of a checkpoint.

Its offset says whether the row has been put out, and Spark's log has the offset of each batch: a batch that is replayed
has the row again, one after a restart has not. Its code goes where Spark runs it by value, as in
:mod:`hintplan.runtime.spark.by_value`: it uses nothing of hintplan's when it is there.

    row = one_row(spark)
"""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Iterator
from typing import Any, ClassVar

from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from hintplan.runtime.spark.versions import available_now

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]


_AFTERWARDS = {"row": 1}
"""The offset once the row has been put out, which no other source of ours in Python has."""
_ITS_CLASSES = "org.apache.spark.sql.execution.datasources.v2.python."


def is_one_row(description: str, end_offset: str | None) -> bool:
    """Whether a source that Spark's progress has under ``description`` is one of ours, whose row is nobody's data.

    PySpark 4.0 has an offset as Python writes it, newer ones as JSON.
    """
    offsets = (json.dumps(_AFTERWARDS), json.dumps(_AFTERWARDS, separators=(",", ":")), str(_AFTERWARDS))
    return description.startswith(_ITS_CLASSES) and end_offset in offsets


def one_row(spark: SparkSession) -> DataFrame:
    """A stream that has one row in its first batch, and none afterwards."""
    # Sessions of one Spark find a source that another has registered in the way, yet cannot read from it.
    name = f"hintplan_once_{uuid.uuid4().hex}"
    spark.dataSource.register(type("Once", (Once,), {"registered_as": name}))
    return spark.readStream.format(name).load()


class Once(DataSource):
    """The source; each is registered under a name of its own."""

    registered_as: ClassVar[str]

    @classmethod
    def name(cls) -> str:
        return cls.registered_as

    def schema(self) -> str:
        return "once int"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return OnceReader()


class OnceReader(DataSourceStreamReader, available_now()):  # type: ignore[misc]
    """Its offset is the number of rows that there have been.

    Spark 4.2 and later are told that it can be read until all is there; of a query with a source that cannot, they run
    one micro-batch.
    """

    def initialOffset(self) -> dict[str, int]:
        return {"row": 0}

    def prepareForTriggerAvailableNow(self) -> None:
        pass

    def latestOffset(self, *limits: Any) -> dict[str, int]:
        return _AFTERWARDS

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return [InputPartition(row) for row in range(start["row"], end["row"])]

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        yield (partition.value,)

    def commit(self, end: Any) -> None:
        pass
