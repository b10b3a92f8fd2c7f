"""The filesystem connector: directories of CSV, JSON or Parquet files, read as streams or as they are, and appended to.

Reading: each file is read once, in order of modification time; new files are picked up as they appear, and a file that
arrives with an old time stamp is not skipped. A row that does not fit the columns fails the run; with
``ignore-parse-errors`` a field that cannot be read becomes NULL, and a row of which nothing can be read is skipped.
An empty CSV field is NULL, an empty quoted one is the empty string. Spark records the names of the files in the
checkpoint, so a path may come from the environment, but must not hold a secret.

With ``'source.changelog' = 'true'`` a row has a field ``op`` with its kind, as a changelog sink writes it. With
``upsert`` it may have one: a row without it is an upsert. Spark reads the files of a batch, and pieces of large ones,
at once; where the order matters, each row says when it arrived: by modification time, path and place in the file.

Writing: Spark's own file sink, exactly once per checkpoint. Text formats write timestamps as Flink does
(``2020-01-01 00:00:00.000000``, with a ``Z`` for TIMESTAMP_LTZ) and NULL as ``null`` in JSON, as nothing in CSV unless
``csv.null-literal`` is set. A changelog needs ``'sink.changelog' = 'true'`` and gains a last column ``op`` with
``+I``, ``-U``, ``+U`` or ``-D``. A batch job adds its files when all of them are written; if it fails before, none is
added. It does not write to a directory that a stream writes to: readers of that go by the stream's list of files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, IllegalArgumentException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter
from pyspark.sql.types import StringType

from plans.connectors.table import option
from plans.declarations.tables import Table
from plans.errors import RunError
from runtime.connectors.parquet_files import PATHS_DDL, are_local, rows_of_files
from runtime.connectors.schema import physical_schema
from runtime.connectors.source_files import STREAM_LOG, are_partitioned, exists, load_batch, load_files, load_stream
from runtime.engine.arrow_rows import ArrowRows
from runtime.engine.row_order import ROW_ORDER
from runtime.operator import KIND, UPDATE_BEFORE
from runtime.spark.failure import root_cause
from runtime.spark.session import is_remote
from runtime.types import to_arrow

__all__ = ["batch_writer", "read", "read_batch", "read_files", "read_in_arrow", "writer", "wrong_line"]

OP = "op"
_KINDS = ("+I", "-U", "+U", "-D")
_OPS = "; it must be +I, -U, +U or -D"
_UPSERT_OPS = "; it must be +I, +U or -D, or not be there"
_CORRUPT = "__corrupt"
_EVERY_AGE = "36500d"
_LONGEST = str(2**31 - 1)
"""Bytes of a text; by default, the parser of JSON takes no more than 20 million characters."""


def read(
    spark: SparkSession, name: str, table: Table, columns: tuple[str, ...], *, row_order: bool = False
) -> DataFrame:
    """The files of ``table`` as a stream of ``columns``, of a changelog with its kinds; RunError if there is no path.

    ``row_order`` adds the columns of ``ROW_ORDER``.
    """
    return _load(_stream(spark, table), partial(load_stream, spark), name, table, columns, row_order=row_order)


def read_in_arrow(spark: SparkSession, name: str, table: Table, columns: tuple[str, ...]) -> ArrowRows | None:
    """The same rows as those of :func:`read`, read by the workers in Arrow; None if only Spark can read them.

    That is so unless they are in local files of Parquet whose paths say nothing of their columns, and not on Spark
    Connect, where nothing is known of the file system.
    """
    path = table.options["path"]
    inserts = option(table, "source.changelog") == "false"
    if table.options["format"] != "parquet" or not inserts or is_remote(spark):
        return None
    try:
        if not are_local(spark, path):
            return None
    except (Py4JJavaError, IllegalArgumentException):
        return None  # as read() will say
    if any(pa.types.is_nested(to_arrow(column.type)) for column in table.columns if column.name in columns):
        return None
    try:
        if are_partitioned(spark, path):
            return None
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        return None  # as read() will say
    paths = load_stream(spark, _stream(spark, table).format("binaryFile").schema(PATHS_DDL), path)
    return rows_of_files(paths.select("path"), name, table, columns)


def _stream(spark: SparkSession, table: Table) -> DataStreamReader:
    reader = spark.readStream.option("maxFileAge", _EVERY_AGE)  # by default, files older by a week are dropped
    files = table.options.get("source.max-files-per-trigger")
    return reader.option("maxFilesPerTrigger", files) if files else reader


def read_batch(spark: SparkSession, name: str, table: Table, columns: tuple[str, ...]) -> DataFrame:
    """The files that ``table`` has now; otherwise as :func:`read`."""
    return _load(spark.read, partial(load_batch, spark), name, table, columns)


def read_files(spark: SparkSession, name: str, table: Table, columns: tuple[str, ...], files: list[str]) -> DataFrame:
    """As :func:`read_batch`, from these ``files`` of the table only, named as ``DataFrame.inputFiles`` names them."""
    # Columns that directories are named after are found from the table's path on.
    reader = spark.read.option("basePath", table.options["path"])
    return _load(reader, lambda reader, path: load_files(reader, files), name, table, columns)


def _load(
    reader: Any,
    load: Callable[[Any, str], DataFrame],
    name: str,
    table: Table,
    columns: tuple[str, ...],
    *,
    row_order: bool = False,
) -> DataFrame:
    """What ``reader``, of a stream or not, finds at the path of ``table``, where ``load`` looks."""
    schema = physical_schema(table)
    changelog = option(table, "source.changelog")
    if changelog != "false":
        schema = schema.add(OP, StringType())
    chosen = table.options["format"]
    lenient = chosen != "parquet" and option(table, f"{chosen}.ignore-parse-errors") == "true"
    reader = reader.format(chosen)
    reader = reader.options(**_read_options(table))
    if lenient:
        schema = schema.add(_CORRUPT, StringType())
        reader = reader.option("mode", "PERMISSIVE").option("columnNameOfCorruptRecord", _CORRUPT)
    elif chosen != "parquet":
        reader = reader.option("mode", "FAILFAST")
    try:
        rows = load(reader.schema(schema), table.options["path"])
        rows.schema.fieldNames()  # on Spark Connect, only asking for the schema makes the server look at the path
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        raise RunError(
            f"table {name} cannot be read: there is nothing at {table.options['path']!r}",
            hint="create the directory, or correct the path; a relative path starts where the run starts",
            path=f"tables.{name}.options.path",
        ) from error
    except (Py4JJavaError, IllegalArgumentException) as error:
        raise RunError(
            f"table {name} cannot be read: {table.options['path']}: {root_cause(error)}",
            hint="check the scheme and the host of the path, and whether Spark has what the file system needs",
            path=f"tables.{name}.options.path",
        ) from error
    if lenient:
        readable = [F.col(_quoted(field)).isNotNull() for field in schema.fieldNames() if field != _CORRUPT]
        some = readable[0]
        for one in readable[1:]:
            some = some | one
        rows = rows.where(F.col(_CORRUPT).isNull() | some)
    kind = [] if changelog == "false" else [_kind_of_op(upserts=changelog == "upsert").alias(KIND)]
    order = _row_order(rows) if row_order else []
    selected: DataFrame = rows.select(*(_quoted(column) for column in columns), *kind, *order)
    return selected


def wrong_line(spark: SparkSession, tables: Mapping[str, Table], file: str) -> tuple[str, str] | None:
    """The format of ``file``, and its first line that does not fit its table; None if there is none to be found."""
    for table in tables.values():
        chosen = table.options.get("format")
        if chosen not in ("csv", "json"):
            continue
        path = os.path.abspath(re.sub("^file:(//)?", "", table.options["path"]))
        if path not in (file, *map(str, Path(file).parents)):
            continue
        schema = physical_schema(table)
        if option(table, "source.changelog") != "false":
            schema = schema.add(OP, StringType())
        reader = spark.read.format(chosen).options(**_read_options(table))
        reader = reader.schema(schema.add(_CORRUPT, StringType()))
        reader = reader.option("mode", "PERMISSIVE").option("columnNameOfCorruptRecord", _CORRUPT)
        for row in load_batch(spark, reader, file).where(F.col(_CORRUPT).isNotNull()).limit(1).collect():
            return chosen, str(row[_CORRUPT])
    return None


def _kind_of_op(*, upserts: bool) -> Column:
    """The row kind that a row's ``op`` names; any other text fails the run, for its row cannot be understood.

    Among ``upserts`` a row without one is inserted, and none takes back what another replaces.
    """
    op = F.coalesce(F.col(OP), F.lit("+I")) if upserts else F.col(OP)
    what, ops = ("an upsert", _UPSERT_OPS) if upserts else ("a row of a changelog", _OPS)
    kind = F.raise_error(F.concat(F.lit(f"{what} has the op "), F.coalesce(op, F.lit("NULL")), F.lit(ops)))
    for number, name in enumerate(_KINDS):
        if not upserts or number != UPDATE_BEFORE:
            kind = F.when(op == name, F.lit(number)).otherwise(kind)
    return kind.cast("tinyint")


def _row_order(rows: DataFrame) -> list[Column]:
    """The columns of ``ROW_ORDER``."""
    file = rows.metadataColumn("_metadata")
    values = (F.unix_micros(file["file_modification_time"]), file["file_path"], file["file_block_start"])
    return [value.alias(field.name) for value, field in zip(values, ROW_ORDER, strict=True)]


def writer(
    df: DataFrame, name: str, table: Table, *, changelog: bool, checkpoint: str | None = None
) -> DataStreamWriter:
    """A writer that appends files below the table's path; RunError for a changelog without ``sink.changelog``."""
    if option(table, "sink.changelog") == "true":
        df = _with_op(df, changelog)
    elif changelog:
        raise RunError(
            f"table {name} cannot take updates: files only grow",
            hint="set 'sink.changelog' = 'true' to write every change as a row with its kind in a column 'op'",
            path=f"tables.{name}.options.sink.changelog",
        )
    out = df.writeStream.format(table.options["format"]).outputMode("append")
    return out.option("path", table.options["path"]).options(**_write_options(table))


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
    if option(table, "sink.changelog") == "true":
        df = _with_op(df, changelog=False)
    out = df.write.format(table.options["format"]).mode("append").option("path", path)
    # Tasks hand their files over when the job is done, not each when it has ended.
    out = out.option("mapreduce.fileoutputcommitter.algorithm.version", "1")
    return out.options(**_write_options(table)).save


