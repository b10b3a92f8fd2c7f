"""Files of Parquet that the tasks of Spark write for a table in a data lake, and what its log must know of them.

A file that nobody names is in no version of the table: what a task has written that failed, or that a crash ended,
does no harm. All lie directly below the root of the table, also those of partitions, whose values only the log has.
Needs no library of a lake, so workers have nothing but pyarrow.
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
"""Readers look at bounds of no more columns."""
_LONGEST = 64
_MOST_DIGITS = 15
"""JSON's numbers are read as DOUBLE by some, which would move the bounds of longer decimals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """A file below the root of its table: the text of each value of its partition, and what its rows have as JSON.

    It was ``modified`` at a time of its store, in ms since 1970.
    Of a file that says so itself, ``stats`` is its footer in Base64.
    """

    path: str
    size: int
    modified: int
    rows: int
    partition: Mapping[str, str | None]
    stats: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileWriting:
    """Writes the rows of a task into files; picklable, for ``mapInArrow``, from which a row comes for each file.

    Files are in ``directory`` below the root. Those that are ``whole`` have the columns of partitions, too, and their
    footer is all that is known of their rows.
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
        """Write the rows of ``tables``; RunError for NULL where there must be a value."""
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
        for partition, some in _parts(rows, self.divisions, None if self.whole else self.table):
            system, root = self.storage.files()
            name = f"{self.directory}part-{uuid.uuid4()}.parquet"
            footers: list[pq.FileMetaData] = []
            try:
                pq.write_table(
                    self._typed(some), f"{root}/{name}", filesystem=system, compression="snappy",
                    store_decimal_as_integer=self.whole, metadata_collector=footers,
                )  # fmt: skip
                made = system.get_file_info(f"{root}/{name}")
            except (OSError, pa.ArrowException) as error:
                with suppress(OSError):
                    system.delete_file(f"{root}/{name}")
                raise RunError(
                    f"table {self.table}: its files cannot be written: {' '.join(str(error).split())}",
                    hint="can the machines of Spark's workers write there, by the same path?",
                    path=f"tables.{self.table}",
                ) from None
            stats = _footer(footers[0]) if self.whole else _stats(some)
            yield DataFile(
                path=name, size=made.size, modified=made.mtime_ns // 1_000_000, rows=some.num_rows, partition=partition,
                stats=stats,
            )  # fmt: skip

    def _typed(self, rows: pa.Table) -> pa.Table:
        """The rows with the columns that must have a value known as such, where files say that themselves."""
        return pa.Table.from_arrays(rows.columns, schema=self.schema) if self.whole else rows


def file_of(row: Any) -> DataFile:
    """The file that a row from Spark tells of."""
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
    """The rows of each partition and the texts of its values; ``without`` its columns, where it names the table."""
    if not by:
        yield {}, rows
        return
    made = [division.values(rows[division.column]) for division in by]
    groups, first = encode_groups(made)
    for group, place in enumerate(first):
        values = {
            division.name: _text(found[int(place)].as_py(), division.column, without)
            for division, found in zip(by, made, strict=True)
        }
        some = rows.filter(pa.array(groups == group))
        yield values, some if without is None else some.drop_columns([division.column for division in by])


def _text(value: Any, name: str, table: str | None) -> str | None:
    if value == "" and table is not None:
        raise RunError(
            f"table {table}: a row has an empty text in column {name!r} of the partitions, which readers take for NULL",
            hint=f"write NULLIF({name}, '') in the query, or divide the table by another column",
            path=f"tables.{table}",
        )
    return partition_text(value)


def partition_text(value: Any) -> str | None:
    """A value of a partition as the logs of tables have it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.hex()
    return (
        str(value).lower() if isinstance(value, bool) else value.isoformat() if isinstance(value, date) else str(value)
    )


def _stats(rows: pa.Table) -> str:
    """Bounds and numbers of NULLs of the first columns, as the log of a table has them; no bounds that are not sure."""
    least: dict[str, Any] = {}
    most: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for name, column in list(zip(rows.column_names, rows.columns, strict=True))[:_FIRST_COLUMNS]:
        if pa.types.is_nested(column.type):
            continue
        nulls[name] = column.null_count
        bounds = _bounds(column)
        if bounds is not None:
            least[name], most[name] = bounds
    return json.dumps({"numRecords": rows.num_rows, "minValues": least, "maxValues": most, "nullCount": nulls})


def _bounds(column: pa.ChunkedArray) -> tuple[Any, Any] | None:
    kinds, kind = pa.types, column.type
    sure = kinds.is_integer(kind) or kinds.is_string(kind) or kinds.is_date(kind) or kinds.is_timestamp(kind)
    if not sure and not (kinds.is_decimal(kind) and kind.precision <= _MOST_DIGITS):
        return None
    found = pc.min_max(column).as_py()
    bounds = found["min"], found["max"]
    if None in bounds or any(isinstance(bound, str) and len(bound) > _LONGEST for bound in bounds):
        return None
    low, high = map(_told, bounds)
    return low, high


def _told(bound: Any) -> Any:
    if isinstance(bound, datetime):
        text = bound.replace(tzinfo=None).isoformat(timespec="microseconds")
        return f"{text}Z" if bound.tzinfo else text
    return bound.isoformat() if isinstance(bound, date) else float(bound) if isinstance(bound, Decimal) else bound
