"""Decoders and encoders of keys and values by format, and the packages that a format needs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import pyarrow as pa

from hintplan.plans.connectors.messages.format_options import (
    AVRO,
    CONFLUENT,
    DEBEZIUM_AVRO,
    DESCRIPTORS,
    OF_REGISTRY,
    PROTOBUF,
)
from hintplan.plans.connectors.messages.formats import Part
from hintplan.plans.errors import RunError
from hintplan.plans.text.links import reason
from hintplan.runtime.code_files import read_definition
from hintplan.runtime.connectors.messages.avro_columns import avro_changes_reader, avro_columns_reader
from hintplan.runtime.connectors.messages.avro_columns_out import avro_writer
from hintplan.runtime.connectors.messages.avro_values import avro_decoder, avro_encoder, avro_schema
from hintplan.runtime.connectors.messages.change_avro import (
    debezium_avro_decoder,
    debezium_avro_encoder,
    envelope_of,
)
from hintplan.runtime.connectors.messages.change_events import (
    Change,
    canal_decoder,
    canal_encoder,
    debezium_decoder,
    debezium_encoder,
)
from hintplan.runtime.connectors.messages.csv_columns import csv_columns_reader, csv_columns_writer
from hintplan.runtime.connectors.messages.csv_text import csv_decoder, csv_encoder
from hintplan.runtime.connectors.messages.envelopes import Changes, ReadChanges
from hintplan.runtime.connectors.messages.json_changes import changes_writer, debezium_reader
from hintplan.runtime.connectors.messages.json_columns import ReadColumns, columns_reader, columns_writer
from hintplan.runtime.connectors.messages.json_objects import json_row_decoder, json_row_encoder
from hintplan.runtime.connectors.messages.protobuf_in import protobuf_decoder
from hintplan.runtime.connectors.messages.protobuf_message import message_of
from hintplan.runtime.connectors.messages.protobuf_out import protobuf_encoder
from hintplan.runtime.connectors.messages.raw_bytes import raw_decoder, raw_encoder
from hintplan.runtime.connectors.messages.raw_columns import raw_columns_reader, raw_columns_writer
from hintplan.runtime.connectors.messages.registry import confluent_decoder, confluent_encoder, registry_of
from hintplan.runtime.operator import INSERT

RowDecoder = Callable[[bytes], Sequence[Any] | None]
"""Returns the values of a part's columns, or None for a message that is unreadable and must be skipped."""


_NEEDS = {**dict.fromkeys((*AVRO, *OF_REGISTRY), ("fastavro", "fastavro")), PROTOBUF: ("google.protobuf", "protobuf")}
"""The module and the package that a format needs."""


def prepare_part(table: str, part: Part) -> Part:
    """Return ``part`` of ``table`` with the definition of its message, if its format has one.

    Raises RunError if this Python lacks a package, or if the columns do not match the definition.
    """
    module, package = _NEEDS.get(part.format, ("", ""))
    if module and not _is_there(module):
        raise RunError(
            f"table {table} has messages in the format {part.format}, which needs {package}",
            hint=f"pip install 'hintplan[kafka]' here, and {package} where Python workers run",
            path=f"tables.{table}",
        )
    if part.format != PROTOBUF:
        return part
    option_path = f"tables.{table}.options.{part.before}{DESCRIPTORS}"
    try:
        defined = replace(part, definition=read_definition(part.options[DESCRIPTORS]))
    except OSError as error:
        raise RunError(
            f"the definition of the messages of table {table} cannot be read: "
            f"{reason(error, part.options[DESCRIPTORS])}: {error.filename}",
            hint="make it with protoc --include_imports --descriptor_set_out=FILE, on the machine that starts the run",
            path=option_path,
        ) from None
    try:
        message_of(defined)
    except ValueError as error:
        raise RunError(f"table {table} is not as its messages are defined: {error}", path=option_path) from None
    return defined


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def row_decoder(part: Part, wanted: Collection[str]) -> RowDecoder:
    """Return a function that decodes a message with one row, or raises ValueError."""
    if part.format == "json":
        return json_row_decoder(part, wanted)
    if part.format == "avro":
        return avro_decoder(part, wanted, avro_schema(part))
    if part.format == CONFLUENT:
        return confluent_decoder(part, wanted)
    if part.format == PROTOBUF:
        return protobuf_decoder(part, wanted)
    return csv_decoder(part, wanted) if part.format == "csv" else raw_decoder(part)


