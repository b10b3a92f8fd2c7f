r"""Avro: the schema that Flink derives from a table's columns, and conversions to it and from any writer's schema.

A nullable column is a union with null. By default, TIMESTAMP is ``timestamp-millis``, as if it were in UTC. Without the
legacy mapping, TIMESTAMP is ``local-timestamp``, and TIMESTAMP_LTZ is ``timestamp``.

>>> part = Part(format="avro", columns=(TableColumn(name="id", type="INT NOT NULL"),), fields=("id",), options={})
>>> avro_schema(part)["fields"]
[{'name': 'id', 'type': 'int'}]
>>> avro_encoder(part, avro_schema(part))([1]), avro_decoder(part, ("id",), avro_schema(part))(b"\x02")
(b'\x02', [1])
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from io import BytesIO
from typing import TYPE_CHECKING, Any, TypeVar

from hintplan.plans.connectors.messages.formats import Part
from hintplan.plans.declarations.tables import TableColumn
from hintplan.plans.declarations.types import DataType, parse_type
from hintplan.runtime.connectors.messages.json_in import fitting

if TYPE_CHECKING:
    from fastavro.types import Schema

Kind = TypeVar("Kind")

__all__ = [
    "FAULTS",
    "TableColumn",
    "avro_decoder",
    "avro_encoder",
    "avro_schema",
    "fields_writer",
    "from_avro",
    "record_reader",
    "record_schema",
    "record_writer",
    "values_reader",
]

_NAME = "org.apache.flink.avro.generated.record"
_PLAIN = {
    "BOOLEAN": "boolean", "TINYINT": "int", "SMALLINT": "int", "INT": "int", "BIGINT": "long", "FLOAT": "float",
    "DOUBLE": "double", "CHAR": "string", "VARCHAR": "string", "STRING": "string", "BYTES": "bytes", "BINARY": "bytes",
    "VARBINARY": "bytes",
}  # fmt: skip
_BITS = {"TINYINT": 7, "SMALLINT": 15, "INT": 31, "BIGINT": 63}
_EPOCH = datetime(1970, 1, 1)
_MILLIS = 3
FAULTS = (ValueError, EOFError, IndexError, KeyError, TypeError, OverflowError, struct.error)
"""The errors that fastavro raises for bytes that do not match a schema."""


def is_legacy(part: Part) -> bool:
    """Return true for the mapping of times before Flink 1.19, which is still Flink's default."""
    return part.format != "avro" or part.option("timestamp_mapping.legacy") == "true"


def avro_schema(part: Part) -> dict[str, Any]:
    """Return the schema with which messages of ``part`` are written; raise ValueError for an unsupported column."""
    types = {field: column.type for field, column in zip(part.fields, part.columns, strict=True)}
    return record_schema(types, legacy=is_legacy(part))


def record_schema(types: Mapping[str, str], *, legacy: bool) -> dict[str, Any]:
    """Return the schema of a record of fields with these ``types``; raise ValueError for an unsupported type."""
    fields = _fields({field: parse_type(text) for field, text in types.items()}, _NAME, legacy)
    namespace, _, name = _NAME.rpartition(".")
    return {"type": "record", "name": name, "namespace": namespace, "fields": fields}


def _fields(types: Mapping[str, DataType], name: str, legacy: bool) -> list[dict[str, Any]]:
    """Return the fields of the record ``name``; a nullable field is NULL by default."""
    return [
        {
            "name": field,
            "type": _nullable(data_type, f"{name}_{field}", legacy),
            **({"default": None} if data_type.nullable else {}),
        }
        for field, data_type in types.items()
    ]


def _nullable(data_type: DataType, name: str, legacy: bool) -> Schema:
    schema = _schema(data_type, name, legacy)
    return ["null", schema] if data_type.nullable else schema


