"""Parquet files that Spark's tasks write for a table in a data lake, with the facts that the table's log needs.

A file belongs to a version of the table only if a commit adds it. So files of failed tasks do no harm. All files are in
one directory, without directories for partitions: the log has the partition values. Needs no library of a lake, so
workers need only pyarrow.
"""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.lakes.divisions import Division
from hintplan.runtime.connectors.lakes.storage import Storage
from hintplan.runtime.kernels.not_null import refuse_nulls
from hintplan.runtime.state.identity import encode_groups

FILES_DDL = "path string, size long, modified long, rows long, partition string, stats string"
_FILES = pa.schema([("path", pa.string()), ("size", pa.int64()), ("modified", pa.int64()), ("rows", pa.int64()),
                    ("partition", pa.string()), ("stats", pa.string())])  # fmt: skip
_BUFFERED_BYTES = 256 << 20
_FIRST_COLUMNS = 32
"""The number of columns with bounds; readers use no more."""
_LONGEST = 64
_MOST_DIGITS = 15
"""Some readers parse JSON numbers as DOUBLE, which would round the bounds of longer decimals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """A file below the root of its table, with the texts of its partition values, and statistics of its rows.

    ``modified`` is the modification time in the store, in ms since 1970. ``stats`` is JSON, or for
    ``FileWriting.whole`` the footer of the file in Base64.
    """

    path: str
    size: int
    modified: int
    rows: int
    partition: Mapping[str, str | None]
    stats: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileWriting:
    """Writes the rows of a task to files; picklable, for ``mapInArrow``, with one output row per file.

    Files are in ``directory`` below the root. ``whole`` files also contain the partition columns, and their footer is
    the only description of their rows.
    """

    table: str
    storage: Storage
    schema: pa.Schema
    divisions: tuple[Division, ...]
    required: frozenset[str]
    directory: str = ""
    whole: bool = False

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for file in self.written(map(pa.Table.from_batches, ([batch] for batch in batches))):
            values = (file.path, file.size, file.modified, file.rows, json.dumps(file.partition), file.stats)
            yield pa.record_batch([pa.array([value]) for value in values], schema=_FILES)

    def written(self, tables: Iterable[pa.Table]) -> Iterator[DataFile]:
        """Write the rows of ``tables``, and yield the files; raise RunError for a NULL in a required column."""
        waiting: list[pa.Table] = []
        size = 0
        for table in tables:
            if table.num_rows:
                rows = table.select(self.schema.names).cast(_nullable(self.schema))
                refuse_nulls(rows, [name for name in rows.column_names if name in self.required], self.table)
                waiting.append(rows)
                size += rows.nbytes
            if size > _BUFFERED_BYTES:
                yield from self._files(pa.concat_tables(waiting))
                waiting, size = [], 0
        if waiting:
            yield from self._files(pa.concat_tables(waiting))

    def _files(self, rows: pa.Table) -> Iterator[DataFile]:
        for partition, part in _parts(rows, self.divisions, None if self.whole else self.table):
            system, root = self.storage.files()
            name = f"{self.directory}part-{uuid.uuid4()}.parquet"
            footers: list[pq.FileMetaData] = []
            try:
                pq.write_table(
                    self._typed(part), f"{root}/{name}", filesystem=system, compression="snappy",
                    store_decimal_as_integer=self.whole, metadata_collector=footers,
                )  # fmt: skip
                info = system.get_file_info(f"{root}/{name}")
            except (OSError, pa.ArrowException) as error:
                with suppress(OSError):
                    system.delete_file(f"{root}/{name}")
                raise RunError(
                    f"table {self.table}: its files cannot be written: {' '.join(str(error).split())}",
                    hint="can the machines of Spark's workers write there, by the same path?",
                    path=f"tables.{self.table}",
                ) from None
            stats = _footer(footers[0]) if self.whole else _stats(part)
            yield DataFile(
                path=name, size=info.size, modified=info.mtime_ns // 1_000_000, rows=part.num_rows, partition=partition,
                stats=stats,
            )  # fmt: skip

    def _typed(self, rows: pa.Table) -> pa.Table:
        """Return the rows with the schema of the table, including NOT NULL, if the files must contain it."""
        return pa.Table.from_arrays(rows.columns, schema=self.schema) if self.whole else rows


def file_of(row: Any) -> DataFile:
    """Return the file that is described by a row from Spark."""
    return DataFile(
        path=row["path"], size=row["size"], modified=row["modified"], rows=row["rows"],
        partition=json.loads(row["partition"]), stats=row["stats"],
    )  # fmt: skip


def _nullable(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_nullable(True) for field in schema])


def _footer(found: pq.FileMetaData) -> str:
    sink = pa.BufferOutputStream()
    found.write_metadata_file(sink)
    return base64.b64encode(sink.getvalue()).decode()


def _parts(
    rows: pa.Table, by: tuple[Division, ...], without: str | None
) -> Iterator[tuple[dict[str, str | None], pa.Table]]:
    """Yield the partition values as texts, and the rows of each partition.

    ``without`` is the name of the table if its files omit the partition columns, otherwise None.
    """
    if not by:
        yield {}, rows
        return
    partition_columns = [division.values(rows[division.column]) for division in by]
    groups, first = encode_groups(partition_columns)
    for group, position in enumerate(first):
        values = {
            division.name: _text(column[int(position)].as_py(), division.column, without)
            for division, column in zip(by, partition_columns, strict=True)
        }
        part_rows = rows.filter(pa.array(groups == group))
        yield values, part_rows if without is None else part_rows.drop_columns([division.column for division in by])


def _text(value: object, name: str, table: str | None) -> str | None:
    if value == "" and table is not None:
        raise RunError(
            f"table {table}: a row has an empty text in column {name!r} of the partitions, which readers take for NULL",
            hint=f"write NULLIF({name}, '') in the query, or divide the table by another column",
            path=f"tables.{table}",
        )
    return partition_text(value)


def partition_text(value: object) -> str | None:
    """Return a partition value in the form of the tables' logs."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.hex()
    return (
        str(value).lower() if isinstance(value, bool) else value.isoformat() if isinstance(value, date) else str(value)
    )


