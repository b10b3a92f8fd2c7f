"""The record beside a checkpoint, read and written here if it is on this machine, elsewhere by Spark.

    <checkpoint>/hintplan/         a line of JSON for each plan that ran on it (:mod:`hintplan.plans.checkpoint.record`)
    <checkpoint>/hintplan/_last    which line is the last, on this machine: nothing follows it that would miss it
    <checkpoint>/<query id>/       Spark's checkpoint of a query: named after its sink, or what its sinks share

What a record means, and what becomes of state under another plan, is decided in
:mod:`hintplan.plans.compare.carryover`.
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
from hintplan.runtime.checkpoint.files import files_of, local_directory
from hintplan.runtime.checkpoint.parts import batches_kept, refuse_damaged
from hintplan.runtime.checkpoint.run_lock import is_held, is_held_in
from hintplan.runtime.spark.path_patterns import literally

_LINES = "record.jsonl"


def read_record(spark: SparkSession, checkpoint: str) -> CheckpointRecord | None:
    """What ``checkpoint`` belongs to, None if it is new; RunError if this version of hintplan cannot read it."""
    directory = local_directory(spark, checkpoint)
    if directory is not None:
        return local_record(str(directory))
    try:
        lines = [row.value for row in spark.read.text(literally(record_path(checkpoint))).collect()]
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        return None
    # The directory is made before its file: without lines, the run that made it ended before any query started.
    return parse_record(lines, checkpoint)


def read_undamaged(spark: SparkSession, checkpoint: str) -> CheckpointRecord | None:
    """What :func:`read_record` says of ``checkpoint``; RunError if a part of it is missing or damaged.

    While a run goes on there, only the record is looked at.
    """
    record = read_record(spark, checkpoint)
    directory = local_directory(spark, checkpoint)
    files = files_of(spark, checkpoint)
    held = is_held_in(files) if directory is None else is_held(directory)
    if not held:
        refuse_damaged(files, record, checkpoint, kept=batches_kept(spark))
    return record


def write_record(spark: SparkSession, checkpoint: str, record: CheckpointRecord) -> None:
    """Add ``record`` to those of ``checkpoint``: it is there whole or not at all, and the older ones stay."""
    directory = local_directory(spark, checkpoint)
    if directory is not None:
        _write_local(directory, record)
        return
    line = spark.createDataFrame([(record_line(record),)], "value string")
    line.coalesce(1).write.mode("append").text(record_path(checkpoint))


def _write_local(directory: Path, record: CheckpointRecord) -> None:
    """All lines in one file, so that none of them can be lost without the others."""
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
    """Write ``file`` as a whole or not at all, whatever happens to the machine."""
    new = file.with_name(f".{file.name}.new")
    with new.open("wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())
    new.replace(file)
