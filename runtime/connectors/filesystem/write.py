"""Appends files to a table's directory.

Spark's own file sink writes them, exactly once per checkpoint; ``text_sink`` writes some of them for its log. Text
formats write timestamps as Flink does (``2020-01-01 00:00:00.000000``, with a ``Z`` for TIMESTAMP_LTZ). NULL is
``null`` in JSON, and empty in CSV unless ``csv.null-literal`` is set. A changelog needs ``'sink.changelog' = 'true'``
and adds a last column ``op`` with ``+I``, ``-U``, ``+U`` or ``-D``.

A batch job adds its files after it has written all of them; if it fails earlier, it adds none. It does not write to the
directory of a stream, because readers of such a directory use only the stream's list of files.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.utils import is_remote as is_remote_client

from hintplan.plans.connectors.files.formats import AVRO_PACKAGE
from hintplan.plans.connectors.reach import file_place
from hintplan.plans.connectors.table import option, sink_directory
from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import RunError
from hintplan.plans.text.links import link_to_nowhere
from hintplan.runtime.connectors.connector import BatchWriter, CountingSink, FilesIn, QueryId, TableWrite
from hintplan.runtime.connectors.filesystem.file_sink import FORMAT_CLASSES, add_batch_files
from hintplan.runtime.connectors.filesystem.partitions import with_partition_names
from hintplan.runtime.connectors.filesystem.row_kinds import with_op
from hintplan.runtime.connectors.filesystem.source_files import STREAM_LOG, path_exists
from hintplan.runtime.connectors.filesystem.spark_options import spark_format, write_options
from hintplan.runtime.connectors.filesystem.stored import as_stored
from hintplan.runtime.connectors.filesystem.success import mark_batch, marking, refuse_marks_by_clients
from hintplan.runtime.connectors.micro_batch import MicroBatch
from hintplan.runtime.connectors.spark_package import require_spark_class
from hintplan.runtime.engine.each_batch import written_by
from hintplan.runtime.spark.session import is_remote

_ROWS = "rows"
_HEAD = b"v1"
"""The first bytes of an entry in the log of Spark's file sink."""


class FileWriter(CountingSink):
    """Appends files to the directory of a table."""

    def stream_writer(self, write: TableWrite, rows: DataFrame) -> DataStreamWriter:
        """Return a writer that appends files; raise RunError for a changelog without ``sink.changelog``."""
        spark, table = rows.sparkSession, write.table
        refuse_marks_by_clients(spark, write.name, table)
        refuse_misfits(write)
        stored = _as_files(_with_kinds(rows, table, changelog=write.changelog), write.name, table)
        if not is_remote(spark):
            return written_by(partial(_add, write=write), rows, write.checkpoint)
        out = stored.writeStream.format(spark_format(table)).outputMode("append").partitionBy(*table.partitioned_by)
        return out.option("path", table.options["path"]).options(**write_options(table))

    def micro_batch_writer(self, write: TableWrite) -> BatchWriter:
        """Return a function that passes a micro-batch to Spark's file sink, which skips a batch that it already has.

        Raises RunError in the cases of :meth:`stream_writer`.
        """
        refuse_misfits(write)
        return partial(_write, write=write)

    def batch_writer(self, write: TableWrite, rows: DataFrame) -> Callable[[], None]:
        """Return a function that adds files with all rows to the table's path.

        Raises RunError immediately if a stream has written there.
        """
        name, table = write.name, write.table
        refuse_marks_by_clients(rows.sparkSession, name, table)
        return marking(rows.sparkSession, table, saving(rows, name, table, table.options["path"]))

    def last_batch(self, table: Table, query: QueryId, files_in: FilesIn) -> int:
        """Return the last batch in the directory's log, whoever wrote it; raise RunError if the log is damaged."""
        log = f"{sink_directory(table)}/{STREAM_LOG}"
        batches = {int(number): name for name in files_in(log) if (number := name.removesuffix(".compact")).isdecimal()}
        for name in batches.values():
            _refuse_spoilt(f"{log}/{name}")
        return max(batches, default=-1)

    def counts_every_batch(self, table: Table) -> bool:
        return True


def _add(df: DataFrame, batch: int, *, write: TableWrite) -> None:
    table = write.table
    rows: Any = _as_files(_with_kinds(df, table, changelog=write.changelog), write.name, table)
    path, options = table.options["path"], write_options(table)
    add_batch_files(rows.sparkSession, spark_format(table), path, table.partitioned_by, options, rows._jdf, batch)
    mark_batch(rows.sparkSession, table, batch)


