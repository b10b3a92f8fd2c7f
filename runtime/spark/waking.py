"""A stream source of ours whose offset moves when rows that wait are due, so that a batch runs though no data came.

It has no rows. It looks into the manifests of the operator that parks rows, which say when each was last looked up, so
an idle job in which nothing waits has no batches. Its code goes where Spark runs it by value, as in
:mod:`runtime.spark.by_value`: it uses nothing of hintplan's.

    waking = waking_source(spark, place.folder, delay=10_000)
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]


def waking_source(spark: SparkSession, root: str, delay: int) -> DataFrame:
    """A stream without rows that has a batch when rows, which are parked below ``root``, have waited ``delay`` ms."""
    spark.dataSource.register(Waking)
    return spark.readStream.format(Waking.name()).options(root=root, delay=str(delay)).load()


class Waking(DataSource):
    """Options: ``root``, where the state with the waiting rows is, and ``delay``, how long they wait, in ms."""

    @classmethod
    def name(cls) -> str:
        return "hintplan-waking"

    def schema(self) -> str:
        return "waking int"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return WakingReader(self.options["root"], int(self.options["delay"]))


class WakingReader(DataSourceStreamReader):
    """Its offset is the time at which the oldest waiting row was due when it was last seen to be."""

    def __init__(self, root: str, delay: int) -> None:
        self._root = root
        self._delay = delay
        self._last = 0

    def initialOffset(self) -> dict[str, int]:
        return {"due": 0}

    def latestOffset(self, *limits: Any) -> dict[str, int]:
        import time

        oldest = self._oldest()
        if oldest is not None and oldest + self._delay <= time.time() * 1000:
            self._last = oldest + self._delay
        return {"due": self._last}

    def partitions(self, start: Any, end: Any) -> list[InputPartition]:
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        return iter(())

    def commit(self, end: Any) -> None:
        pass

    def _oldest(self) -> int | None:
        """When the row that waits for longest was last looked up."""
        import json

        import pyarrow.fs as pafs

        root = self._root.replace("s3a://", "s3://", 1)
        system, base = pafs.FileSystem.from_uri(root) if "://" in root else (pafs.LocalFileSystem(), root)
        newest: dict[tuple[int, int], tuple[tuple[int, int], str]] = {}
        try:  # Arrow's allow_not_found still fails if the directory is made while it looks
            found_files = system.get_file_info(pafs.FileSelector(base, recursive=True))
        except FileNotFoundError:
            return None
        for info in found_files:
            batch, _, rest = info.base_name.partition(".")
            run, _, kind = rest.partition(".")
            if kind == "manifest" and batch.isdecimal() and run.isdecimal():
                scale, partition = (int(folder) for folder in info.path.split("/")[-3:-1])
                number = int(batch), int(run)
                place = scale, partition
                newest[place] = max(newest.get(place, (number, info.path)), (number, info.path))
        in_force = max((scale for scale, _ in newest), default=0)
        found = []
        for path in (path for (scale, _), (_, path) in newest.items() if scale == in_force):
            with system.open_input_stream(path) as source:
                length = int(source.read(40).split()[2])
                tables = json.loads(source.read(length))["tables"]
            found += [] if tables is None else [each["at"] for each in json.loads(tables)["segments"]]
        return min(found, default=None)
