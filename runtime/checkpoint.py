"""The record beside a checkpoint, read and written through Spark, hence on any file system that Spark knows.

    <checkpoint>/hintplan/         a line of JSON for each plan that ran on it (:mod:`plans.checkpoint_record`)
    <checkpoint>/<query id>/       Spark's checkpoint of a query: named after its sink, or the operator above its sinks

What a record means, and what becomes of state under another plan, is decided in :mod:`plans.carryover`.
"""

from __future__ import annotations

import re

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from plans.checkpoint_record import CheckpointRecord, parse_record, record_line, record_path

__all__ = ["literally", "read_record", "write_record"]


def read_record(spark: SparkSession, checkpoint: str) -> CheckpointRecord | None:
    """What ``checkpoint`` belongs to, None if it is new; RunError if this version of hintplan cannot read it."""
    try:
        lines = [row.value for row in spark.read.text(literally(record_path(checkpoint))).collect()]
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        return None
    # The directory is made before its file: without lines, the run that made it ended before any query started.
    return parse_record(lines, checkpoint)


def write_record(spark: SparkSession, checkpoint: str, record: CheckpointRecord) -> None:
    """Add ``record`` to those of ``checkpoint``: it is there whole or not at all, and the older ones stay."""
    line = spark.createDataFrame([(record_line(record),)], "value string")
    line.coalesce(1).write.mode("append").text(record_path(checkpoint))


def literally(path: str) -> str:
    """``path`` for a reader of Spark's, which takes ``[``, ``*`` and the like for patterns; writers do not.

    >>> literally("/data/run[1]")
    '/data/run\\\\[1\\\\]'
    """
    return re.sub(r"([\[\]{}*?\\])", r"\\\1", path)