def _schema(data_type: DataType, name: str, legacy: bool) -> Schema:
    root = data_type.root
    if root in _PLAIN:
        return _PLAIN[root]
    if root == "DATE":
        return {"type": "int", "logicalType": "date"}
    if root == "DECIMAL":
        sizes = {"precision": data_type.precision or 0, "scale": data_type.scale or 0}
        return {"type": "bytes", "logicalType": "decimal", **sizes}
    if root in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        local = root == "TIMESTAMP"
        if legacy and not local:
            raise ValueError("Avro holds no TIMESTAMP_LTZ in the older mapping of times")
        if legacy and (data_type.precision or 0) > _MILLIS:
            raise ValueError("Avro holds no TIMESTAMP of more than 3 digits in the older mapping of times")
        unit = "millis" if (data_type.precision or 0) <= _MILLIS else "micros"
        return {"type": "long", "logicalType": f"{'local-' if local and not legacy else ''}timestamp-{unit}"}
    if root == "ARRAY":
        return {"type": "array", "items": _nullable(data_type.children[0], name, legacy)}
    if data_type.has_entries:
        if not data_type.parts[0].is_text:
            raise ValueError(f"Avro holds no {root} whose keys are no text")
        return {"type": "map", "values": _nullable(data_type.parts[1], name, legacy)}
    assert root == "ROW", root
    children = dict(zip(data_type.names, data_type.children, strict=True))
    return {"type": "record", "name": name.rpartition(".")[2], "fields": _fields(children, name, legacy)}


def avro_decoder(part: Part, wanted: Collection[str], schema: Schema) -> Callable[[bytes], Sequence[Any]]:
    """Return a function that decodes bytes of ``schema`` to the values of ``part``, or raises ValueError."""
    read, values_of = record_reader(schema), values_reader(part, wanted)
    return lambda message: values_of(read(message))


def record_reader(schema: Schema) -> Callable[[bytes], dict[str, Any]]:
    """Return a function that decodes bytes of ``schema`` to the fields of a record, or raises ValueError."""
    from fastavro import parse_schema, schemaless_reader

    parsed = parse_schema(schema)

    def read(message: bytes) -> dict[str, Any]:
        try:
            record = schemaless_reader(BytesIO(message), parsed, None)
        except FAULTS as error:
            what = str(error).partition(" from <")[0]  # where fastavro reads
            raise ValueError(f"it is not of its schema of Avro: {what or type(error).__name__}") from None
        if not isinstance(record, dict):
            raise ValueError("its schema is not a record")
        return record

    return read


def values_reader(part: Part, wanted: Collection[str]) -> Callable[[Mapping[str, Any]], Sequence[Any]]:
    """Return a function that converts the fields of a record to the values of ``part``, or raises ValueError."""
    fields = [
        (field, from_avro(parse_type(column.type)) if column.name in wanted else None)
        for field, column in zip(part.fields, part.columns, strict=True)
    ]

    def values_of(found: Mapping[str, Any]) -> Sequence[Any]:
        values = []
        for name, convert in fields:
            try:
                values.append(None if convert is None else convert(found.get(name)))
            except ValueError as error:
                raise ValueError(f"field {name!r}: {error}") from None
        return values

    return values_of


def avro_encoder(part: Part, schema: Schema) -> Callable[[Sequence[Any]], bytes]:
    """Return a function that encodes the values of ``part`` with ``schema``.

    It raises ValueError for NULL in a NOT NULL column.
    """
    write, record_of = record_writer(schema), fields_writer(part)
    return lambda values: write(record_of(values))


def record_writer(schema: Schema) -> Callable[[Mapping[str, Any]], bytes]:
    """Return a function that encodes the fields of a record with ``schema``."""
    from fastavro import parse_schema, schemaless_writer

    parsed = parse_schema(schema)

    def write(record: Mapping[str, Any]) -> bytes:
        out = BytesIO()
        schemaless_writer(out, parsed, record)
        return out.getvalue()

    return write


