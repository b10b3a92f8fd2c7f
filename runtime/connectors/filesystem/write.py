"""Appends files to a table's directory.

Spark's own file sink, exactly once per checkpoint. Text formats write timestamps as Flink does
(``2020-01-01 00:00:00.000000``, with a ``Z`` for TIMESTAMP_LTZ) and NULL as ``null`` in JSON, as nothing in CSV unless
``csv.null-literal`` is set. A changelog needs ``'sink.changelog' = 'true'`` and gains a last column ``op`` with
``+I``, ``-U``, ``+U`` or ``-D``. A batch job adds its files when all of them are written; if it fails before, none is
added. It does not write to a directory that a stream writes to: readers of that go by the stream's list of files.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.utils import is_remote as is_remote_client

from hintplan.plans.connectors.files.formats import AVRO_PACKAGE
from hintplan.plans.connectors.reach import file_place
from hintplan.plans.connectors.table import option, sink_directory
from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import RunError
from hintplan.plans.text.links import link_to_nowhere
from hintplan.runtime.connectors.connector import FilesIn
from hintplan.runtime.connectors.filesystem.file_sink import FORMAT_CLASSES, add_files
from hintplan.runtime.connectors.filesystem.partitions import with_partition_names
from hintplan.runtime.connectors.filesystem.row_kinds import with_op
from hintplan.runtime.connectors.filesystem.source_files import STREAM_LOG, exists
from hintplan.runtime.connectors.filesystem.spark_options import spark_format, write_options
from hintplan.runtime.connectors.filesystem.stored import as_stored
from hintplan.runtime.connectors.filesystem.success import mark_batch, marking, refuse_marks_by_clients
from hintplan.runtime.connectors.micro_batch import MicroBatch
from hintplan.runtime.connectors.spark_package import lacking_package
from hintplan.runtime.engine.each_batch import written_by
from hintplan.runtime.spark.session import is_remote

_ROWS = "rows"
_HEAD = b"v1"
"""What an entry of the list of Spark's file sink begins with."""


def writer(
    df: DataFrame, name: str, table: Table, *, changelog: bool, checkpoint: str | None = None
) -> DataStreamWriter:
    """A writer that appends files below the table's path; RunError for a changelog without ``sink.changelog``."""
    _refuse_updates(name, table, changelog=changelog)
    refuse_marks_by_clients(df.sparkSession, name, table)
    _refuse_lost_place(name, table)
    rows = _as_files(_with_kinds(df, table, changelog=changelog), name, table)
    if not is_remote(df.sparkSession):
        return written_by(partial(_add, name=name, table=table, changelog=changelog), df, checkpoint)
    out = rows.writeStream.format(spark_format(table)).outputMode("append").partitionBy(*table.partitioned_by)
    return out.option("path", table.options["path"]).options(**write_options(table))


def micro_batch_writer(
    name: str, table: Table, *, changelog: bool, checkpoint: str | None, part: str
) -> Callable[[MicroBatch, int], int]:
    """What hands a micro-batch to Spark's file sink, which skips one that it has had. RunError as :func:`writer`."""
    _refuse_updates(name, table, changelog=changelog)
    _refuse_lost_place(name, table)
    return partial(_write, name=name, table=table, changelog=changelog)


def _add(df: DataFrame, batch: int, *, name: str, table: Table, changelog: bool) -> None:
    rows: Any = _as_files(_with_kinds(df, table, changelog=changelog), name, table)
    path, options = table.options["path"], write_options(table)
    add_files(rows.sparkSession, spark_format(table), path, table.partitioned_by, options, rows._jdf, batch)
    mark_batch(rows.sparkSession, table, batch)


def _write(found: MicroBatch, batch: int, *, name: str, table: Table, changelog: bool) -> int:
    written = _as_files(_with_kinds(found.in_spark(), table, changelog=changelog), name, table)
    rows: Any = written.observe(_ROWS, F.count(F.lit(1)).alias(_ROWS))._jdf
    path, options = table.options["path"], write_options(table)
    add_files(found.spark, spark_format(table), path, table.partitioned_by, options, rows, batch)
    mark_batch(found.spark, table, batch)
    metrics = rows.queryExecution().observedMetrics()
    return int(metrics.apply(_ROWS).getLong(0)) if metrics.contains(_ROWS) else 0


