"""The stream source that ends event time: it has no rows, and one file, which the last batch of a query reads.

    <checkpoint>/<query>/ending/17    event time ends in batch 17

It is Spark's own file source, which needs no Python process: a job with many queries would start as many. Spark logs
the files of a source, so a batch that runs again ends event time again, and the log of a checkpoint shows that it was
drained. Each query with event time has this source from its first run on, because Spark refuses a query with another
number of sources. A run that does not drain looks for its file outside of the checkpoint, where there is none.

    ending = ending_source(spark, None)
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from hintplan.runtime.spark.names import escaped_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ENDING_FOLDER = "ending"
"""The folder of a query with the file that ends event time. The name of the file is the number of the batch."""
CONTENT = b"\n"
"""The content of the file. It is not empty, because Spark reads an empty file without a task."""

_NOTHING = "hintplan-no-end-of-event-time"
"""A folder at the root of the driver's disk that does not exist."""
_DESCRIPTION = re.compile(rf"FileStreamSource\[.*/(?:{_NOTHING}|{ENDING_FOLDER})/\{{\d+\}}\]")
_LOGS = re.compile(r"logs\.\d+")


def ending_source(spark: SparkSession, file: str | None) -> DataFrame:
    """Return a stream without rows that triggers a batch if there is a ``file``, unless an earlier batch has read it.

    With None, it triggers no batch.
    """
    folder, _, name = (file or f"file:///{_NOTHING}/0").rpartition("/")
    # A pattern, because Spark takes the path of a single file for a directory.
    return spark.readStream.format("json").schema("ending int").load(f"{escaped_path(folder)}/{{{name}}}")


def is_ending_source(description: str) -> bool:
    """Return whether a source in Spark's progress only ends event time.

    >>> is_ending_source("FileStreamSource[file:/cp/sink_r/ending/{17}]")
    True
    >>> is_ending_source("FileStreamSource[file:/in]")
    False
    """
    return _DESCRIPTION.fullmatch(description) is not None


def ending_batch(log: bytes, query: str) -> int | None:
    """Return the batch that ends event time in ``query``, by an entry of a source's file log; None if it does not.

    >>> ending_batch(b'v1\\n{"path":"file:///cp/sink_r/ending/17","timestamp":1,"batchId":0}', "sink_r")
    17
    """
    lines = log.decode(errors="replace").splitlines()[1:]
    try:
        path = unquote(str(json.loads(lines[0])["path"])) if len(lines) == 1 else ""
    except (ValueError, KeyError, TypeError):
        return None
    folder, _, name = path.rpartition("/")
    return int(name) if folder.endswith(f"/{query}/{ENDING_FOLDER}") and name.isdecimal() else None


def ending_path(logs: Path, batch: int) -> str:
    """Return the absolute path of the file that ends event time in ``batch``, for a local query with these ``logs``."""
    query = logs.parent if _LOGS.fullmatch(logs.name) else logs
    return os.path.abspath(query / ENDING_FOLDER / str(batch))