def fields_writer(part: Part) -> Callable[[Sequence[Any]], dict[str, Any]]:
    """Return a function that converts the values of ``part`` to the fields of a record.

    It raises ValueError for NULL in a NOT NULL column.
    """
    legacy = is_legacy(part)
    types = [parse_type(column.type) for column in part.columns]
    fields = [
        (field, _to_avro(data_type, legacy), data_type.nullable)
        for field, data_type in zip(part.fields, types, strict=True)
    ]

    def record_of(values: Sequence[Any]) -> dict[str, Any]:
        record = {}
        for (name, convert, nullable), value in zip(fields, values, strict=True):
            if value is None and not nullable:
                raise ValueError(f"column {name!r} is NULL, and is declared NOT NULL")
            record[name] = convert(value)
        return record

    return record_of


def _to_avro(data_type: DataType, legacy: bool) -> Callable[[Any], Any]:
    convert = _plain_to_avro(data_type, legacy)
    return lambda value: None if value is None else convert(value)


def _plain_to_avro(data_type: DataType, legacy: bool) -> Callable[[Any], Any]:
    root = data_type.root
    if root == "TIMESTAMP" and legacy:
        return lambda value: value.replace(tzinfo=UTC)
    if root == "ARRAY":
        element = _to_avro(data_type.children[0], legacy)
        return lambda value: [element(item) for item in value]
    if data_type.has_entries:
        item = _to_avro(data_type.parts[1], legacy)
        return lambda value: {key: item(map_value) for key, map_value in value}
    if root == "ROW":
        fields = [(n, _to_avro(c, legacy)) for n, c in zip(data_type.names, data_type.children, strict=True)]
        return lambda value: {name: convert(value[name]) for name, convert in fields}
    return lambda value: value


def from_avro(data_type: DataType) -> Callable[[Any], Any]:
    """Return a function that converts fastavro's values to ``data_type``, or raises ValueError."""
    convert = _plain_from_avro(data_type)
    return lambda value: None if value is None else convert(value)


def _plain_from_avro(data_type: DataType) -> Callable[[Any], Any]:
    root = data_type.root
    if root in _BITS:
        return lambda value: _in_range(_as(value, data_type, int), data_type)
    if root in ("FLOAT", "DOUBLE"):
        return lambda value: float(_as(value, data_type, (int, float)))
    if root == "BOOLEAN":
        return lambda value: _as(value, data_type, bool)
    if data_type.is_text:
        return lambda value: _as(value, data_type, str)
    if root == "DECIMAL":
        return lambda value: _decimal(_as(value, data_type, Decimal), data_type)
    if root == "DATE":
        return lambda value: (
            date(1970, 1, 1) + timedelta(_as(value, data_type, int)) if not isinstance(value, date) else value
        )
    if root in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        return lambda value: _moment(value, data_type)
    if root == "ARRAY":
        element = from_avro(data_type.children[0])
        return lambda value: [element(item) for item in _as(value, data_type, list)]
    if data_type.has_entries:
        item_of = from_avro(data_type.parts[1])
        return lambda value: [(key, item_of(item)) for key, item in _as(value, data_type, dict).items()]
    if root == "ROW":
        fields = [(n, from_avro(c)) for n, c in zip(data_type.names, data_type.children, strict=True)]
        return lambda value: {name: decode(_as(value, data_type, dict).get(name)) for name, decode in fields}
    return lambda value: bytes(_as(value, data_type, bytes))


def _as(value: object, data_type: DataType, kind: type[Kind] | tuple[type[Kind], ...]) -> Kind:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(f"a value of {type(value).__name__} is not {data_type.as_nullable()}")
    return value


def _in_range(value: int, data_type: DataType) -> int:
    limit = 1 << _BITS[data_type.root]
    if not -limit <= value < limit:
        raise ValueError(f"{value} is out of the range of {data_type.root}")
    return value


def _decimal(value: Decimal, data_type: DataType) -> Decimal | None:
    return fitting(data_type)(value)


def _moment(value: Any, data_type: DataType) -> datetime:
    """Return a value as a time; a number counts milliseconds, and a time without time zone is in UTC."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = _EPOCH + timedelta(milliseconds=value)
    moment: datetime = _as(value, data_type, datetime)
    plain = moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo is not None else moment
    return plain.replace(tzinfo=UTC) if data_type.root == "TIMESTAMP_LTZ" else plain
