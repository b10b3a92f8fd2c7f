"""Full lookup caches of files: ``'connector' = 'filesystem'``, read completely at every load.

Options have the same meaning as for a stream of the same files. CSV has no header, and its columns go by position. An
empty field is NULL, an empty quoted field is the empty text. JSON has one object per line. Hidden files (``.x``,
``_x``) are skipped. The output of Spark's streaming file sink is refused: only the sink's log defines which files
count.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.fs
import pyarrow.orc
import pyarrow.parquet

from hintplan.plans.connectors.filesystem import FILESYSTEM
from hintplan.plans.declarations.types import parse_type
from hintplan.plans.errors import RunError
from hintplan.plans.text.links import is_inside, link_to_nowhere
from hintplan.runtime.lookup.api import LookupContext, ScanFunction
from hintplan.runtime.lookup.sources.decoding import Decoder, json_decoder, parse_json, text_decoder
from hintplan.runtime.types import to_arrow

_SINK_LOG = "_spark_metadata"
_BATCH_ROWS = 50_000
_NUMBERS = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE")


class FilesScan(ScanFunction):
    """Reads all files below the table's path, or a single file if the path names one, in order of their names."""

    retry_on: ClassVar[tuple[type[Exception], ...]] = (OSError,)

    def scan(self, context: LookupContext) -> Iterator[pa.RecordBatch | pa.Table]:
        system, files = _files(context)
        read = {"csv": _csv, "json": _json, "parquet": _parquet, "orc": _orc}[context.options["format"]]
        for file in files:
            yield from read(context, system, file)


def _files(context: LookupContext) -> tuple[pyarrow.fs.FileSystem, list[str]]:
    path = context.options["path"]
    system, base = pyarrow.fs.FileSystem.from_uri(path) if "://" in path else (pyarrow.fs.LocalFileSystem(), path)
    (info,) = system.get_file_info([base])
    if info.type == pyarrow.fs.FileType.File:
        return system, _allowed(context, system, [base])
    if info.type != pyarrow.fs.FileType.Directory:
        raise RunError(
            link_to_nowhere(path) or f"there is nothing at {path!r}",
            hint="correct the path; a relative path starts where the Python worker runs",
            path=f"tables.{context.table}.options.path",
        )
    entries = system.get_file_info(pyarrow.fs.FileSelector(base))
    if any(entry.base_name == _SINK_LOG for entry in entries):
        raise RunError(
            f"{path!r} was written by a Spark stream, so some of its files may not count",
            hint="copy the rows with Spark, or write them to a database",
            path=f"tables.{context.table}.options.path",
        )
    files = [e.path for e in entries if e.type == pyarrow.fs.FileType.File and e.base_name[0] not in "._"]
    return system, _allowed(context, system, sorted(files))


def _allowed(context: LookupContext, system: pyarrow.fs.FileSystem, files: list[str]) -> list[str]:
    """Return ``files``; raise RunError if one of them is a link to a path that the run may not reach."""
    if context.allowed_paths and isinstance(system, pyarrow.fs.LocalFileSystem):
        for file in files:
            if not any(is_inside(file, path) for path in context.allowed_paths):
                raise RunError(
                    f"the run may not reach {file}",
                    hint=f"whoever starts the run can allow it: --allow-path {os.path.realpath(file)}",
                    path=f"tables.{context.table}.options.path",
                )
    return files


def _parquet(context: LookupContext, system: pyarrow.fs.FileSystem, file: str) -> Iterator[pa.RecordBatch]:
    with system.open_input_file(file) as source:
        reader = pyarrow.parquet.ParquetFile(source, coerce_int96_timestamp_unit="us")
        types = {field.name: field.type for field in reader.schema_arrow}
        # By default, Spark writes instants as INT96, which has no time zone in its type and is in UTC.
        physical = [reader.schema.column(index) for index in range(len(reader.schema))]
        instants = {column.path for column in physical if column.physical_type == "INT96"}
        for column in context.columns:
            actual, wanted = types.get(column.name), to_arrow(column.type)
            if actual is None:
                raise _failure(context, file, f"it has no column {column.name!r}")
            if not pa.types.is_timestamp(wanted):
                continue
            is_instant = column.name in instants or getattr(actual, "tz", None) is not None
            if is_instant != (wanted.tz is not None):
                raise _failure(context, file, f"column {column.name!r} is {actual}, but declared {column.type}")
        yield from reader.iter_batches(columns=[column.name for column in context.columns])


def _orc(context: LookupContext, system: pyarrow.fs.FileSystem, file: str) -> Iterator[pa.Table]:
    with system.open_input_file(file) as source:
        reader = pyarrow.orc.ORCFile(source)
        for column in context.columns:
            if column.name not in reader.schema.names:
                raise _failure(context, file, f"it has no column {column.name!r}")
        for stripe in range(reader.nstripes):
            try:
                batch = reader.read_stripe(stripe, [column.name for column in context.columns])
            except pa.ArrowInvalid as error:  # a time before 1678 or after 2262
                raise _failure(context, file, str(error)) from None
            rows = pa.Table.from_batches([batch])
            # Truncate nanoseconds to microseconds.
            yield rows.cast(
                pa.schema(
                    [
                        (
                            c.name,
                            to_arrow(c.type)
                            if parse_type(c.type).root == "TIMESTAMP"
                            else rows.schema.field(c.name).type,
                        )
                        for c in context.columns
                    ]
                ),
                safe=False,
            )