def _stats(rows: pa.Table) -> str:
    """Return the log's statistics of the first columns: exact bounds, where there are any, and the number of NULLs."""
    minimums: dict[str, Any] = {}
    maximums: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for name, column in list(zip(rows.column_names, rows.columns, strict=True))[:_FIRST_COLUMNS]:
        if pa.types.is_nested(column.type):
            continue
        nulls[name] = column.null_count
        bounds = _bounds(column)
        if bounds is not None:
            minimums[name], maximums[name] = bounds
    return json.dumps({"numRecords": rows.num_rows, "minValues": minimums, "maxValues": maximums, "nullCount": nulls})


def _bounds(column: pa.ChunkedArray) -> tuple[Any, Any] | None:
    kinds, kind = pa.types, column.type
    is_exact = kinds.is_integer(kind) or kinds.is_string(kind) or kinds.is_date(kind) or kinds.is_timestamp(kind)
    if not is_exact and not (kinds.is_decimal(kind) and kind.precision <= _MOST_DIGITS):
        return None
    extremes = pc.min_max(column).as_py()
    bounds = extremes["min"], extremes["max"]
    if None in bounds or any(isinstance(bound, str) and len(bound) > _LONGEST for bound in bounds):
        return None
    low, high = map(_json_bound, bounds)
    return low, high


def _json_bound(bound: object) -> Any:
    if isinstance(bound, datetime):
        text = bound.replace(tzinfo=None).isoformat(timespec="microseconds")
        return f"{text}Z" if bound.tzinfo else text
    return bound.isoformat() if isinstance(bound, date) else float(bound) if isinstance(bound, Decimal) else bound