def changes_decoder(part: Part, wanted: Collection[str]) -> Callable[[bytes], Iterable[Change]]:
    """Return a function that decodes a message to changes; a message in a row format is one insert."""
    if part.format == "debezium-json":
        return debezium_decoder(part, wanted)
    if part.format == DEBEZIUM_AVRO:
        return debezium_avro_decoder(part, wanted)
    if part.format == "canal-json":
        return canal_decoder(part, wanted)
    return partial(_inserted, decode=row_decoder(part, wanted))


def _inserted(message: bytes, *, decode: RowDecoder) -> Iterable[Change]:
    values = decode(message)
    return () if values is None else ((INSERT, values),)


def rows_in_bulk(part: Part, wanted: Collection[str]) -> ReadColumns | None:
    """Return a function that decodes batches of plain messages with one row each; None to read them row by row."""
    return (
        columns_reader(part, wanted)
        or csv_columns_reader(part, wanted)
        or raw_columns_reader(part)
        or avro_columns_reader(part, wanted)
    )


def bulk_reader(part: Part, wanted: Collection[str]) -> ReadChanges | None:
    """Return a function that decodes batches of plain messages; None if ``part`` must be read row by row."""
    read = rows_in_bulk(part, wanted)
    if read is None:
        return debezium_reader(part, wanted) or avro_changes_reader(part, wanted)

    def read_inserts(messages: pa.Array) -> Changes | None:
        columns = read(messages)
        size = len(messages)
        return None if columns is None else Changes(columns, np.full(size, INSERT, np.int8), np.arange(size))

    return read_inserts


def row_encoder(part: Part, schema: int | None = None) -> Callable[[Sequence[Any]], bytes | None]:
    """Return a function that encodes the values of a part's columns; ``schema`` is its id in the registry, if any."""
    if part.format == "avro":
        return avro_encoder(part, avro_schema(part))
    if part.format == PROTOBUF:
        return protobuf_encoder(part)
    if schema is not None:
        return confluent_encoder(part, schema)
    if part.format == "json":
        write = json_row_encoder(part)
        return lambda values: write(values).encode()
    return csv_encoder(part) if part.format == "csv" else raw_encoder(part)


def register_schema(part: Part | None, subject: str) -> int | None:
    """Return the id of the schema of ``part`` in its registry, after registering it; None without a registry."""
    if part is None or part.format not in OF_REGISTRY:
        return None
    schema = envelope_of(part) if part.format == DEBEZIUM_AVRO else avro_schema(part)
    return registry_of(part).register(part.option("subject") or subject, schema)


def batch_encoder(part: Part, schema: int | None = None) -> Callable[[pa.RecordBatch, Sequence[int]], pa.Array]:
    """Return a function that encodes the changes of a batch, with their row kinds; row formats ignore the kinds."""
    encode_rows = columns_writer(part) or csv_columns_writer(part) or raw_columns_writer(part)
    if encode_rows is not None:
        return lambda batch, kinds: encode_rows(batch)
    if (encode_changes := changes_writer(part)) is not None:
        return encode_changes
    encode, in_avro = change_encoder(part, schema), avro_writer(part, schema)

    def write(batch: pa.RecordBatch, kinds: Sequence[int]) -> pa.Array:
        if in_avro is not None and (written := in_avro(batch, kinds)) is not None:
            return written
        columns = [batch.column(column.name).to_pylist() for column in part.columns]
        rows = zip(*columns, strict=True) if columns else [()] * batch.num_rows
        return pa.array([encode(kind, row) for kind, row in zip(kinds, rows, strict=True)], pa.binary())

    return write


def change_encoder(part: Part, schema: int | None = None) -> Callable[[int, Sequence[Any]], bytes | None]:
    """Return a function that encodes a change as a message; row formats ignore the kind."""
    if part.format == "debezium-json":
        return debezium_encoder(part)
    if part.format == DEBEZIUM_AVRO:
        assert schema is not None
        return debezium_avro_encoder(part, schema)
    if part.format == "canal-json":
        return canal_encoder(part)
    write = row_encoder(part, schema)
    return lambda kind, values: write(values)
