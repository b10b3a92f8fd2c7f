"""A stream source without rows whose offset moves when an operator has something to do, so that a batch runs without
new data.

It reads the manifests of the operator. They contain the time of the next result (``due``), such as the end of a window
of processing time; or, of an operator that parks rows of a lookup, the times at which they were last looked up. So an
idle job in which nothing is due has no batches. Spark receives the code by value, as in
:mod:`hintplan.runtime.spark.by_value`, with the only modules of hintplan that it uses.

    waking = waking_source(spark, place.root, delay=10_000)  # of rows that wait for a lookup
    waking = waking_source(spark, place.root, delay=None)    # of an operator that goes by time
"""

from __future__ import annotations

import json
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from hintplan.runtime import s3, stores
from hintplan.runtime.spark.versions import available_now

if TYPE_CHECKING:
    import pyarrow.fs as pafs

for _module in (sys.modules[__name__], stores, s3):
    cloudpickle.register_pickle_by_value(_module)  # type: ignore[no-untyped-call]

_FIRST_LINE = 40
"""The bytes of a manifest before its header, which contain the length of the header."""
_ITS_CLASSES = "org.apache.spark.sql.execution.datasources.v2.python."
_SHORTEST_BATCH = 0.05
"""Seconds in which no batch runs, so that manifests between two calls with a shorter pause are the same.

Spark asks for the offset every 10 ms while there is no data.
"""
_LONGEST = 1.0
"""Seconds after which manifests are listed again in any case."""


def waking_source(spark: SparkSession, root: str, delay: int | None) -> DataFrame:
    """Return a stream without rows that triggers a batch when the state below ``root`` has something due.

    With a ``delay``, rows that wait are due so many ms after they were last looked up. Without, manifests say it.
    """
    # A unique name: a session finds the source that another session has registered, but cannot read from it.
    name = f"hintplan_waking_{uuid.uuid4().hex}"
    spark.dataSource.register(type("Waking", (Waking,), {"registered_as": name}))
    options = {"root": root} | ({} if delay is None else {"delay": str(delay)})
    return spark.readStream.format(name).options(**options).load()


def is_waking_source(description: str, end_offset: str | None) -> bool:
    """Return whether a source in Spark's progress only wakes operators.

    PySpark 4.0 reports the offset in Python's notation, later versions as JSON.

    >>> is_waking_source("org.apache.spark.sql.execution.datasources.v2.python.PythonMicroBatchStream@1", '{"due":0}')
    True
    >>> is_waking_source("FileStreamSource[file:/in]", '{"logOffset":0}')
    False
    """
    offset = (end_offset or "").replace("'", '"')
    return description.startswith(_ITS_CLASSES) and offset.replace(" ", "").startswith('{"due":')


class Waking(DataSource):
    """The data source; each instance is registered under its own name.

    Options: ``root``, the directory of the state, and ``delay``, the wait of parked rows in ms; absent if no rows are
    parked.
    """

    registered_as: ClassVar[str]

    @classmethod
    def name(cls) -> str:
        return cls.registered_as

    def schema(self) -> str:
        return "waking int"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        delay = self.options.get("delay")
        return WakingReader(self.options["root"], None if delay is None else int(delay))


class WakingReader(DataSourceStreamReader, available_now()):  # type: ignore[misc]
    """A reader whose offset is the time that was due when it last looked and something was.

    A run that ends with its input waits for nothing: it takes what is due when it begins.
    """

    def __init__(self, root: str, delay: int | None, clock: Callable[[], float] = time.time) -> None:
        self._root = root
        self._delay = delay
        self._clock = clock
        self._last = {"due": 0}
        self._asked = self._listed = float("-inf")
        self._next: int | None = None
        self._by_manifest: dict[str, int | None] = {}
        """The time at which something is due, by manifest in force. Manifests never change."""
        self._is_frozen = False
        self._frozen: int | None = None

    def initialOffset(self) -> dict[str, int]:
        return {"due": 0}

    def prepareForTriggerAvailableNow(self) -> None:
        self._frozen, self._is_frozen = self._passed(), True

    def latestOffset(self, start: dict[str, int] | None = None, *limits: object) -> dict[str, int]:
        """Return another offset than ``start`` if something is due.

        Spark 4.2 and later give the ``start``. Earlier versions do not, so a restarted query may run a batch in which
        nothing is due.
        """
        due = self._frozen if self._is_frozen else self._passed()
        self._last = {"due": due} if due is not None else self._last if start is None else start
        return self._last

    def partitions(self, start: object, end: object) -> list[InputPartition]:
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        return iter(())

    def commit(self, end: object) -> None:
        pass

    def _passed(self) -> int | None:
        """Return the earliest time that is due by now, or None."""
        now = self._clock()
        if now - self._asked > _SHORTEST_BATCH or now - self._listed > _LONGEST or now < self._asked:
            self._next, self._listed = self._due(), now
        self._asked = now
        return self._next if self._next is not None and self._next <= now * 1000 else None

    def _due(self) -> int | None:
        """Return the earliest time (ms) at which something is due, or None if nothing ever is."""
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
        known = self._by_manifest
        self._by_manifest = {
            path: known[path] if path in known else _due_by(_header(system, path), self._delay) for path in paths
        }
        return min((at for at in self._by_manifest.values() if at is not None), default=None)


def _header(system: pafs.FileSystem, path: str) -> dict[str, Any]:
    """Return the header of a manifest."""
    with system.open_input_file(path) as source:
        data = source.read(source.size())  # read the whole file, because each read is a request
    header: dict[str, Any] = json.loads(data[_FIRST_LINE : _FIRST_LINE + int(data[:_FIRST_LINE].split()[2])])
    return header


def _due_by(header: dict[str, Any], delay: int | None) -> int | None:
    """Return the time (ms) at which a partition has something due, or None."""
    if delay is None:
        stored: dict[str, Any] = header.get("watermark") or {}
        due: int | None = stored.get("due")
        return due
    tables = header["tables"]
    oldest = None if tables is None else min((each["at"] for each in json.loads(tables)["segments"]), default=None)
    return None if oldest is None else int(oldest) + delay
