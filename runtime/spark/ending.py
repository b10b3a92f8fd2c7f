"""A stream source without rows that ends the sources of event time, so that one more batch closes all windows.

Its offset shows if they have ended, and Spark logs the offset of each batch. So a batch that runs again ends them
again, and the log of a checkpoint shows that it was drained. Each query with event time has this source from its first
run on, because Spark refuses a query with another number of sources. Spark receives the code by value, as in
:mod:`hintplan.runtime.spark.by_value`, so it uses nothing of hintplan where Spark runs it.

    ending = ending_source(spark, ended=False)
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

_OFFSET = "event_time_ended"


def ending_source(spark: SparkSession, *, ended: bool) -> DataFrame:
    """Return a stream without rows that triggers a batch when the sources have ``ended``, unless one has done so."""
    # A unique name: a session finds the source that another session has registered, but cannot read from it.
    name = f"hintplan_ending_{uuid.uuid4().hex}"
    spark.dataSource.register(type("Ending", (Ending,), {"registered_as": name}))
    return spark.readStream.format(name).option("ended", str(int(ended))).load()


def has_ended(offset: str) -> bool:
    """Return whether a line of Spark's offset log is of this source after the end.

    >>> has_ended('{"event_time_ended": 1}'), has_ended('{"event_time_ended":0}'), has_ended("-")
    (True, False, False)
    """
    try:
        parsed = json.loads(offset)
    except ValueError:
        return False
    return isinstance(parsed, dict) and parsed.get(_OFFSET) == 1


class Ending(DataSource):
    """The data source; each instance is registered under its own name. Its option ``ended`` is 0 or 1."""

    registered_as: ClassVar[str]

    @classmethod
    def name(cls) -> str:
        return cls.registered_as

    def schema(self) -> str:
        return "ending int"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return EndingReader(int(self.options["ended"]))


class EndingReader(DataSourceStreamReader, available_now()):  # type: ignore[misc]
    """A reader whose offset is 1 once the sources have ended.

    As :class:`hintplan.runtime.spark.once.OnceReader`, it lets Spark 4.2 and later run several micro-batches.
    """

    def __init__(self, ended: int) -> None:
        self._ended = ended

    def initialOffset(self) -> dict[str, int]:
        return {_OFFSET: 0}

    def prepareForTriggerAvailableNow(self) -> None:
        pass

    def latestOffset(self, *limits: object) -> dict[str, int]:
        return {_OFFSET: self._ended}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return [InputPartition(0)] if start != end else []

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        return iter(())

    def commit(self, end: object) -> None:
        pass
