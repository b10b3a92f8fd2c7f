"""Reads Avro in batches, if the result is the same as message by message.

Messages that are not read in batches, and all errors, are left to
:mod:`hintplan.runtime.connectors.messages.avro_values` and :mod:`hintplan.runtime.connectors.messages.change_avro`,
which define the meaning of a message.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from hintplan.plans.connectors.messages.format_options import CONFLUENT, DEBEZIUM_AVRO
from hintplan.plans.connectors.messages.formats import Part
from hintplan.plans.declarations.types import DataType, parse_type
from hintplan.runtime.connectors.messages.avro_arrays import (
    Cursor,
    Decoder,
    Int64s,
    OddMessages,
    UInt8s,
    UnreadableSchema,
    decoder_of,
)
from hintplan.runtime.connectors.messages.avro_values import avro_schema
from hintplan.runtime.connectors.messages.envelopes import Changes, ReadChanges, changes_of, children_of
from hintplan.runtime.connectors.messages.json_columns import ReadColumns
from hintplan.runtime.connectors.messages.registry import HEAD_BYTES, Registry, registry_of
from hintplan.runtime.connectors.messages.text_columns_in import layout_of
from hintplan.runtime.types import to_arrow

if TYPE_CHECKING:
    from fastavro.types import Schema

_WHOLE = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_BYTES = ("BYTES", "BINARY", "VARBINARY")
_TIMES = ("TIMESTAMP", "TIMESTAMP_LTZ")


def avro_columns_reader(part: Part, wanted: Collection[str]) -> ReadColumns | None:
    """Return a function that decodes batches of ``avro`` or ``avro-confluent``; None for another format."""
    if part.format not in ("avro", CONFLUENT):
        return None
    parse, declared = _parser(part), _declared(part, wanted)

    def read(messages: pa.Array) -> list[pa.Array] | None:
        try:
            found = parse(messages)
            return None if found is None else declared(found)
        except (OddMessages, pa.ArrowInvalid):
            return None

    return read


def avro_changes_reader(part: Part, wanted: Collection[str]) -> ReadChanges | None:
    """Return a function that decodes batches of ``debezium-avro-confluent``; None for another format."""
    if part.format != DEBEZIUM_AVRO:
        return None
    parse, declared = _parser(part), _declared(part, wanted)

    def read(messages: pa.Array) -> Changes | None:
        try:
            found = parse(messages)
            return None if found is None else changes_of(found, declared)
        except (OddMessages, pa.ArrowInvalid, KeyError):  # an envelope without a field has no changes
            return None

    return read


def _parser(part: Part) -> Callable[[pa.Array], pa.Table | None]:
    """Return a function that decodes messages without NULL to the fields of their records.

    It returns None, or raises OddMessages or ArrowInvalid, if they are not read in batches.
    """
    decoder_by_id = _ById(registry_of(part)) if part.format != "avro" else None
    decoder_of_all = _decoder(avro_schema(part)) if decoder_by_id is None else None

    def parse(messages: pa.Array) -> pa.Table | None:
        data, begins, ends = _bytes_of(messages)
        decoder = decoder_of_all
        if decoder_by_id is not None:
            if not len(messages) or (ends - begins < HEAD_BYTES).any():
                return None
            heads = data[begins[:, None] + np.arange(HEAD_BYTES)]
            if (heads != heads[0]).any() or heads[0][0] != 0:
                return None
            decoder = decoder_by_id.decoder(int.from_bytes(heads[0][1:].tobytes(), "big"))
            begins = begins + HEAD_BYTES
        return None if decoder is None else children_of(decoder.of(Cursor.over(data, begins, ends)))

    return parse


@dataclass(slots=True)
class _ById:
    """The decoders of a registry's schemas by their ids; None for a schema that is not read in batches."""

    registry: Registry
    known: dict[int, Decoder | None] = field(default_factory=dict)

    def decoder(self, number: int) -> Decoder | None:
        if number not in self.known:
            self.known[number] = _decoder(self.registry.schema(number))
        return self.known[number]


def _decoder(schema: Schema) -> Decoder | None:
    from fastavro import parse_schema

    named: dict[str, dict[str, object]] = {}
    try:
        decoder = decoder_of(parse_schema(schema, named_schemas=named), named)
    except UnreadableSchema:
        return None
    return decoder if pa.types.is_struct(decoder.type) else None


def _bytes_of(messages: pa.Array) -> tuple[UInt8s, Int64s, Int64s]:
    """Return the bytes of messages, and where each message begins and ends."""
    offsets, data = layout_of(messages)
    places = offsets.astype(np.int64) - offsets[0]
    return data[offsets[0] : offsets[-1]], places[:-1], places[1:]


def _declared(part: Part, wanted: Collection[str]) -> Callable[[pa.Table], list[pa.Array]]:
    """Return a function that gives the fields of records the types of the columns of ``part``.

    It raises OddMessages or ArrowInvalid if a value has another type, or does not fit.
    """
    columns = [
        (name, parse_type(column.type), column.name in wanted)
        for name, column in zip(part.fields, part.columns, strict=True)
    ]

    def declared(found: pa.Table) -> list[pa.Array]:
        there = set(found.column_names)
        return [
            _as_declared(found.column(name).combine_chunks(), data_type)
            if is_wanted and name in there
            else pa.nulls(found.num_rows, to_arrow(str(data_type)))
            for name, data_type, is_wanted in columns
        ]

    return declared


def _as_declared(column: pa.Array, data_type: DataType) -> pa.Array:
    """Return ``column`` as ``data_type``; OddMessages for another type, ArrowInvalid for a value that does not fit."""
    root, given = data_type.root, column.type
    is_same = (
        (root in (*_WHOLE, "DOUBLE") and pa.types.is_int64(given))
        or (root == "FLOAT" and pa.types.is_float32(given))
        or (root == "DOUBLE" and pa.types.is_floating(given))
        or (root == "BOOLEAN" and pa.types.is_boolean(given))
        or (data_type.is_text and pa.types.is_string(given))
        or (root in _BYTES and pa.types.is_binary(given))
        or (root == "DECIMAL" and pa.types.is_decimal(given) and given.scale == data_type.scale)
        or (root == "DATE" and pa.types.is_date(given))
        or (root in _TIMES and pa.types.is_timestamp(given))
    )
    if not is_same:
        raise OddMessages
    return column.cast(to_arrow(str(data_type)))
