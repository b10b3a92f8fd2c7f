"""Parquet files, read by the Python workers instead of Spark.

Spark lists the files and records in the checkpoint which ones were read, as when it reads them itself. A worker gets
paths, and the rows are in Arrow from the start, as stateful operators need them. A column that a file lacks is NULL, as
in Spark. Column types that Spark would refuse to read as the declared ones are refused here, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.filesystem.file_systems import opened
from hintplan.runtime.storage.remote_files import patiently

PATHS_DDL = "path string, modificationTime timestamp, length bigint, content binary"
"""The facts that Spark has about a file before reading it, in the columns of its ``binaryFile`` format."""

_SURE_SINCE = 1900
"""Since this year, timestamps are the same in Spark's old hybrid calendar and in the new one."""


def read_parquet(path: str, schema: pa.Schema, name: str) -> Iterator[tuple[pa.Table, int]]:
    """Yield the rows of a file, one table per row group, and their number, which a table without columns lacks.

    ``path`` is a local path, or a URL as Hadoop writes it. Raise RunError with the name of the table on failure.
    """
    path = path.removeprefix("file:")
    try:
        with _open(path) as file:
            types = _types(file)
            present = [column for column in schema.names if column in types]
            for column in present:
                if not _fits(types[column], schema.field(column).type):
                    raise RunError(
                        f"table {name}: column {column} of {path} is of type {types[column]}, which cannot be read as "
                        f"{schema.field(column).type}",
                        hint="declare the column with the type that the files have, and cast it in the query",
                    )
            old = _has_old_calendar(file.metadata.metadata or {})
            for group in range(file.num_row_groups):
                rows = patiently(partial(file.read_row_group, group, present, use_threads=False))
                size = file.metadata.row_group(group).num_rows
                columns = [
                    _as(field.type, rows[field.name], types[field.name])
                    if field.name in types
                    else pa.nulls(size, field.type)
                    for field in schema
                ]
                table = pa.table(columns, schema=schema)
                if old:
                    _refuse_old_times(table, path, name)
                yield table, size
    except (pa.ArrowInvalid, OSError) as error:
        raise RunError(f"table {name}: {path} cannot be read as Parquet: {error}") from error


@contextmanager
def _open(path: str) -> Iterator[pq.ParquetFile]:
    if "://" not in path:
        with pq.ParquetFile(path, memory_map=True, coerce_int96_timestamp_unit="us") as file:
            yield file
        return
    system, inner = opened(path)
    with system.open_input_file(inner) as source:
        yield patiently(lambda: pq.ParquetFile(source, pre_buffer=True, coerce_int96_timestamp_unit="us"))


def _types(file: pq.ParquetFile) -> dict[str, pa.DataType]:
    """Return the logical types of a file's columns. INT96 has no time zone in Arrow, but holds instants in UTC."""
    old = {
        file.schema.column(i).path for i in range(len(file.schema)) if file.schema.column(i).physical_type == "INT96"
    }
    return {
        field.name: pa.timestamp("us", tz="UTC") if field.name in old else _plain(field.type)
        for field in file.schema_arrow
    }


def _plain(kind: pa.DataType) -> pa.DataType:
    """Return the logical type of ``kind``: a file written from Arrow keeps the writer's in-memory layout."""
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
    return column.cast(wanted, safe=not pa.types.is_timestamp(wanted))  # nanoseconds are truncated to microseconds


def _has_old_calendar(metadata: Mapping[bytes, bytes]) -> bool:
    """Return true if Spark wrote the file with the hybrid calendar, as all versions before 3 did."""
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
                    hint="rewrite the file with Spark 3 or later",
                )


def _fits(found: Any, wanted: Any) -> bool:
    """Return true if each value of type ``found`` is one of type ``wanted``; times may be truncated to microseconds."""
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
        extra_scale = wanted.scale - found.scale
        fits = extra_scale >= 0 and found.precision + extra_scale <= wanted.precision
    elif kinds.is_string(wanted) or kinds.is_binary(wanted):
        fits = kinds.is_string(found) or kinds.is_binary(found)
        fits = fits or (kinds.is_binary(wanted) and kinds.is_fixed_size_binary(found))
    if kinds.is_null(found):
        fits = True
    return bool(fits)
