"""Reads Avro files in the Python workers, by the schema in each file.

Spark's own reader fails on two things: Flink's files, whose rows are a union with null, and times in another unit than
it expects. Spark still lists the files, and keeps track of which have been read.
"""

from __future__ import annotations

import bz2
import json
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from io import BytesIO
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StructType

from hintplan.plans.declarations.types import DataType, parse_type
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.messages.avro_values import FAULTS, from_avro
from hintplan.runtime.spark.map_in_arrow import map_in_arrow
from hintplan.runtime.storage.files import files_at
from hintplan.runtime.types import to_arrow

_MAGIC = b"Obj\x01"
_SYNC_BYTES = 16
_BATCH_ROWS = 10_000


def require_avro_files(name: str) -> None:
    """Raise RunError for table ``name`` if the driver's Python, which stands for the workers', has no fastavro."""
    try:
        import fastavro  # noqa: F401
    except ModuleNotFoundError as error:
        raise RunError(
            f"table {name} is in files of Avro, which needs fastavro",
            hint="pip install 'hintplan[kafka]' here, and fastavro where Python workers run",
            path=f"tables.{name}",
        ) from error


def rows_of_avro(
    files: DataFrame, name: str, types: Mapping[str, str], schema: StructType, beside: list[Column]
) -> DataFrame:
    """Return the rows of ``files``, which Spark has listed; the columns ``beside`` are constant within a file.

    ``types`` are the types of the columns to read for table ``name``; ``schema`` has the same columns with Spark's
    types.
    """
    listed = files.select("path", *beside)
    declared = {column: parse_type(text) for column, text in types.items()}
    whole = StructType([*schema.fields, *listed.schema.fields[1:]])
    return map_in_arrow(listed, partial(_read, name=name, types=declared), whole)


def _read(batches: Iterable[pa.RecordBatch], *, name: str, types: Mapping[str, DataType]) -> Iterator[pa.RecordBatch]:
    schema = [(column, to_arrow(str(data_type))) for column, data_type in types.items()]
    for batch in batches:
        for index in range(batch.num_rows):
            path = batch.column(0)[index].as_py()
            for rows in _portions(path, name, types):
                values = zip(*rows, strict=True) if types else ()
                arrays = [pa.array(column, kind) for column, (_, kind) in zip(values, schema, strict=True)]
                arrays += [pa.repeat(column[index], len(rows)) for column in batch.columns[1:]]
                column_names = [column for column, _ in schema] + batch.schema.names[1:]
                yield pa.RecordBatch.from_arrays(arrays, column_names)


def _portions(path: str, name: str, types: Mapping[str, DataType]) -> Iterator[list[tuple[Any, ...]]]:
    """Yield the rows of a file in portions; raise RunError if the file cannot be read."""
    convert = [(column, from_avro(data_type)) for column, data_type in types.items()]
    plain = path.removeprefix("file:") if path.startswith("file:") else path
    directory, _, file = plain.rpartition("/")
    try:
        portion: list[tuple[Any, ...]] = []
        for record in records(bytes(files_at(directory or "/").read(file))):
            portion.append(_row(record, convert))
            if len(portion) == _BATCH_ROWS:
                yield portion
                portion = []
        if portion:
            yield portion
    except (*FAULTS, OSError, EOFError, zlib.error, lzma.LZMAError, pa.ArrowException) as error:
        raise RunError(f"table {name}: {path} cannot be read as Avro: {str(error) or type(error).__name__}") from error


def _row(record: object, convert: list[tuple[str, Callable[[Any], Any]]]) -> tuple[Any, ...]:
    if not isinstance(record, dict):
        raise ValueError("its schema is not a record")
    values = []
    for column, decode in convert:
        try:
            values.append(decode(record.get(column)))
        except ValueError as error:
            raise ValueError(f"column {column!r}: {error}") from None
    return tuple(values)


def records(data: bytes) -> Iterator[Any]:
    """Yield the values in an Avro file, one by one, decompressed with any supported codec."""
    from fastavro import parse_schema, schemaless_reader

    source = BytesIO(data)
    if source.read(len(_MAGIC)) != _MAGIC:
        raise ValueError("it does not begin as a file of Avro")
    metadata: dict[str, bytes] = dict(schemaless_reader(source, {"type": "map", "values": "bytes"}, None))  # type: ignore[arg-type]
    schema = parse_schema(json.loads(metadata["avro.schema"]))
    codec = metadata.get("avro.codec", b"null").decode()
    unpack = _CODECS.get(codec)
    if unpack is None:
        raise ValueError(f"it is compressed with {codec!r}; supported are {', '.join(_CODECS)}")
    sync = source.read(_SYNC_BYTES)
    while source.tell() < len(data):
        count, size = (int(schemaless_reader(source, "long", None)) for _ in range(2))  # type: ignore[arg-type]
        block = BytesIO(unpack(source.read(size)))
        for _ in range(count):
            yield schemaless_reader(block, schema, None)
        if source.read(_SYNC_BYTES) != sync:
            raise ValueError("a block of it is damaged")


def _snappy(block: bytes) -> bytes:
    """Decompress a Snappy block, which begins with its uncompressed size and ends with a checksum of four bytes."""
    size = shift = 0
    for byte in block:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    plain: bytes = pa.Codec("snappy").decompress(block[:-4], decompressed_size=size, asbytes=True)
    if zlib.crc32(plain) != int.from_bytes(block[-4:], "big"):
        raise ValueError("a block of it is damaged")
    return plain


def _zstandard(block: bytes) -> bytes:
    with pa.CompressedInputStream(pa.BufferReader(block), "zstd") as stream:
        return bytes(stream.read())


_CODECS: Mapping[str, Callable[[bytes], bytes]] = {
    "null": lambda block: block,
    "deflate": lambda block: zlib.decompress(block, -zlib.MAX_WBITS),
    "snappy": _snappy,
    "bzip2": bz2.decompress,
    "xz": lzma.decompress,
    "zstandard": _zstandard,
}
