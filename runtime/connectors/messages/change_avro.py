"""The format debezium-avro-confluent: database changes in Avro with schemas in a registry, as in Flink.

The record is Debezium's envelope. Its fields ``before``, ``after`` and ``op`` are read; other fields are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from hintplan.plans.connectors.messages.formats import Part
from hintplan.plans.declarations.types import DataType, parse_type
from hintplan.runtime.connectors.messages.avro_values import (
    fields_writer,
    record_reader,
    record_schema,
    record_writer,
    values_reader,
)
from hintplan.runtime.connectors.messages.change_events import Change, adds, debezium_changes
from hintplan.runtime.connectors.messages.registry import head_of, of_any_schema

if TYPE_CHECKING:
    from fastavro.types import Schema


def debezium_avro_decoder(part: Part, wanted: Collection[str]) -> Callable[[bytes], Iterable[Change]]:
    """Return a function that decodes a message with any schema in the registry; an empty message has no changes."""
    values = values_reader(part, wanted)

    def of_schema(schema: Schema) -> Callable[[bytes], list[Change]]:
        read = record_reader(schema)
        return lambda message: debezium_changes(read(message), values)

    decode = of_any_schema(part, of_schema)
    return lambda message: decode(message) if message else ()


def debezium_avro_encoder(part: Part, number: int) -> Callable[[int, Sequence[Any]], bytes]:
    """Return a function that encodes a change with the schema of ``part``, whose id in the registry is ``number``."""
    head, write, row_of = head_of(number), record_writer(envelope_of(part)), fields_writer(part)

    def encode(kind: int, values: Sequence[Any]) -> bytes:
        row = row_of(values)
        if adds(kind):
            return head + write({"before": None, "after": row, "op": "c"})
        return head + write({"before": row, "after": None, "op": "d"})

    return encode


def envelope_of(part: Part) -> list[Any]:
    """Return the schema with which changes of ``part`` are written; raise ValueError for an unsupported column.

    It is a union with null, as in Flink, although no message is null.
    """
    children = tuple(parse_type(column.type) for column in part.columns)
    row = str(DataType(root="ROW", names=part.fields, children=children))
    return ["null", record_schema({"before": row, "after": row, "op": "STRING"}, legacy=True)]
