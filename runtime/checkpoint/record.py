"""Reads and writes the record of a checkpoint: this process on this machine, Spark on other file systems.

    <checkpoint>/hintplan/         a line of JSON for each plan that ran on it (:mod:`hintplan.plans.checkpoint.record`)
    <checkpoint>/hintplan/_last    the last line, only on this machine: it shows if later lines were lost
    <checkpoint>/<query id>/       Spark's checkpoint of a query, named after its sink or what its sinks share

:mod:`hintplan.plans.compare.carryover` interprets the record, and decides which state carries over to another plan.
"""

from __future__ import annotations

import os
from pathlib import Path

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from hintplan.plans.checkpoint.record import (
    LAST,
    CheckpointRecord,
    last_line,
    local_record,
    parse_record,
    record_line,
    record_path,
)
from hintplan.plans.errors import RunError
from hintplan.plans.text.links import reason
from hintplan.runtime.checkpoint.files import checkpoint_files, local_directory
from hintplan.runtime.checkpoint.parts import batches_kept, refuse_damaged
from hintplan.runtime.checkpoint.run_lock import is_held, is_held_in
from hintplan.runtime.spark.names import escaped_path

_LINES = "record.jsonl"


def read_record(spark: SparkSession, checkpoint: str) -> CheckpointRecord | None:
    """Return the record of ``checkpoint``, or None if it is new; RunError if this version cannot read it."""
    directory = local_directory(spark, checkpoint)
    if directory is not None:
        return local_record(str(directory))
    try:
        lines = [row.value for row in spark.read.text(escaped_path(record_path(checkpoint))).collect()]
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        return None
    # A run creates the directory before its file: without lines, that run ended before any query started.
    return parse_record(lines, checkpoint)


def read_undamaged(spark: SparkSession, checkpoint: str) -> CheckpointRecord | None:
    """Return the record of ``checkpoint``, as :func:`read_record`; RunError if a part is missing or damaged.

    While a run is active in the checkpoint, only the record is checked.
    """
    record = read_record(spark, checkpoint)
    directory = local_directory(spark, checkpoint)
    files = checkpoint_files(spark, checkpoint)
    held = is_held_in(files) if directory is None else is_held(directory)
    if not held:
        refuse_damaged(files, record, checkpoint, kept=batches_kept(spark))
    return record


def write_record(spark: SparkSession, checkpoint: str, record: CheckpointRecord) -> None:
    """Append ``record`` to the records of ``checkpoint``, atomically; older records stay."""
    directory = local_directory(spark, checkpoint)
    if directory is not None:
        _write_local(directory, record)
        return
    line = spark.createDataFrame([(record_line(record),)], "value string")
    line.coalesce(1).write.mode("append").text(record_path(checkpoint))


def _write_local(directory: Path, record: CheckpointRecord) -> None:
    """Write all lines into one file, so that no single line can get lost."""
    folder = Path(record_path(str(directory)))
    file = folder / _LINES
    try:
        folder.mkdir(parents=True, exist_ok=True)
        before = file.read_bytes() if file.exists() else b""
        _replace(file, before + record_line(record).encode() + b"\n")
        _replace(folder / LAST, last_line(record).encode())
    except OSError as error:
        raise RunError(
            f"the checkpoint {directory} cannot be written: {reason(error, file)} ({error.filename or file})",
            hint="the user of the run needs the right to write there, and the disk must have room",
        ) from error


def _replace(file: Path, content: bytes) -> None:
    """Write ``file`` completely or not at all, even if the machine crashes."""
    new = file.with_name(f".{file.name}.new")
    with new.open("wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())
    new.replace(file)
