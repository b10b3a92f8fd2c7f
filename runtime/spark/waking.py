"""A stream source of ours whose offset moves when rows that wait are due, so that a batch runs though no data came.

It has no rows. It looks into the manifests of the operator that parks rows, which say when each was last looked up, so
an idle job in which nothing waits has no batches. Its code goes where Spark runs it by value, as in
:mod:`hintplan.runtime.spark.by_value`: of hintplan's it uses only what goes along.

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

from hintplan.runtime import s3, stores

for _module in (sys.modules[__name__], stores, s3):
    cloudpickle.register_pickle_by_value(_module)  # type: ignore[no-untyped-call]

_FIRST_LINE = 40
"""Bytes of a manifest before its header, of which they say the length."""


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
        self._looked_up: dict[str, int | None] = {}
        """When the rows that wait were last looked up, by the manifests in force, which never change."""

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
        import pyarrow.fs as pafs

        if "://" in self._root:
            system, base = stores.opened(self._root)
        else:
            system, base = pafs.LocalFileSystem(), self._root
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
        paths = [path for (scale, _), (_, path) in newest.items() if scale == in_force]
        known = self._looked_up
        self._looked_up = {path: known[path] if path in known else _looked_up(system, path) for path in paths}
        return min((at for at in self._looked_up.values() if at is not None), default=None)


def _looked_up(system: Any, path: str) -> int | None:
    """When the rows that wait in a partition were last looked up, the oldest of them."""
    import json

    with system.open_input_file(path) as source:
        data = source.read(source.size())  # all of it, for each read is a request
    tables = json.loads(data[_FIRST_LINE : _FIRST_LINE + int(data[:_FIRST_LINE].split()[2])])["tables"]
    return None if tables is None else min((each["at"] for each in json.loads(tables)["segments"]), default=None)