def _read_options(table: Table) -> dict[str, str]:
    """Spark's options for reading: those of the format, without a limit for texts of JSON."""
    # Spark takes what nullValue stands for, "" by default, for NULL even in quotes; no file of CSV has this one.
    defaults = {"csv": {"nullValue": "\0"}, "json": {"maxStringLen": _LONGEST}}
    return defaults.get(table.options["format"], {}) | _format_options(table)


def _write_options(table: Table) -> dict[str, str]:
    """Spark's options for writing: those of the format, and times and NULL as Flink writes them."""
    options = {}
    if table.options["format"] != "parquet":
        options["timestampNTZFormat"] = "yyyy-MM-dd HH:mm:ss.SSSSSS"
        options["timestampFormat"] = "yyyy-MM-dd HH:mm:ss.SSSSSSXXX"
        options["timeZone"] = "UTC"
    if table.options["format"] == "json":
        options["ignoreNullFields"] = "false"
    return options | _format_options(table)


def _with_op(df: DataFrame, changelog: bool) -> DataFrame:
    if not changelog:
        return df.withColumn(OP, F.lit("+I"))
    names = F.array(*(F.lit(kind) for kind in _KINDS))
    data = [_quoted(column) for column in df.columns if column != KIND]
    return df.select(*data, F.element_at(names, F.col(KIND).cast("int") + 1).alias(OP))


def _format_options(table: Table) -> dict[str, str]:
    """Spark's options for the table's ``csv.*`` options; the quote is doubled to escape it, as RFC 4180 has it."""
    if table.options["format"] != "csv":
        return {}
    quote = "" if option(table, "csv.disable-quote-character") == "true" else option(table, "csv.quote-character") or ""
    options = {
        "sep": (option(table, "csv.field-delimiter") or ",").replace("\\t", "\t"),
        "quote": quote,
        "escape": option(table, "csv.escape-character") or quote,
    }
    if (literal := option(table, "csv.null-literal")) is not None:
        options["nullValue"] = literal
    if option(table, "csv.allow-comments") == "true":
        options["comment"] = "#"
    return options


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
