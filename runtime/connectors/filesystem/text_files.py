"""Text files, read by the Python workers instead of Spark.

Spark lists the files, as for :mod:`hintplan.runtime.connectors.filesystem.parquet_files`. A task reads them in two
steps. The first reads blocks of records with Arrow (:mod:`hintplan.runtime.connectors.filesystem.text_blocks`), and
passes on the rows as blobs. It passes on a record that Arrow might read differently as it is in the file, and Spark's
parser reads it (:class:`OddRecords`). The second step unpacks the blobs and adds the rows of these records. The rows of
a file stay in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress, groupby
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.filesystem.in_arrow import FILE, FileRows
from hintplan.runtime.connectors.filesystem.odd_csv import ODD_CSV
from hintplan.runtime.connectors.filesystem.odd_json import ODD_JSON
from hintplan.runtime.connectors.filesystem.odd_records import CORRUPT, LIMIT, MALFORMED, TEXT, OddRecords
from hintplan.runtime.connectors.filesystem.row_kinds import OP
from hintplan.runtime.connectors.filesystem.text_blocks import (
    ReadBlock,
    block_reader,
    last_record_end,
    plain_records,
    record_ends,
)
from hintplan.runtime.connectors.filesystem.text_pieces import CODECS, FAULTS, blocks, content, piece
from hintplan.runtime.engine.blobs import blob_column, from_blob
from hintplan.runtime.engine.marks import Marking
from hintplan.runtime.engine.pack import gather
from hintplan.runtime.engine.row_order import ROW_ORDER
from hintplan.runtime.engine.rows import UNCOUNTED, ArrowRows, Dropping, Read, ReadBefore, Report, Step
from hintplan.runtime.spark.map_in_arrow import map_in_arrow
from hintplan.runtime.spark.names import named_function, quoted

PIECE = 64 << 20
"""The size in bytes of the pieces in which tasks read a large file."""
LARGE = 2 * PIECE
"""A file of more bytes is worth reading in pieces."""
URL, START = "__url", "__start"
"""The columns of the listed files that have their URLs, and the start of the piece to read."""

_PARTS = 16
"""The number of parts of a block that are read on their own if the block as a whole cannot be read."""
_FEW = 32
"""In a part of fewer records, odd ones are not separated from the others."""
_ROWS, _FILES, _BEFORE, _ONE, _MANY = "__rows", "__files", "__before", "__one", "__many"
_READ = pa.schema(
    [(_ROWS, pa.binary()), (TEXT, pa.binary()), (LIMIT, pa.string()), (_FILES, pa.int32()), (_BEFORE, pa.int32())]
)
"""``_BEFORE`` is the number of rows of the blob before an odd record that come before the record; NULL for all."""
_OF_FORMATS: Mapping[str, OddRecords] = {"csv": ODD_CSV, "json": ODD_JSON}


def rows_of_text(
    files: DataFrame,
    listed: Sequence[Column],
    rows: FileRows,
    name: str,
    table: Table,
    parser: tuple[StructType, Mapping[str, str]],
    *,
    pieces: int | None,
) -> ArrowRows:
    """Return ``rows`` of the ``files`` of table ``name``, a stream of Spark's format ``binaryFile``.

    ``listed`` are the columns that are the same in a whole file. ``parser`` are the schema and the options of Spark's
    parser. With ``pieces``, a number of tasks, large files are read in pieces.
    """
    file = files.metadataColumn("_metadata")
    start: Column = F.lit(0).cast("bigint")
    if pieces is not None:
        is_packed = F.rlike(F.col("path"), F.lit(r"\.(" + "|".join(suffix[1:] for suffix in CODECS) + ")$"))
        last = F.when(is_packed, F.lit(0)).otherwise(F.greatest(file["file_size"] - 1, F.lit(0))).cast("bigint")
        start = F.explode(F.sequence(F.lit(0).cast("bigint"), last, F.lit(PIECE).cast("bigint")))
    facts = (F.col("path").alias(FILE), file["file_path"].alias(URL), start.alias(START))
    list_of_files = files.select(*facts, *listed)
    constant = list_of_files.columns[len(facts) :]
    if pieces is not None:
        block = ROW_ORDER.names[-1]
        if block in constant:
            list_of_files = list_of_files.withColumn(block, F.col(START))
        list_of_files = list_of_files.repartition(pieces)
    task = _ReadingFiles(name=name, table=table, stored=rows.stored, in_pieces=pieces is not None)
    fields = [list_of_files.schema[column] for column in (URL, *constant)]
    out = StructType([*from_arrow_schema(_READ, prefer_timestamp_ntz=True).fields, *fields])
    read = map_in_arrow(list_of_files, named_function(task, name), out)
    schema, options = parser
    one, many = _OF_FORMATS[table.options["format"]].parsed(F.col(TEXT), schema, options, table, rows.stored.names)
    of_files = (F.col(quoted(column)) for column in (URL, *constant))
    parsed = read.select(_ROWS, _FILES, _BEFORE, LIMIT, one.alias(_ONE), many.alias(_MANY), *of_files)
    unpack = _Unpacking(file_format=table.options["format"], rows=rows)
    return ArrowRows(frame=parsed, read=unpack, schema=rows.schema, metrics=((UNCOUNTED, "sum"),))


@dataclass(frozen=True, slots=True, kw_only=True)
class _ReadingFiles:
    """Reads the ``stored`` columns of the files that the batches of a task name; picklable."""

    name: str
    table: Table
    stored: pa.Schema
    in_pieces: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        read = block_reader(self.table, [column for column in self.stored.names if column != OP])
        assert read is not None, "the connector leaves such a table to Spark"
        for batch in batches:
            for row, (path, start) in enumerate(
                zip(batch.column(FILE).to_pylist(), batch.column(START).to_pylist(), strict=True)
            ):
                try:
                    yield from self._rows(path.removeprefix("file:"), start, batch.slice(row, 1), read)
                except FAULTS as error:
                    raise RunError(
                        f"table {self.name}: {path} cannot be read: {error or type(error).__name__}"
                    ) from error

    def _rows(self, path: str, start: int, listed: pa.RecordBatch, read: ReadBlock) -> Iterator[pa.RecordBatch]:
        is_cut = self.in_pieces and not path.endswith(tuple(CODECS))
        chunks = piece(path, start, PIECE) if is_cut else content(path)
        odd = _OF_FORMATS[self.table.options["format"]].reader(self.table, self.stored.names)

        columns_of_file = [column for column in self.stored.names if column != OP]

        def groups() -> Iterator[Part]:
            for block in blocks(chunks, partial(last_record_end, self.table)):
                plain = partial(plain_records, self.table, columns_of_file)
                yield from parts(block, read, partial(record_ends, self.table), plain)

        def columns() -> Iterator[Mapping[str, pa.Array]]:
            for is_table, group in groupby(groups(), lambda part: isinstance(part, pa.Table)):
                for part in gather(group) if is_table else group:
                    if is_table:
                        yield {_ROWS: blob_column([part])}
                    elif isinstance(part, list):
                        yield odd(part)
                    else:
                        yield {_ROWS: blob_column([part.rows])}
                        yield {**odd(part.records), _BEFORE: part.before}

        files = 1 if start == 0 else 0
        for given in columns():
            yield _batch(given, files, listed)
            files = 0
        if files:
            yield _batch({_ROWS: pa.nulls(1, pa.binary())}, files, listed)


def _batch(columns: Mapping[str, pa.Array], files: int, listed: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows of the output; the first of them counts ``files``."""
    size = len(next(iter(columns.values())))
    of_all = {**columns, _FILES: pa.array([files] + [0] * (size - 1), pa.int32())}
    arrays = [of_all.get(field.name, pa.nulls(size, field.type)) for field in _READ]
    of_file = [(name, listed.column(name)) for name in listed.schema.names if name not in (FILE, START)]
    arrays += [pa.repeat(value[0], size) for _, value in of_file]
    return pa.RecordBatch.from_arrays(arrays, [*_READ.names, *(name for name, _ in of_file)])


