"""Protobuf to values, as Flink's format protobuf reads it.

What is absent is NULL, and so is an empty array or map; ``protobuf.read-default-values`` makes both the default value.
Of a message of proto3 that is so anyway for all but messages, arrays and maps. Unsigned numbers are those of the same
bits, as in Java.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from hintplan.plans.connectors.messages.formats import Part
from hintplan.plans.declarations.types import DataType, parse_type
from hintplan.runtime.connectors.messages.protobuf_message import fields_of, is_map, is_proto3, message_of

if TYPE_CHECKING:
    from google.protobuf.descriptor import FieldDescriptor

Convert = Callable[[Any], Any]
_HALF = {"INT": 1 << 31, "BIGINT": 1 << 63}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Absent:
    """What is read as its default value where it is absent: ``every`` field, or those of ``plain`` types."""

    every: bool
    plain: bool


def protobuf_decoder(part: Part, wanted: Collection[str]) -> Callable[[bytes], Sequence[Any] | None]:
    """What reads the values of ``part`` out of a message; ValueError for bytes that are none, or None."""
    from google.protobuf.message import DecodeError

    message, lenient = message_of(part), part.option("ignore-parse-errors") == "true"
    absent = _Absent(every=part.option("read-default-values") == "true", plain=is_proto3(part, message.DESCRIPTOR))
    fields = [
        _getter(message.DESCRIPTOR.fields_by_name[field], parse_type(column.type), absent)
        if column.name in wanted
        else lambda found: None
        for field, column in zip(part.fields, part.columns, strict=True)
    ]

    def decode(value: bytes) -> Sequence[Any] | None:
        try:
            found = message.FromString(value)
        except DecodeError as error:
            if lenient:
                return None
            raise ValueError(f"it is no {message.DESCRIPTOR.full_name}: {error}") from None
        return [get(found) for get in fields]

    return decode


def _getter(field: FieldDescriptor, declared: DataType, absent: _Absent) -> Convert:
    """What reads a field of a message."""
    name = field.name
    if field.is_repeated:
        convert = _repeated(field, declared, absent)

        def repeated(found: Any) -> Any:
            values = getattr(found, name)
            return convert(values) if absent.every or values else None

        return repeated
    one = _from_one(field, declared, absent)
    if absent.every or (absent.plain and field.message_type is None):
        return lambda found: one(getattr(found, name))
    return lambda found: one(getattr(found, name)) if found.HasField(name) else None


def _repeated(field: FieldDescriptor, declared: DataType, absent: _Absent) -> Convert:
    if not is_map(field):
        one = _from_one(field, declared.children[0], absent)
        return lambda values: [one(value) for value in values]
    fields = fields_of(field)
    key, value = (_from_one(fields[n], c, absent) for n, c in zip(("key", "value"), declared.children, strict=True))
    return lambda values: [(key(each), value(values[each])) for each in values]


def _from_one(field: FieldDescriptor, declared: DataType, absent: _Absent) -> Convert:
    if field.message_type is not None:
        fields = fields_of(field)
        getters = [(n, _getter(fields[n], c, absent)) for n, c in zip(declared.names, declared.children, strict=True)]
        return lambda found: {name: get(found) for name, get in getters}
    if field.enum_type is not None:
        if not declared.is_text:
            return partial(_known, field)
        names = {number: each.name for number, each in field.enum_type.values_by_number.items()}
        return lambda number: names.get(number, "UNRECOGNIZED")
    if field.cpp_type in (field.CPPTYPE_UINT32, field.CPPTYPE_UINT64):
        half = _HALF[declared.root]
        return lambda number: number - 2 * half if number >= half else number
    return lambda value: value


def _known(field: FieldDescriptor, number: int) -> int:
    assert field.enum_type is not None
    if number not in field.enum_type.values_by_number:
        raise ValueError(f"the enum {field.enum_type.full_name} has no value {number}; only as text it can be read")
    return number