def _refuse_updates(name: str, table: Table, *, changelog: bool) -> None:
    if changelog and option(table, "sink.changelog") != "true":
        raise RunError(
            f"table {name} cannot take updates: files only grow",
            hint="set 'sink.changelog' = 'true' to write every change as a row with its kind in a column 'op'",
            path=f"tables.{name}.options.sink.changelog",
        )


def _refuse_lost_place(name: str, table: Table) -> None:
    """RunError if the directory, or Spark's list in it, is a link to nowhere."""
    place = file_place("path", f"{table.options['path'].rstrip('/')}/{STREAM_LOG}")
    link = link_to_nowhere(place.local_path) if place.is_local and not is_remote_client() else None
    if link is not None:
        raise RunError(
            f"table {name} cannot be written to: {link}",
            hint="put back what it leads to, or correct the path",
            path=f"tables.{name}.options.path",
        )


def _with_kinds(df: DataFrame, table: Table, *, changelog: bool) -> DataFrame:
    return with_op(df, changelog=changelog) if option(table, "sink.changelog") == "true" else df


def _as_files(rows: DataFrame, name: str, table: Table) -> DataFrame:
    """``rows`` as files and the names of their directories have them; RunError if Spark cannot write the format."""
    _require_package(rows.sparkSession, name, table)
    return with_partition_names(as_stored(rows.sparkSession, rows, name, table), table)


def _require_package(spark: SparkSession, name: str, table: Table) -> None:
    """RunError if Spark was started without the package of the format; a server of Spark Connect says so itself."""
    if table.options["format"] != "avro" or is_remote(spark):
        return
    jvm: Any = spark._jvm
    if not jvm.org.apache.spark.util.Utils.classIsLoadable(FORMAT_CLASSES["avro"]):
        raise lacking_package(spark, name, AVRO_PACKAGE)


def batch_writer(df: DataFrame, name: str, table: Table) -> Callable[[], None]:
    """What adds files with all rows to the table's path; RunError, now, if a stream has written there."""
    refuse_marks_by_clients(df.sparkSession, name, table)
    return marking(df.sparkSession, table, saving(df, name, table, table.options["path"]))


def saving(df: DataFrame, name: str, table: Table, place: str) -> Callable[[], None]:
    """What adds files with all rows at ``place``; RunError, now, if a stream has written to the table's path."""
    path = table.options["path"]
    _refuse_lost_place(name, table)
    if exists(df.sparkSession, f"{path.rstrip('/')}/{STREAM_LOG}"):
        raise RunError(
            f"table {name} cannot be written to by a batch job: a streaming job has written to "
            f"{table.options['path']!r}, and what it did not write would not be read from there",
            hint="choose another path, or remove what the streaming job wrote",
            path=f"tables.{name}.options.path",
        )
    out = (
        _as_files(_with_kinds(df, table, changelog=False), name, table)
        .write.format(spark_format(table))
        .partitionBy(*table.partitioned_by)
        .mode("append")
        .option("path", place)
    )
    # Tasks hand their files over when the job is done, not each when it has ended.
    out = out.option("mapreduce.fileoutputcommitter.algorithm.version", "1")
    return out.options(**write_options(table)).save


def batches_had(table: Table, writer: Callable[[], str | None], files_in: FilesIn) -> int:
    """The last batch in the directory's own list, whoever wrote it; RunError if that is damaged."""
    log = f"{sink_directory(table)}/{STREAM_LOG}"
    batches = {int(number): name for name in files_in(log) if (number := name.removesuffix(".compact")).isdecimal()}
    for name in batches.values():
        _refuse_spoilt(f"{log}/{name}")
    return max(batches, default=-1)


def _refuse_spoilt(path: str) -> None:
    """RunError if an entry of the list is none; Spark would only miss it when somebody reads the directory."""
    place = file_place("path", path)
    if not place.is_local or is_remote_client():
        return
    try:
        with open(place.local_path, "rb") as entry:
            what = None if entry.read(2) == _HEAD else "is not what Spark wrote there"
    except FileNotFoundError:  # a link, or a path on another file system that Spark goes by
        link = link_to_nowhere(place.local_path)
        what = None if link is None else f"cannot be read: {link}"
    except OSError as error:
        what = f"cannot be read: {error.strerror}"
    if what is not None:
        raise RunError(
            f"{place.local_path} {what}",
            hint="put back what was there, or write to another directory from a new checkpoint",
        )