@dataclass(frozen=True, slots=True)
class Mixed:
    """The ``rows`` of a part of a block, its other ``records``, and how many of the rows come ``before`` each."""

    rows: pa.Table
    records: list[bytes]
    before: pa.Array


Part: TypeAlias = pa.Table | list[bytes] | Mixed
PlainRecords = Callable[[bytes, np.ndarray[Any, Any]], np.ndarray[Any, Any] | None]


def parts(
    block: bytes,
    read: ReadBlock,
    ends_of: Callable[[bytes], Sequence[int] | np.ndarray[Any, Any]],
    plain: PlainRecords = lambda data, ends: None,
) -> Iterator[Part]:
    """Yield the rows of a ``block``, in order: as tables where ``read`` can read them, and else as records.

    ``plain`` finds the records that ``read`` can probably read among others.
    """
    rows = read(block)
    if rows is not None:
        yield rows
        return
    ends = [int(end) for end in ends_of(block)]
    ends += [len(block)] if not ends or ends[-1] < len(block) else []
    divided = _divided(block, ends, read, plain)
    if isinstance(divided, Mixed) and len(divided.records) * _PARTS <= len(ends):
        yield divided
        return
    step = -(-len(ends) // _PARTS)
    start = 0
    for first in range(0, len(ends), step):
        group = ends[first : first + step]
        rows = read(block[start : group[-1]]) if len(group) < len(ends) else None
        if rows is not None:
            yield rows
        else:
            yield _divided(block[start : group[-1]], [end - start for end in group], read, plain)
        start = group[-1]


def _divided(block: bytes, ends: list[int], read: ReadBlock, plain: PlainRecords) -> Mixed | list[bytes]:
    """Return the rows of the plain records, and the other ones; all as they are if that is no gain."""
    records = [block[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    are_plain = plain(block, np.array(ends)) if len(records) > _FEW else None
    if are_plain is None or are_plain.all() or not are_plain.any():
        return records
    rows = read(b"".join(compress(records, are_plain)))
    if rows is None or rows.num_rows != np.count_nonzero(are_plain):
        return records
    before = pa.array(np.cumsum(are_plain)[~are_plain], pa.int32())
    return Mixed(rows, list(compress(records, ~are_plain)), before)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unpacking(ReadBefore):
    """Unpacks the ``rows`` of files of a format; picklable.

    A wrong record fails the run, unless ``first``, the first step, drops it.
    """

    file_format: str
    rows: FileRows
    first: Dropping | None = None

    def before(self, step: Step | Marking) -> Read:
        return replace(self, first=step) if isinstance(step, Dropping) else self

    def __call__(self, batches: Iterable[pa.RecordBatch], report: Report) -> Iterator[pa.Table]:
        uncounted = 0
        pending = _Pending()
        for batch in batches:
            # Spark has already counted one row per file.
            uncounted -= sum(batch.column(_FILES).to_pylist())
            for rows in self._of_batch(batch, pending):
                uncounted += rows.num_rows
                yield rows
        for rows in pending.rest():
            uncounted += rows.num_rows
            yield rows
        report.metrics.append(uncounted)

    def _of_batch(self, batch: pa.RecordBatch, pending: _Pending) -> Iterator[pa.Table]:
        """Yield the rows of ``batch``, in order, after the ``pending`` rows of the batch before."""
        columns = [batch.column(name) for name in (_ROWS, _ONE, _MANY)]
        blobs, one, many = columns
        kinds = np.select([column.is_valid().to_numpy(zero_copy_only=False) for column in columns], [1, 2, 3])
        for kind, run in groupby(np.flatnonzero(kinds).tolist(), lambda row: int(kinds[row])):
            rows = list(run)
            if kind == 1:
                for row in rows:
                    yield from pending.rest()
                    table = from_blob(blobs[row].as_buffer())
                    pending.rows = self._whole(table, batch, pa.repeat(row, table.num_rows))
                continue
            if kind == 2:
                found, places = self._right(batch, one.take(pa.array(rows)), np.array(rows))
            else:
                objects = many.take(pa.array(rows))
                places = np.repeat(rows, objects.value_lengths())
                found = self._whole(_fields(objects.flatten(), self.rows.stored), batch, pa.array(places))
            yield from pending.with_rows(found, batch.column(_BEFORE).take(pa.array(places)))

    def _whole(self, stored: pa.Table, batch: pa.RecordBatch, places: pa.Array) -> pa.Table:
        """Return all columns of rows; ``places`` are their places in ``batch``."""
        return self.rows.whole(stored, lambda column: batch.column(column).take(places))

    def _right(
        self, batch: pa.RecordBatch, records: pa.StructArray, places: np.ndarray[Any, Any]
    ) -> tuple[pa.Table, np.ndarray[Any, Any]]:
        """Return the rows of right ``records``, and their places in ``batch``.

        Raise RunError for a wrong one that the first step does not drop.
        """
        texts = records.field(CORRUPT)
        is_wrong = texts.is_valid().to_numpy(zero_copy_only=False)
        if is_wrong.any():
            wrong = np.flatnonzero(is_wrong)
            self._refuse(batch, records.take(pa.array(wrong)), places[wrong])
            records, places = records.filter(pa.array(~is_wrong)), places[~is_wrong]
        return self._whole(_fields(records, self.rows.stored), batch, pa.array(places)), places

    def _refuse(self, batch: pa.RecordBatch, wrong: pa.StructArray, places: np.ndarray[Any, Any]) -> None:
        """Raise RunError unless the first step drops all ``wrong`` records."""
        failing = 0
        if self.first is not None:
            texts, limits = wrong.field(CORRUPT).to_pylist(), batch.column(LIMIT).take(pa.array(places)).to_pylist()
            odd = _OF_FORMATS[self.file_format]
            given = [None if limit else odd.given(text) for text, limit in zip(texts, limits, strict=True)]
            stored = _fields(wrong, self.rows.stored)
            nulls = {name: stored[name].is_null().to_pylist() for name in stored.column_names}
            unknown = [
                {name for name in names or () if name in nulls and nulls[name][row]} for row, names in enumerate(given)
            ]
            is_dropped = self.first.drops(self._whole(stored, batch, pa.array(places)), unknown)
            is_dropped &= np.array([names is not None for names in given], np.bool_)
            if is_dropped.all():
                return
            failing = int(np.argmin(is_dropped))
        place = int(places[failing])
        url, limit = batch.column(URL)[place], batch.column(LIMIT)[place]
        raise RunError(f"{MALFORMED}{url}. {limit}")


@dataclass(slots=True)
class _Pending:
    """The ``rows`` of a blob, of which the first are ``done``. Odd records that follow may belong between the rest."""

    rows: pa.Table | None = None
    done: int = 0

    def rest(self) -> Iterator[pa.Table]:
        """Yield the rest, after which nothing is pending."""
        if self.rows is not None and self.done < self.rows.num_rows:
            yield self.rows.slice(self.done)
        self.rows, self.done = None, 0

    def with_rows(self, found: pa.Table, before: pa.Array) -> Iterator[pa.Table]:
        """Yield ``found``, each of its rows behind so many of the pending rows, or behind all for a NULL."""
        for is_between, run in groupby(range(len(before)), lambda row: before[row].is_valid):
            places = list(run)
            rows = found.slice(places[0], len(places))
            if not is_between or self.rows is None:
                yield from self.rest()
                yield rows
                continue
            behind = before.slice(places[0], len(places)).to_numpy()
            end = int(behind[-1])
            plain = self.rows.slice(self.done, end - self.done)
            # Position of each row in the table of both: an odd record comes before the plain row of its number.
            of_plain = np.arange(self.done, end) + 0.5
            order = np.argsort(np.concatenate([of_plain, behind]), kind="stable")
            self.done = end
            yield pa.concat_tables([plain, rows]).take(pa.array(order))


def _fields(objects: pa.StructArray, schema: pa.Schema) -> pa.Table:
    return pa.table([objects.field(name) for name in schema.names], schema.names).cast(schema)