def _json(context: LookupContext, system: pyarrow.fs.FileSystem, file: str) -> Iterator[pa.RecordBatch]:
    lenient = _flag(context, "json.ignore-parse-errors")
    decoders = [(column.name, json_decoder(column.type)) for column in context.columns]
    rows: list[tuple[Any, ...]] = []
    with system.open_input_stream(file) as stream:
        for number, line in enumerate(_lines(stream), start=1):
            if not line.strip():
                continue
            try:
                rows.append(_object(line, decoders, lenient))
            except ValueError as error:
                if not lenient:
                    raise _failure(context, file, f"line {number}: {error}") from None
            if len(rows) == _BATCH_ROWS:
                yield _batch(context, rows)
                rows = []
    if rows:
        yield _batch(context, rows)


def _object(line: bytes, decoders: list[tuple[str, Decoder]], lenient: bool) -> tuple[Any, ...]:
    value = parse_json(line)
    if not isinstance(value, dict):
        raise ValueError("expected a JSON object")
    row = []
    for name, decode in decoders:
        try:
            row.append(decode(value.get(name)))
        except ValueError as error:
            if not lenient:
                raise ValueError(f"column {name!r}: {error}") from None
            row.append(None)
    return tuple(row)


def _lines(stream: pa.NativeFile) -> Iterator[bytes]:
    tail = b""
    while chunk := stream.read(1 << 20):
        *whole, tail = (tail + chunk).split(b"\n")
        yield from whole
    if tail:
        yield tail


def _batch(context: LookupContext, rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    values = zip(*rows, strict=True)
    arrays = [pa.array(v, to_arrow(column.type)) for v, column in zip(values, context.columns, strict=True)]
    return pa.record_batch(arrays, names=[column.name for column in context.columns])


def _csv(context: LookupContext, system: pyarrow.fs.FileSystem, file: str) -> Iterator[pa.Table]:
    lenient = _flag(context, "csv.ignore-parse-errors")
    with system.open_input_stream(file) as stream:
        data = stream.read()
    if _flag(context, "csv.allow-comments"):
        data = _without_comments(data, context)
    if not data.strip(b"\r\n"):
        return
    declared = [column.name for column in context.declared]
    quote = False if _flag(context, "csv.disable-quote-character") else _value(context, "csv.quote-character")
    try:
        table = pyarrow.csv.read_csv(
            pa.BufferReader(data),
            read_options=pyarrow.csv.ReadOptions(column_names=declared),
            parse_options=pyarrow.csv.ParseOptions(
                delimiter=str(_value(context, "csv.field-delimiter")).replace("\\t", "\t"),
                quote_char=quote,
                escape_char=_value(context, "csv.escape-character") or False,
                newlines_in_values=quote is not False,
                invalid_row_handler=(lambda row: "skip") if lenient else None,
            ),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(declared, pa.string()),
                include_columns=[column.name for column in context.columns],
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
    except pa.ArrowInvalid as error:
        raise _failure(context, file, str(error)) from None
    literal = _value(context, "csv.null-literal")
    columns = []
    for column, texts in zip(context.columns, table.columns, strict=True):
        if literal is not None:
            texts = pc.if_else(pc.equal(texts, literal), pa.scalar(None, pa.string()), texts)
        try:
            columns.append(_typed(texts, column.type, lenient))
        except ValueError as error:
            raise _failure(context, file, f"column {column.name!r}: {error}") from None
    yield pa.table(columns, names=[column.name for column in context.columns])


def _without_comments(data: bytes, context: LookupContext) -> bytes:
    """Return ``data`` without the lines that start with ``#``, unless such a line continues a quoted field."""
    unquoted = _flag(context, "csv.disable-quote-character")
    quote = b"" if unquoted else str(_value(context, "csv.quote-character")).encode()
    escape = (_value(context, "csv.escape-character") or "").encode()
    kept, is_inside = [], False
    for line in data.split(b"\n"):
        if is_inside or not line.startswith(b"#"):
            kept.append(line)
            plain = line.replace(escape + escape, b"").replace(escape + quote, b"") if escape else line
            is_inside ^= bool(quote) and plain.count(quote) % 2 == 1
    return b"\n".join(kept)


def _typed(texts: pa.ChunkedArray, type_text: str, lenient: bool) -> pa.ChunkedArray | pa.Array:
    data_type, target = parse_type(type_text), to_arrow(type_text)
    if data_type.is_text:
        return texts
    if data_type.root in _NUMBERS:
        try:
            return texts.cast(target)
        except pa.ArrowInvalid:
            pass  # one text is not a number; the decoder names it
    decode = text_decoder(type_text)
    return pa.array([_decoded(decode, text, lenient) for text in texts.to_pylist()], target)


def _decoded(decode: Decoder, text: str | None, lenient: bool) -> Any:
    if text is None:
        return None
    try:
        return decode(text)
    except ValueError:
        if lenient:
            return None
        raise


def _flag(context: LookupContext, name: str) -> bool:
    return (_value(context, name) or "").lower() == "true"


def _value(context: LookupContext, name: str) -> str | None:
    default = FILESYSTEM.settings[name].default
    return context.options.get(name, None if default is None else str(default))


def _failure(context: LookupContext, file: str, problem: str) -> RunError:
    name = file.rpartition("/")[2]
    return RunError(f"file {name}: {problem}", hint="correct the file, or the table", path=f"tables.{context.table}")
