"""Files of Parquet, read by the Python workers instead of Spark.

Spark lists the files, and keeps in the checkpoint which have been read, as it does when it reads them itself; then a
worker gets paths, and rows are in Arrow from the start. That is for operators with state, which want them so. A column
that a file lacks is NULL, as it is for Spark; a type that Spark would refuse to read as the table's is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import RunError
from hintplan.runtime.engine.arrow_rows import UNCOUNTED, ArrowRows, Metrics
from hintplan.runtime.types import to_arrow

PATHS_DDL = "path string, modificationTime timestamp, length bigint, content binary"
"""What Spark knows of a file without reading it, under the names of its format for binary files."""

_SURE_SINCE = 1900
"""Since this year, times mean the same in the old calendar of Spark and in the new."""


def rows_of_files(paths: DataFrame, name: str, table: Table, columns: Sequence[str]) -> ArrowRows:
    """The ``columns`` of the files of table ``name`` whose ``paths`` come as a stream."""
    types = {column.name: column.type for column in table.columns}
    schema = pa.schema([(column, to_arrow(types[column])) for column in columns])
    read = partial(_read_paths, schema=schema, name=name)
    return ArrowRows(frame=paths, read=read, schema=schema, metrics=((UNCOUNTED, "sum"),))


def are_local(spark: SparkSession, path: str) -> bool:
    """Whether ``path`` is on a file system that workers have as a directory; not known on Spark Connect."""
    jvm: Any = spark.sparkContext._jvm
    found = jvm.org.apache.hadoop.fs.Path(path)
    system = found.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
    return urlsplit(str(system.getUri().toString())).scheme == "file"


def _read_paths(
    batches: Iterable[pa.RecordBatch], metrics: Metrics, *, schema: pa.Schema, name: str
) -> Iterator[pa.Table]:
    uncounted = 0
    for batch in batches:
        uncounted -= batch.num_rows  # Spark has counted the paths
        for path in batch.column("path").to_pylist():
            for rows in read_file(path.removeprefix("file:"), schema, name):
                uncounted += rows.num_rows
                yield rows
    metrics.append(uncounted)


def read_file(path: str, schema: pa.Schema, name: str) -> Iterator[pa.Table]:
    """The rows of one file, a table for each of its row groups; RunError, naming table ``name``, if that cannot be."""
    try:
        with pq.ParquetFile(path, memory_map=True, coerce_int96_timestamp_unit="us") as file:
            found = _types(file)
            present = [column for column in schema.names if column in found]
            for column in present:
                if not _fits(found[column], schema.field(column).type):
                    raise RunError(
                        f"table {name}: column {column} of {path} is of type {found[column]}, which cannot be read as "
                        f"{schema.field(column).type}",
                        hint="declare the column with the type that the files have, and cast it in the query",
                    )
            old = _has_old_calendar(file.metadata.metadata or {})
            for group in range(file.num_row_groups):
                rows = file.read_row_group(group, present, use_threads=False)
                size = file.metadata.row_group(group).num_rows
                columns = [
                    _as(field.type, rows[field.name], found[field.name])
                    if field.name in found
                    else pa.nulls(size, field.type)
                    for field in schema
                ]
                table = pa.table(columns, schema=schema)
                if old:
                    _refuse_old_times(table, path, name)
                yield table
    except (pa.ArrowInvalid, OSError) as error:
        raise RunError(f"table {name}: {path} cannot be read as Parquet: {error}") from error


def _types(file: pq.ParquetFile) -> dict[str, pa.DataType]:
    """The types of the columns' values, however they are laid out; INT96, which has no zone in Arrow, is in UTC."""
    old = {
        file.schema.column(i).path for i in range(len(file.schema)) if file.schema.column(i).physical_type == "INT96"
    }
    return {
        field.name: pa.timestamp("us", tz="UTC") if field.name in old else _plain(field.type)
        for field in file.schema_arrow
    }


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type of the values of ``kind``, which Arrow that has written a file lays out as they were in memory."""
    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    return kind


def _as(wanted: pa.DataType, column: pa.ChunkedArray, found: pa.DataType) -> pa.ChunkedArray:
    if column.type == wanted:
        return column
    if found != column.type:
        column = column.cast(found)
    return column.cast(wanted, safe=not pa.types.is_timestamp(wanted))  # of nanoseconds, three digits go


def _has_old_calendar(metadata: Mapping[bytes, bytes]) -> bool:
    """Whether Spark has written a file by the calendar that was in use before 1582, as it did before version 3."""
    version = metadata.get(b"org.apache.spark.version", b"")
    legacy = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
    return version.startswith((b"1.", b"2.")) or any(key in metadata for key in legacy)


def _refuse_old_times(rows: pa.Table, path: str, name: str) -> None:
    for field in rows.schema:
        if pa.types.is_date(field.type) or pa.types.is_timestamp(field.type):
            first = pc.min(rows[field.name].cast(pa.timestamp("us"), safe=False)).as_py()
            if first is not None and first.year < _SURE_SINCE:
                raise RunError(
                    f"table {name}: column {field.name} of {path} has times before {_SURE_SINCE}, and an old Spark has "
                    "written it by another calendar",
                    hint="write the file anew with Spark 3 or later",
                )


def _fits(found: Any, wanted: Any) -> bool:
    """Whether every value of ``found`` is one of ``wanted``; of times, to the microsecond."""
    kinds = pa.types
    fits = found == wanted
    if kinds.is_timestamp(wanted):
        same = kinds.is_timestamp(found) and (found.tz is None) == (wanted.tz is None)
        fits = same or (wanted.tz is None and kinds.is_date32(found))
    elif kinds.is_signed_integer(wanted) and kinds.is_integer(found):
        fits = found.bit_width + kinds.is_unsigned_integer(found) <= wanted.bit_width
    elif kinds.is_floating(wanted) and kinds.is_floating(found):
        fits = found.bit_width <= wanted.bit_width
    elif kinds.is_floating(wanted) and kinds.is_integer(found):
        fits = found.bit_width <= (24 if wanted.bit_width == 32 else 53)
    elif kinds.is_decimal(wanted) and kinds.is_integer(found):
        fits = wanted.precision - wanted.scale >= (10 if found.bit_width <= 32 else 20)
    elif kinds.is_decimal(wanted) and kinds.is_decimal(found):
        more = wanted.scale - found.scale
        fits = more >= 0 and found.precision + more <= wanted.precision
    elif kinds.is_string(wanted) or kinds.is_binary(wanted):
        fits = kinds.is_string(found) or kinds.is_binary(found)
        fits = fits or (kinds.is_binary(wanted) and kinds.is_fixed_size_binary(found))
    if kinds.is_null(found):
        fits = True
    return bool(fits)
