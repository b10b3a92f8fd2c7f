"""Reads the files of a table, as a stream or as a batch.

Each file is read once, in order of modification time. New files are read as they appear, even with an old modification
time. A row that does not fit the columns fails the run. With ``ignore-parse-errors``, an invalid field becomes NULL,
and a row without any valid field is skipped. An empty CSV field is NULL; an empty quoted field is the empty string.
Spark records the file names in the checkpoint, so a path may come from the environment, but must not contain a secret.

With ``'source.changelog' = 'true'``, the field ``op`` of a row holds its row kind, as a changelog sink writes it. With
``upsert``, a row without this field is an upsert. Spark reads the files of a batch, and splits of large files, in
parallel. Where order matters, each row carries its arrival order: modification time, path and position in the file.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, IllegalArgumentException
from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamReader
from pyspark.sql.types import StringType, StructType

from hintplan.plans.connectors.files.csv_marks import may_break_lines
from hintplan.plans.connectors.files.formats import TEXTS, ignores_parse_errors, stored_columns
from hintplan.plans.connectors.reach import file_place
from hintplan.plans.connectors.table import option
from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import RunError
from hintplan.plans.text.links import link_to_nowhere
from hintplan.runtime.connectors.connector import ArrowSource, FileSource, TableRead
from hintplan.runtime.connectors.filesystem.avro_files import require_avro_files, rows_of_avro
from hintplan.runtime.connectors.filesystem.columnar.orc_files import has_orc, misfit_of_file, read_orc
from hintplan.runtime.connectors.filesystem.csv_files import (
    LastColumn,
    last_column,
    or_failure,
    with_last_as_text,
)
from hintplan.runtime.connectors.filesystem.file_systems import file_sizes, newest_file, why_spark_only
from hintplan.runtime.connectors.filesystem.in_arrow import FILE, FileRows, ListedFiles
from hintplan.runtime.connectors.filesystem.metadata import metadata_columns
from hintplan.runtime.connectors.filesystem.parquet_files import PATHS_DDL, read_parquet
from hintplan.runtime.connectors.filesystem.partitions import in_partitions, partition_values
from hintplan.runtime.connectors.filesystem.row_kinds import OP, kind_of_op
from hintplan.runtime.connectors.filesystem.source_files import (
    are_partitioned,
    load_batch,
    load_files,
    load_stream,
    path_depth,
    path_exists,
    refuse_unread_files,
)
from hintplan.runtime.connectors.filesystem.spark_options import read_options, spark_format
from hintplan.runtime.connectors.filesystem.stored import read_values, stored_schema
from hintplan.runtime.connectors.filesystem.text_files import LARGE, rows_of_text
from hintplan.runtime.engine.row_order import ROW_ORDER
from hintplan.runtime.engine.rows import UNCOUNTED, ArrowRows
from hintplan.runtime.operator import KIND
from hintplan.runtime.spark.failure import root_cause
from hintplan.runtime.spark.names import quoted
from hintplan.runtime.spark.session import is_remote
from hintplan.runtime.spark.versions import facts
from hintplan.runtime.types import to_arrow

Reader = TypeVar("Reader", DataFrameReader, DataStreamReader)

CORRUPT = "__corrupt"
_EVERY_AGE = "100000000d"
"""Longer than any two modification times are apart: Spark skips files that are older than the newest one by more."""
_PRUNING = "spark.sql.csv.parser.columnPruning.enabled"
"""Without it, Spark also checks the columns of CSV that a plan does not read."""
_NULL_ROWS = "spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing"
"""With it, and always in Spark 4.0, a ROW is NULL if the file has none of its fields."""
_NO_PATH = "the path cannot be listed"
"""No reason to show: ``read_stream`` raises the error."""


class FileReader(FileSource, ArrowSource):
    """Reads the files of a table."""

    def read_stream(self, read: TableRead) -> DataFrame:
        """Return the files as a stream, with row kinds for a changelog; RunError if the path does not exist."""
        spark, table, below = read.spark, read.table, bool(read.table.partitioned_by)
        if not is_remote(spark):
            refuse_unread_files(table.options["path"], read.name, below=below)
        return _load(read, _stream(spark, table), partial(load_stream, spark, below=below))

    def why_spark_reads(self, read: TableRead) -> str | None:
        spark, table, path = read.spark, read.table, read.table.options["path"]
        if is_remote(spark):
            return "the file system of Spark Connect is unknown"
        if table.options["format"] == "csv" and spark.conf.get(_PRUNING, "true") == "false":
            return f"{_PRUNING} is false"
        try:
            if table.partitioned_by:
                if not path_exists(spark, path):
                    return _NO_PATH
            elif are_partitioned(spark, path):
                return "directories have columns that PARTITIONED BY does not declare"
            reason = why_spark_only(spark, path)
            return _misfit(read) if reason is None and table.options["format"] == "orc" else reason
        except (Py4JJavaError, IllegalArgumentException):
            return _NO_PATH
        except AnalysisException as error:
            if error.getCondition() != "PATH_NOT_FOUND":
                raise
            return _NO_PATH

    def read_in_arrow(self, read: TableRead) -> ArrowRows:
        spark, name, table = read.spark, read.name, read.table
        path, below = table.options["path"], bool(table.partitioned_by)
        refuse_unread_files(path, name, below=below)
        reader = _stream(spark, table).format("binaryFile").schema(PATHS_DDL)
        files = load_stream(spark, reader, path, below=below)
        if below:
            files = in_partitions(files, table, path_depth(spark, path))
        of_files = partition_values(files, name, table) | metadata_columns(files, table)
        constant = [value.alias(column) for column, value in of_files.items() if column in read.columns]
        order = _row_order(files) if read.row_order else []
        listed, rows = [*constant, *order], _file_rows(read)
        if table.options["format"] in TEXTS:
            tasks = None if may_break_lines(table) else _tasks_for_pieces(spark, path, below=below)
            return rows_of_text(files, listed, rows, name, table, _parser(table), pieces=tasks)
        null_rows = facts(spark.version).always_null_rows or (spark.conf.get(_NULL_ROWS) or "").lower() == "true"
        read_file = read_orc if table.options["format"] == "orc" else partial(read_parquet, null_rows=null_rows)
        reading = ListedFiles(name=name, read_file=read_file, rows=rows)
        frame = files.select(F.col("path").alias(FILE), *listed)
        return ArrowRows(frame=frame, read=reading, schema=rows.schema, metrics=((UNCOUNTED, "sum"),))

    def read_batch(self, read: TableRead) -> DataFrame:
        """Return the current files as a batch."""
        spark, below = read.spark, bool(read.table.partitioned_by)
        if not is_remote(spark):
            refuse_unread_files(read.table.options["path"], read.name, below=below)
        return _load(read, spark.read, partial(load_batch, spark, below=below))

    def read_files(self, read: TableRead, files: list[str]) -> DataFrame:
        """Return the rows of some ``files`` of the table, as a batch."""
        # Spark finds columns of undeclared partitions relative to the table's path.
        spark_reader, table = read.spark.read, read.table
        reader = spark_reader if table.partitioned_by else spark_reader.option("basePath", table.options["path"])
        return _load(read, reader, lambda reader, path: load_files(reader, files))


def _stream(spark: SparkSession, table: Table) -> DataStreamReader:
    reader = spark.readStream.option("maxFileAge", _EVERY_AGE)  # the default is a week
    files = table.options.get("source.max-files-per-trigger")
    return reader.option("maxFilesPerTrigger", files) if files else reader


def _misfit(read: TableRead) -> str | None:
    """Return the reason why Spark must read the newest file, or None.

    The types of the other files are most likely the same. If they are not, their task fails the run.
    """
    if not has_orc():
        return "pyarrow lacks ORC"
    found = newest_file(read.spark, read.table.options["path"], below=bool(read.table.partitioned_by))
    return None if found is None else misfit_of_file(*found, _file_rows(read).stored)


def _tasks_for_pieces(spark: SparkSession, path: str, *, below: bool) -> int | None:
    """Return the number of tasks that read pieces of files, or None if no file is large."""
    if not any(size > LARGE for size in file_sizes(spark, path, below=below)):
        return None
    return int(spark.conf.get("spark.sql.shuffle.partitions") or 1)


def _file_rows(read: TableRead) -> FileRows:
    """Return the columns of the rows that workers read."""
    table, changelog = read.table, option(read.table, "source.changelog")
    types = {column.name: to_arrow(column.type) for column in table.columns if column.name in read.columns}
    in_files = {column.name for column in stored_columns(table)}
    kind = [] if changelog == "false" else [(KIND, pa.int8())]
    op = [] if changelog == "false" else [(OP, pa.string())]
    return FileRows(
        stored=pa.schema([*((column, types[column]) for column in read.columns if column in in_files), *op]),
        schema=pa.schema(
            [*((column, types[column]) for column in read.columns), *kind, *(ROW_ORDER if read.row_order else ())]
        ),
        upserts=changelog == "upsert",
    )


def _parser(table: Table) -> tuple[StructType, dict[str, str]]:
    """Return the schema and the options with which Spark's parser reads the files of ``table``."""
    schema = stored_schema(table)
    if option(table, "source.changelog") != "false":
        schema = schema.add(OP, StringType())
    return schema, read_options(table, breaks_lines=may_break_lines(table))


