"""A stream source without rows whose offset advances when waiting rows are due, so that a batch runs without new data.

It reads the manifests of the operator that parks rows. They contain the time at which each row was last looked up, so
an idle job without waiting rows has no batches. Spark receives the code by value, as in
:mod:`hintplan.runtime.spark.by_value`, with the only modules of hintplan that it uses.

    waking = waking_source(spark, place.folder, delay=10_000)
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from hintplan.runtime import s3, stores

if TYPE_CHECKING:
    import pyarrow.fs as pafs

for _module in (sys.modules[__name__], stores, s3):
    cloudpickle.register_pickle_by_value(_module)  # type: ignore[no-untyped-call]

_FIRST_LINE = 40
"""The bytes of a manifest before its header, which contain the length of the header."""


def waking_source(spark: SparkSession, root: str, delay: int) -> DataFrame:
    """Return a stream without rows that triggers a batch when rows parked below ``root`` have waited ``delay`` ms."""
    spark.dataSource.register(Waking)
    return spark.readStream.format(Waking.name()).options(root=root, delay=str(delay)).load()


class Waking(DataSource):
    """The data source.

    Options: ``root``, the directory of the state with waiting rows, and ``delay``, the wait in ms.
    """

    @classmethod
    def name(cls) -> str:
        return "hintplan-waking"

    def schema(self) -> str:
        return "waking int"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return WakingReader(self.options["root"], int(self.options["delay"]))


class WakingReader(DataSourceStreamReader):
    """A reader whose offset is the time at which the oldest waiting row was due, at the last check that found one."""

    def __init__(self, root: str, delay: int) -> None:
        self._root = root
        self._delay = delay
        self._last = 0
        self._looked_up: dict[str, int | None] = {}
        """The oldest last lookup of the waiting rows, by manifest in force. Manifests never change."""

    def initialOffset(self) -> dict[str, int]:
        return {"due": 0}

    def latestOffset(self, *limits: object) -> dict[str, int]:
        import time

        oldest = self._oldest()
        if oldest is not None and oldest + self._delay <= time.time() * 1000:
            self._last = oldest + self._delay
        return {"due": self._last}

    def partitions(self, start: object, end: object) -> list[InputPartition]:
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        return iter(())

    def commit(self, end: object) -> None:
        pass

    def _oldest(self) -> int | None:
        """Return the last lookup of the row that has waited longest, or None if no row waits."""
        import pyarrow.fs as pafs

        if "://" in self._root:
            system, base = stores.open_store(self._root)
        else:
            system, base = pafs.LocalFileSystem(), self._root
        newest: dict[tuple[int, int], tuple[tuple[int, int], str]] = {}
        try:  # Arrow's allow_not_found still fails if the directory is created during the listing
            found_files = system.get_file_info(pafs.FileSelector(base, recursive=True))
        except FileNotFoundError:
            return None
        for info in found_files:
            batch, _, suffix = info.base_name.partition(".")
            run, _, kind = suffix.partition(".")
            if kind == "manifest" and batch.isdecimal() and run.isdecimal():
                scale, partition = (int(folder) for folder in info.path.split("/")[-3:-1])
                number = int(batch), int(run)
                key = scale, partition
                newest[key] = max(newest.get(key, (number, info.path)), (number, info.path))
        in_force = max((scale for scale, _ in newest), default=0)
        paths = [path for (scale, _), (_, path) in newest.items() if scale == in_force]
        cached = self._looked_up
        self._looked_up = {path: cached[path] if path in cached else _looked_up(system, path) for path in paths}
        return min((at for at in self._looked_up.values() if at is not None), default=None)


def _looked_up(system: pafs.FileSystem, path: str) -> int | None:
    """Return the oldest last lookup of the rows that wait in a partition."""
    import json

    with system.open_input_file(path) as source:
        data = source.read(source.size())  # read the whole file, because each read is a request
    tables = json.loads(data[_FIRST_LINE : _FIRST_LINE + int(data[:_FIRST_LINE].split()[2])])["tables"]
    return None if tables is None else min((segment["at"] for segment in json.loads(tables)["segments"]), default=None)
