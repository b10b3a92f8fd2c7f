"""Values to Protobuf, as Flink's format protobuf writes it.

NULL is an absent field. In arrays and maps, where Protobuf has no NULL, it is the default value, and of text what
``protobuf.write-null-string-literal`` says. A name or number that an enum does not have is its first value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from hintplan.plans.connectors.messages.formats import Part
from hintplan.plans.declarations.types import DataType, parse_type
from hintplan.runtime.connectors.messages.protobuf_message import fields_of, is_map, message_of

if TYPE_CHECKING:
    from google.protobuf.descriptor import FieldDescriptor

Convert = Callable[[Any], Any]
_FULL = {"INT": 1 << 32, "BIGINT": 1 << 64}


def protobuf_encoder(part: Part) -> Callable[[Sequence[Any]], bytes]:
    """What writes the values of ``part`` as a message, the same bytes for the same values."""
    message = message_of(part)
    literal = part.option("write-null-string-literal") or ""
    fields = message.DESCRIPTOR.fields_by_name
    setters = [
        _setter(fields[field], parse_type(column.type), literal)
        for field, column in zip(part.fields, part.columns, strict=True)
    ]

    def encode(values: Sequence[Any]) -> bytes:
        made = message()
        for put, value in zip(setters, values, strict=True):
            if value is not None:
                put(made, value)
        return bytes(made.SerializeToString(deterministic=True))

    return encode


def _setter(field: FieldDescriptor, declared: DataType, literal: str) -> Callable[[Any, Any], None]:
    """What sets a field of a message to a value that is not NULL."""
    name = field.name
    if is_map(field):
        return _map_setter(field, declared, literal)
    if field.message_type is not None:
        child = declared.children[0] if field.is_repeated else declared
        fill = _filler(field, child, literal)
        if not field.is_repeated:

            def put(made: Any, value: Any) -> None:
                inner = getattr(made, name)
                inner.SetInParent()
                fill(inner, value)

            return put

        def add(made: Any, values: Any) -> None:
            for value in values:
                inner = getattr(made, name).add()
                if value is not None:
                    fill(inner, value)

        return add
    if field.is_repeated:
        one = _or_default(field, declared.children[0], literal)
        return lambda made, values: getattr(made, name).extend([one(value) for value in values])
    convert = _to_one(field, declared)
    return lambda made, value: setattr(made, name, convert(value))


def _filler(field: FieldDescriptor, declared: DataType, literal: str) -> Callable[[Any, Any], None]:
    """What fills a message of a ROW."""
    fields = fields_of(field)
    setters = [(n, _setter(fields[n], c, literal)) for n, c in zip(declared.names, declared.children, strict=True)]

    def fill(inner: Any, value: Any) -> None:
        for name, put in setters:
            if value[name] is not None:
                put(inner, value[name])

    return fill


def _map_setter(field: FieldDescriptor, declared: DataType, literal: str) -> Callable[[Any, Any], None]:
    fields, name = fields_of(field), field.name
    key_type, value_type = declared.children
    key = _or_default(fields["key"], key_type, literal)
    if fields["value"].message_type is not None:
        fill = _filler(fields["value"], value_type, literal)

        def put_messages(made: Any, entries: Any) -> None:
            for found, value in entries:
                inner = getattr(made, name)[key(found)]
                if value is not None:
                    fill(inner, value)

        return put_messages
    one = _or_default(fields["value"], value_type, literal)

    def put(made: Any, entries: Any) -> None:
        values = getattr(made, name)
        for found, value in entries:
            values[key(found)] = one(value)

    return put


def _or_default(field: FieldDescriptor, declared: DataType, literal: str) -> Convert:
    """What writes an element, of which Protobuf has no NULL."""
    convert = _to_one(field, declared)
    instead = literal if field.type == field.TYPE_STRING else _first(field) if field.enum_type else _zero(field)
    return lambda value: instead if value is None else convert(value)


def _zero(field: FieldDescriptor) -> Any:
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
            numbers = {name: each.number for name, each in field.enum_type.values_by_name.items()}
            return lambda value: numbers.get(value, first)
        known = frozenset(field.enum_type.values_by_number)
        return lambda value: value if value in known else first
    if field.cpp_type in (field.CPPTYPE_UINT32, field.CPPTYPE_UINT64):
        full = _FULL[declared.root]
        return lambda value: value % full
    return lambda value: value
