"""Converts values to Protobuf messages, as Flink's format protobuf does.

NULL is an absent field. Protobuf has no NULL in arrays and maps. There, NULL becomes the default value, and for texts
the value of ``protobuf.write-null-string-literal``. A name or number that is not in an enum becomes its first value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hintplan.plans.connectors.messages.formats import Part
from hintplan.plans.declarations.types import DataType, parse_type
from hintplan.runtime.connectors.messages.protobuf_message import is_map, message_fields, message_of

if TYPE_CHECKING:
    from google.protobuf.descriptor import FieldDescriptor
    from google.protobuf.message import Message

Convert = Callable[[Any], Any]
_FULL = {"INT": 1 << 32, "BIGINT": 1 << 64}


def protobuf_encoder(part: Part) -> Callable[[Sequence[Any]], bytes]:
    """Return a function that encodes the values of ``part`` as a message; equal values give equal bytes."""
    message = message_of(part)
    literal = part.option("write-null-string-literal") or ""
    fields = message.DESCRIPTOR.fields_by_name
    setters = [
        _setter(fields[field], parse_type(column.type), literal)
        for field, column in zip(part.fields, part.columns, strict=True)
    ]

    def encode(values: Sequence[Any]) -> bytes:
        output = message()
        for put, value in zip(setters, values, strict=True):
            if value is not None:
                put(output, value)
        return bytes(output.SerializeToString(deterministic=True))

    return encode


def _setter(field: FieldDescriptor, declared: DataType, literal: str) -> Callable[[Message, Any], None]:
    """Return a function that sets a field of a message to a value that is not NULL."""
    name = field.name
    if is_map(field):
        return _map_setter(field, declared, literal)
    if field.message_type is not None:
        child = declared.children[0] if field.is_repeated else declared
        fill = _filler(field, child, literal)
        if not field.is_repeated:

            def put(output: Message, value: Mapping[str, Any]) -> None:
                inner = getattr(output, name)
                inner.SetInParent()
                fill(inner, value)

            return put

        def add(output: Message, values: Iterable[Any]) -> None:
            for value in values:
                inner = getattr(output, name).add()
                if value is not None:
                    fill(inner, value)

        return add
    if field.is_repeated:
        convert_element = _or_default(field, declared.children[0], literal)
        return lambda output, values: getattr(output, name).extend([convert_element(value) for value in values])
    convert = _to_one(field, declared)
    return lambda output, value: setattr(output, name, convert(value))


def _filler(field: FieldDescriptor, declared: DataType, literal: str) -> Callable[[Message, Any], None]:
    """Return a function that fills a message from a ROW."""
    fields = message_fields(field)
    setters = [(n, _setter(fields[n], c, literal)) for n, c in zip(declared.names, declared.children, strict=True)]

    def fill(inner: Message, value: Mapping[str, Any]) -> None:
        for name, put in setters:
            if value[name] is not None:
                put(inner, value[name])

    return fill


def _map_setter(field: FieldDescriptor, declared: DataType, literal: str) -> Callable[[Message, Any], None]:
    fields, name = message_fields(field), field.name
    key_type, value_type = declared.children
    key = _or_default(fields["key"], key_type, literal)
    if fields["value"].message_type is not None:
        fill = _filler(fields["value"], value_type, literal)

        def put_messages(output: Message, entries: Iterable[tuple[Any, Any]]) -> None:
            for map_key, value in entries:
                inner = getattr(output, name)[key(map_key)]
                if value is not None:
                    fill(inner, value)

        return put_messages
    convert_value = _or_default(fields["value"], value_type, literal)

    def put(output: Message, entries: Iterable[tuple[Any, Any]]) -> None:
        values = getattr(output, name)
        for map_key, value in entries:
            values[key(map_key)] = convert_value(value)

    return put


def _or_default(field: FieldDescriptor, declared: DataType, literal: str) -> Convert:
    """Return a function that converts an element, with a replacement for NULL."""
    convert = _to_one(field, declared)
    instead = literal if field.type == field.TYPE_STRING else _first(field) if field.enum_type else _zero(field)
    return lambda value: instead if value is None else convert(value)


def _zero(field: FieldDescriptor) -> bytes | bool | int:
    if field.cpp_type == field.CPPTYPE_STRING:
        return b""
    return False if field.cpp_type == field.CPPTYPE_BOOL else 0


def _first(field: FieldDescriptor) -> int:
    assert field.enum_type is not None
    return int(field.enum_type.values[0].number)


def _to_one(field: FieldDescriptor, declared: DataType) -> Convert:
    if field.enum_type is not None:
        first = _first(field)
        if declared.is_text:
            numbers = {name: enum_value.number for name, enum_value in field.enum_type.values_by_name.items()}
            return lambda value: numbers.get(value, first)
        numbers_in_enum = frozenset(field.enum_type.values_by_number)
        return lambda value: value if value in numbers_in_enum else first
    if field.cpp_type in (field.CPPTYPE_UINT32, field.CPPTYPE_UINT64):
        full = _FULL[declared.root]
        return lambda value: value % full
    return lambda value: value
