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

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

from plans.connectors.table import option, sink_directory
from plans.declarations.tables import Table
from plans.errors import RunError
from runtime.connectors.connector import FilesBelow
from runtime.connectors.filesystem.file_sink import add_files
from runtime.connectors.filesystem.row_kinds import with_op
from runtime.connectors.filesystem.source_files import STREAM_LOG, exists
from runtime.connectors.filesystem.spark_options import write_options
from runtime.connectors.micro_batch import MicroBatch

_ROWS = "rows"


def writer(
    df: DataFrame, name: str, table: Table, *, changelog: bool, checkpoint: str | None = None
) -> DataStreamWriter:
    """A writer that appends files below the table's path; RunError for a changelog without ``sink.changelog``."""
    _refuse_updates(name, table, changelog=changelog)
    out = _with_kinds(df, table, changelog=changelog).writeStream.format(table.options["format"]).outputMode("append")
    return out.option("path", table.options["path"]).options(**write_options(table))


def micro_batch_writer(
    name: str, table: Table, *, changelog: bool, checkpoint: str | None, part: str
) -> Callable[[MicroBatch, int], int]:
    """What hands a micro-batch to Spark's file sink, which skips one that it has had. RunError as :func:`writer`."""
    _refuse_updates(name, table, changelog=changelog)
    return partial(_write, table=table, changelog=changelog)


def _write(found: MicroBatch, batch: int, *, table: Table, changelog: bool) -> int:
    counted = _with_kinds(found.in_spark(), table, changelog=changelog).observe(_ROWS, F.count(F.lit(1)).alias(_ROWS))
    rows: Any = counted._jdf
    add_files(found.spark, table.options["format"], table.options["path"], write_options(table), rows, batch)
    metrics = rows.queryExecution().observedMetrics()
    return int(metrics.apply(_ROWS).getLong(0)) if metrics.contains(_ROWS) else 0


def _refuse_updates(name: str, table: Table, *, changelog: bool) -> None:
    if changelog and option(table, "sink.changelog") != "true":
        raise RunError(
            f"table {name} cannot take updates: files only grow",
            hint="set 'sink.changelog' = 'true' to write every change as a row with its kind in a column 'op'",
            path=f"tables.{name}.options.sink.changelog",
        )


def _with_kinds(df: DataFrame, table: Table, *, changelog: bool) -> DataFrame:
    return with_op(df, changelog=changelog) if option(table, "sink.changelog") == "true" else df


def batch_writer(df: DataFrame, name: str, table: Table) -> Callable[[], None]:
    """What adds files with all rows to the table's path; RunError, now, if a stream has written there."""
    path = table.options["path"]
    if exists(df.sparkSession, f"{path.rstrip('/')}/{STREAM_LOG}"):
        raise RunError(
            f"table {name} cannot be written to by a batch job: a streaming job has written to "
            f"{table.options['path']!r}, and what it did not write would not be read from there",
            hint="choose another path, or remove what the streaming job wrote",
            path=f"tables.{name}.options.path",
        )
    out = (
        _with_kinds(df, table, changelog=False)
        .write.format(table.options["format"])
        .mode("append")
        .option("path", path)
    )
    # Tasks hand their files over when the job is done, not each when it has ended.
    out = out.option("mapreduce.fileoutputcommitter.algorithm.version", "1")
    return out.options(**write_options(table)).save


def batches_had(table: Table, writer: Callable[[], str | None], files_below: FilesBelow) -> int:
    """The last batch in the directory's own list, whoever wrote it."""
    log = files_below(f"{sink_directory(table)}/{STREAM_LOG}")
    numbers = (name.removesuffix(".compact") for name in log)
    return max((int(number) for number in numbers if number.isdecimal()), default=-1)