def _write(micro_batch: MicroBatch, batch: int, *, write: TableWrite) -> int:
    table = write.table
    written = _as_files(_with_kinds(micro_batch.in_spark(), table, changelog=write.changelog), write.name, table)
    rows: Any = written.observe(_ROWS, F.count(F.lit(1)).alias(_ROWS))._jdf
    path, options = table.options["path"], write_options(table)
    add_batch_files(micro_batch.spark, spark_format(table), path, table.partitioned_by, options, rows, batch)
    mark_batch(micro_batch.spark, table, batch)
    metrics = rows.queryExecution().observedMetrics()
    return int(metrics.apply(_ROWS).getLong(0)) if metrics.contains(_ROWS) else 0


def refuse_misfits(write: TableWrite) -> None:
    """Raise RunError for a changelog without ``sink.changelog``, and for a directory that is a dangling link."""
    if write.changelog and option(write.table, "sink.changelog") != "true":
        raise RunError(
            f"table {write.name} cannot take updates: files only grow",
            hint="set 'sink.changelog' = 'true' to write every change as a row with its kind in a column 'op'",
            path=f"tables.{write.name}.options.sink.changelog",
        )
    _refuse_lost_place(write.name, write.table)


def _refuse_lost_place(name: str, table: Table) -> None:
    """Raise RunError if the directory, or the log of Spark's file sink in it, is a dangling link."""
    place = file_place("path", f"{table.options['path'].rstrip('/')}/{STREAM_LOG}")
    link = link_to_nowhere(place.local_path) if place.is_local and not is_remote_client() else None
    if link is not None:
        raise RunError(
            f"table {name} cannot be written to: {link}",
            hint="restore its target, or correct the path",
            path=f"tables.{name}.options.path",
        )


def _with_kinds(df: DataFrame, table: Table, *, changelog: bool) -> DataFrame:
    return with_op(df, changelog=changelog) if option(table, "sink.changelog") == "true" else df


def _as_files(rows: DataFrame, name: str, table: Table) -> DataFrame:
    """Return ``rows`` as files and directory names represent them; raise RunError if Spark cannot write the format."""
    if table.options["format"] == "avro":
        require_spark_class(rows.sparkSession, FORMAT_CLASSES["avro"], name, AVRO_PACKAGE)
    return with_partition_names(as_stored(rows.sparkSession, rows, name, table), table)


def saving(df: DataFrame, name: str, table: Table, place: str) -> Callable[[], None]:
    """Return a function that adds files with all rows at ``place``.

    Raises RunError immediately if a stream has written to the table's path.
    """
    path = table.options["path"]
    _refuse_lost_place(name, table)
    if path_exists(df.sparkSession, f"{path.rstrip('/')}/{STREAM_LOG}"):
        raise RunError(
            f"table {name} cannot be written to by a batch job: a streaming job has written to "
            f"{table.options['path']!r}, and Spark would not read other files there",
            hint="choose another path, or remove the files of the streaming job",
            path=f"tables.{name}.options.path",
        )
    out = (
        _as_files(_with_kinds(df, table, changelog=False), name, table)
        .write.format(spark_format(table))
        .partitionBy(*table.partitioned_by)
        .mode("append")
        .option("path", place)
    )
    # Tasks must hand their files over when the job is done; version 2 does so at the end of each task.
    out = out.option("mapreduce.fileoutputcommitter.algorithm.version", "1")
    return out.options(**write_options(table)).save


def _refuse_spoilt(path: str) -> None:
    """Raise RunError if a log entry is damaged; Spark would notice this only when somebody reads the directory."""
    place = file_place("path", path)
    if not place.is_local or is_remote_client():
        return
    try:
        with open(place.local_path, "rb") as entry:
            problem = None if entry.read(2) == _HEAD else "was changed after Spark wrote it"
    except FileNotFoundError:  # a link, or a path on another file system that Spark uses by default
        link = link_to_nowhere(place.local_path)
        problem = None if link is None else f"cannot be read: {link}"
    except OSError as error:
        problem = f"cannot be read: {error.strerror}"
    if problem is not None:
        raise RunError(
            f"{place.local_path} {problem}",
            hint="restore the files, or write to another directory from a new checkpoint",
        )
