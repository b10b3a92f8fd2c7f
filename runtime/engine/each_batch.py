"""Calls a function with each micro-batch of a query."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from hintplan.runtime.engine.logged_files import ALLOWED, REACHED, logged_files, refuse_links_out, refuse_missing
from hintplan.runtime.engine.this_task import batch_key
from hintplan.runtime.spark.interrupted import Interruptible
from hintplan.runtime.spark.session import is_remote
from hintplan.runtime.spark.shipping import with_code


def written_by(write: Callable[[DataFrame, int], object], df: DataFrame, logs: str | None) -> DataStreamWriter:
    """Return a writer that calls ``write`` with each micro-batch, on the driver; on Spark Connect, that is the server.

    ``logs`` is the future checkpoint location of the query, or None if its tasks do not need the number of their batch.
    The files of a batch are checked before ``write`` (:mod:`hintplan.runtime.engine.logged_files`).
    """
    if is_remote(df.sparkSession):
        write = write if logs is None else _Telling(write=write, key=batch_key(logs))
    else:
        if logs is not None and (logs.startswith("file://") or "://" not in logs):
            write = _Checking(write=write, logs=logs.removeprefix("file://"))
        write = Interruptible(write=write)
    # Spark ignores the result of the function.
    return df.writeStream.outputMode("append").foreachBatch(with_code(write, df))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Checking:
    """Calls ``write``, unless files of the batch have changed, or links lead where the run may not read."""

    write: Callable[[DataFrame, int], object]
    logs: str

    def __call__(self, df: DataFrame, batch: int) -> None:
        conf = df.sparkSession.conf
        paths = json.loads(conf.get(REACHED, "[]") or "[]")
        any_files = conf.get(ALLOWED, "false") == "true"
        if paths or not any_files:
            files = list(logged_files(Path(self.logs), batch))
            if not any_files:
                refuse_missing(files, batch)
            if paths:
                refuse_links_out(files, paths)
        self.write(df, batch)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Telling:
    """Calls ``write`` after setting the number of the batch in the configuration, which Spark sends to all tasks."""

    write: Callable[[DataFrame, int], object]
    key: str

    def __call__(self, df: DataFrame, batch: int) -> None:
        df.sparkSession.conf.set(self.key, str(batch))
        self.write(df, batch)