def _load(read: TableRead, reader: Reader, load: Callable[[Reader, str], DataFrame]) -> DataFrame:
    """Return the rows at the path of the table, read by ``load`` with a batch or stream ``reader``."""
    spark, name, table, columns, row_order = read.spark, read.name, read.table, read.columns, read.row_order
    schema = stored_schema(table)
    changelog = option(table, "source.changelog")
    if changelog != "false":
        schema = schema.add(OP, StringType())
    declared, last = StructType(schema.fields[:]), None  # add() changes the schema itself
    breaks_lines = may_break_lines(table) and not has_undeclared_partitions(spark, table)
    if breaks_lines:
        schema, last = with_last_as_text(schema), last_column(schema, table)
    file_format = table.options["format"]
    lenient = ignores_parse_errors(table)
    if file_format == "avro":
        require_avro_files(name)
    reader = reader.format("binaryFile" if file_format == "avro" else spark_format(table))
    reader = reader.options(**read_options(table, breaks_lines=breaks_lines))
    if lenient:
        schema = schema.add(CORRUPT, StringType())
        reader = reader.option("mode", "PERMISSIVE").option("columnNameOfCorruptRecord", CORRUPT)
    elif file_format in TEXTS:
        reader = reader.option("mode", "FAILFAST")
    try:
        rows = load(reader.schema(PATHS_DDL if file_format == "avro" else schema), table.options["path"])
        rows.schema.fieldNames()  # on Spark Connect, only a request for the schema makes the server check the path
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        raise RunError(
            f"table {name} cannot be read: {_nothing_at(table.options['path'])}",
            hint="create the directory, or correct the path; a relative path starts where the run starts",
            path=f"tables.{name}.options.path",
        ) from error
    except (Py4JJavaError, IllegalArgumentException) as error:
        raise RunError(
            f"table {name} cannot be read: {table.options['path']}: {root_cause(error)}",
            hint="check the scheme and the host of the path, and whether Spark has the packages of the file system",
            path=f"tables.{name}.options.path",
        ) from error
    if lenient:
        readable = [_field(field, last).isNotNull() for field in declared.fieldNames()]
        any_readable = readable[0]
        for is_readable in readable[1:]:
            any_readable = any_readable | is_readable
        rows = rows.where(~is_wrong(last) | any_readable)
    kind = []
    if changelog != "false":
        kind = [kind_of_op(_field(OP, last), upserts=changelog == "upsert").alias(KIND)]
    if table.partitioned_by:
        rows = in_partitions(rows, table, path_depth(spark, table.options["path"]))
    order: list[Column] = _row_order(rows) if row_order else []
    of_files: dict[str, Column] = partition_values(rows, name, table) | metadata_columns(rows, table)
    if file_format == "avro":
        of_files = {column: value for column, value in of_files.items() if column in columns}
        stored = {column.name: column.type for column in stored_columns(table)}
        types = {column: kind for column, kind in stored.items() if column in columns}
        types = types or dict(list(stored.items())[:1])  # Arrow has no row count without columns
        types |= {} if changelog == "false" else {OP: "STRING"}
        schema = StructType([field for field in schema.fields if field.name in types])
        rows = rows_of_avro(rows, name, types, schema, [*(v.alias(c) for c, v in of_files.items()), *order])
        of_files = {column: F.col(quoted(column)) for column in of_files}
        order = [F.col(field.name) for field in ROW_ORDER] if row_order else []
    values_of = read_values(spark, name, table) | of_files
    if last is not None and last.name in values_of:
        strict = last.value if lenient else or_failure(last, declared, rows.metadataColumn("_metadata")["file_path"])
        values_of[last.name] = strict
    values = (values_of[column].alias(column) for column in columns)
    selected: DataFrame = rows.select(*values, *kind, *order)
    return selected


