"""Converts Protobuf messages to values, as Flink's format protobuf does.

An absent field is NULL, and so is an empty array or map. With ``protobuf.read-default-values``, both become the default
value. In proto3, an absent field always becomes the default value, unless it is a message, array or map. Unsigned
numbers become signed numbers with the same bits, as in Java.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from hintplan.plans.connectors.messages.formats import Part
from hintplan.plans.declarations.types import DataType, parse_type
from hintplan.runtime.connectors.messages.protobuf_message import is_map, is_proto3, message_fields, message_of

if TYPE_CHECKING:
    from google.protobuf.descriptor import FieldDescriptor
    from google.protobuf.message import Message

Convert = Callable[[Any], Any]
_HALF = {"INT": 1 << 31, "BIGINT": 1 << 63}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Absent:
    """The absent fields that are read as their default value: ``every`` field, or fields of ``plain`` types."""

    every: bool
    plain: bool


def protobuf_decoder(part: Part, wanted: Collection[str]) -> Callable[[bytes], Sequence[Any] | None]:
    """Return a function that decodes a message to the values of ``part``.

    For invalid bytes, it raises ValueError, or returns None if the options of ``part`` are lenient.
    """
    from google.protobuf.message import DecodeError

    message, lenient = message_of(part), part.option("ignore-parse-errors") == "true"
    absent = _Absent(every=part.option("read-default-values") == "true", plain=is_proto3(part, message.DESCRIPTOR))
    fields = [
        _getter(message.DESCRIPTOR.fields_by_name[field], parse_type(column.type), absent)
        if column.name in wanted
        else lambda parsed: None
        for field, column in zip(part.fields, part.columns, strict=True)
    ]

    def decode(value: bytes) -> Sequence[Any] | None:
        try:
            parsed = message.FromString(value)
        except DecodeError as error:
            if lenient:
                return None
            raise ValueError(f"it is no {message.DESCRIPTOR.full_name}: {error}") from None
        return [get(parsed) for get in fields]

    return decode


def _getter(field: FieldDescriptor, declared: DataType, absent: _Absent) -> Convert:
    """Return a function that reads a field of a message."""
    name = field.name
    if field.is_repeated:
        convert = _repeated(field, declared, absent)

        def repeated(message: Message) -> object:
            values = getattr(message, name)
            return convert(values) if absent.every or values else None

        return repeated
    convert_single = _from_one(field, declared, absent)
    if absent.every or (absent.plain and field.message_type is None):
        return lambda message: convert_single(getattr(message, name))
    return lambda message: convert_single(getattr(message, name)) if message.HasField(name) else None


def _repeated(field: FieldDescriptor, declared: DataType, absent: _Absent) -> Convert:
    if not is_map(field):
        convert_element = _from_one(field, declared.children[0], absent)
        return lambda values: [convert_element(value) for value in values]
    fields = message_fields(field)
    key, value = (_from_one(fields[n], c, absent) for n, c in zip(("key", "value"), declared.children, strict=True))
    return lambda values: [(key(map_key), value(values[map_key])) for map_key in values]


def _from_one(field: FieldDescriptor, declared: DataType, absent: _Absent) -> Convert:
    if field.message_type is not None:
        fields = message_fields(field)
        getters = [(n, _getter(fields[n], c, absent)) for n, c in zip(declared.names, declared.children, strict=True)]
        return lambda message: {name: get(message) for name, get in getters}
    if field.enum_type is not None:
        if not declared.is_text:
            return partial(_known, field)
        texts = {number: enum_value.name for number, enum_value in field.enum_type.values_by_number.items()}
        return lambda number: texts.get(number, "UNRECOGNIZED")
    if field.cpp_type in (field.CPPTYPE_UINT32, field.CPPTYPE_UINT64):
        half = _HALF[declared.root]
        return lambda number: number - 2 * half if number >= half else number
    return lambda value: value


def _known(field: FieldDescriptor, number: int) -> int:
    assert field.enum_type is not None
    if number not in field.enum_type.values_by_number:
        raise ValueError(f"the enum {field.enum_type.full_name} has no value {number}; only as text it can be read")
    return number
