"""Parquet files, read by the Python workers instead of Spark.

Spark lists the files and records in the checkpoint which ones were read, as when it reads them itself. A worker gets
paths, and the rows are in Arrow from the start, as stateful operators need them. A column that a file lacks is NULL, as
in Spark. Column types that Spark would refuse to read as the declared ones are refused here, too
(:mod:`hintplan.runtime.connectors.filesystem.columnar.conversion`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.filesystem.columnar.conversion import converted, is_fitting, leaves, logical_type
from hintplan.runtime.connectors.filesystem.file_systems import opened
from hintplan.runtime.storage.remote_files import patiently

PATHS_DDL = "path string, modificationTime timestamp, length bigint, content binary"
"""The facts that Spark has about a file before reading it, in the columns of its ``binaryFile`` format."""

_INSTANT = pa.timestamp("us", tz="UTC")
_FEW_ROWS = 1000
"""So many rows are read at a time if Arrow cannot read all rows of a row group at once."""
_SURE_SINCE = 1900
"""Since this year, timestamps are the same in Spark's old hybrid calendar and in the new one."""


def read_parquet(path: str, schema: pa.Schema, name: str, *, null_rows: bool = False) -> Iterator[tuple[pa.Table, int]]:
    """Yield the rows of a file, one table per row group, and their number, which a table without columns lacks.

    ``path`` is a local path, or a URL as Hadoop writes it. With ``null_rows``, a ROW is NULL if the file has none of
    its fields. Raise RunError with the name of the table on failure.
    """
    path = path.removeprefix("file:")
    try:
        with _open(path) as file:
            types = _types(file)
            present = [column for column in schema.names if column in types]
            for column in present:
                if not is_fitting(types[column], schema.field(column).type):
                    raise RunError(
                        f"table {name}: column {column} of {path} is of type {types[column]}, which cannot be read as "
                        f"{schema.field(column).type}",
                        hint="declare the column with the type that the files have, and cast it in the query",
                    )
            old = _has_old_calendar(file.metadata.metadata or {})
            for group in range(file.num_row_groups):
                rows = patiently(partial(_row_group, file, group, present))
                size = file.metadata.row_group(group).num_rows
                columns = [
                    converted(rows[field.name], types[field.name], field.type, null_rows=null_rows)
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


def _row_group(file: pq.ParquetFile, group: int, columns: list[str]) -> pa.Table:
    try:
        return file.read_row_group(group, columns, use_threads=False)
    except pa.ArrowNotImplementedError:  # more than 2 GB of texts inside of a nested column
        batches = file.iter_batches(_FEW_ROWS, row_groups=[group], columns=columns, use_threads=False)
        return pa.Table.from_batches(list(batches))


def _types(file: pq.ParquetFile) -> dict[str, pa.DataType]:
    """Return the logical types of a file's columns. INT96 has no time zone in Arrow, but holds instants in UTC."""
    physical = (file.schema.column(index).physical_type for index in range(len(file.schema)))
    instants = (_INSTANT if stored == "INT96" else None for stored in physical)
    return {field.name: logical_type(field.type, instants) for field in file.schema_arrow}


def _has_old_calendar(metadata: Mapping[bytes, bytes]) -> bool:
    """Return true if Spark wrote the file with the hybrid calendar, as all versions before 3 did."""
    version = metadata.get(b"org.apache.spark.version", b"")
    legacy = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
    return version.startswith((b"1.", b"2.")) or any(key in metadata for key in legacy)


def _refuse_old_times(rows: pa.Table, path: str, name: str) -> None:
    for field in rows.schema:
        for values in leaves(rows[field.name]):
            if not (pa.types.is_date(values.type) or pa.types.is_timestamp(values.type)):
                continue
            first = pc.min(values.cast(pa.timestamp("us"), safe=False)).as_py()
            if first is not None and first.year < _SURE_SINCE:
                raise RunError(
                    f"table {name}: column {field.name} of {path} has times before {_SURE_SINCE}, and an old Spark has "
                    "written it by another calendar",
                    hint="rewrite the file with Spark 3 or later",
                )