def _field(name: str, last: LastColumn | None) -> Column:
    """Return the value of a field, or NULL."""
    return last.value if last is not None and name == last.name else F.col(quoted(name))


def is_wrong(last: LastColumn | None) -> Column:
    """Return a condition that is true if a row has an invalid field."""
    return F.col(CORRUPT).isNotNull() | (F.lit(False) if last is None else last.is_wrong)


def has_undeclared_partitions(spark: SparkSession, table: Table) -> bool:
    """Return true if undeclared directories like ``day=1`` add columns, so that a file ends with another column."""
    try:
        return not table.partitioned_by and are_partitioned(spark, table.options["path"])
    except (AnalysisException, Py4JJavaError, IllegalArgumentException):
        return False  # loading raises the error


def _row_order(rows: DataFrame) -> list[Column]:
    """Return the columns of ``ROW_ORDER``."""
    file = rows.metadataColumn("_metadata")
    values = (F.unix_micros(file["file_modification_time"]), file["file_path"], file["file_block_start"])
    return [value.alias(field.name) for value, field in zip(values, ROW_ORDER, strict=True)]


def _nothing_at(path: str) -> str:
    place = file_place("path", path)
    link = link_to_nowhere(place.local_path) if place.is_local else None
    return link or f"there is nothing at {path!r}"
