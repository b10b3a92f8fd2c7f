"""The Protobuf message whose fields are the columns of a table.

Its definition is in a descriptor set, a file from ``protoc --include_imports --descriptor_set_out``. The driver reads
the file, and workers get its content. As in Flink, columns must have the names and the types of fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from hintplan.plans.connectors.messages.format_options import DESCRIPTORS, MESSAGE
from hintplan.plans.connectors.messages.formats import Part
from hintplan.plans.declarations.types import DataType, parse_type

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor
    from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, FileDescriptorSet

_BINARY = ("BYTES", "BINARY", "VARBINARY")
_ENUM = ("STRING", "INT")


def message_of(part: Part) -> Any:
    """Return the class of the message of ``part``, after checking its columns; raise ValueError if there is none."""
    from google.protobuf import descriptor_pool, message_factory

    wanted, files = part.options[MESSAGE], _files(part)
    own_names = dict(pair for file in files.file for pair in _names(file))
    name = own_names.get(wanted, wanted)
    if name not in own_names.values():
        raise ValueError(
            f"{part.options[DESCRIPTORS]!r} has no message {wanted!r}; it has {', '.join(own_names) or 'no messages'}"
        )
    pool = descriptor_pool.DescriptorPool()
    try:
        for file in files.file:
            pool.Add(file)
        descriptor = pool.FindMessageTypeByName(name)
    except (TypeError, KeyError) as error:
        raise ValueError(
            f"{part.options[DESCRIPTORS]!r} does not have all that it imports; was it made with --include_imports? "
            f"({error})"
        ) from None
    for column, field in zip(part.columns, part.fields, strict=True):
        _check(descriptor, field, parse_type(column.type))
    return message_factory.GetMessageClass(descriptor)


def is_proto3(part: Part, message: Descriptor) -> bool:
    """Return true if the file that defines ``message`` uses proto3."""
    return any(file.syntax == "proto3" for file in _files(part).file if file.name == message.file.name)


def _files(part: Part) -> FileDescriptorSet:
    from google.protobuf import descriptor_pb2
    from google.protobuf.message import DecodeError

    try:
        return descriptor_pb2.FileDescriptorSet.FromString(part.definition)
    except DecodeError:
        raise ValueError(f"{part.options[DESCRIPTORS]!r} is no descriptor set") from None


def _names(file: FileDescriptorProto) -> Iterator[tuple[str, str]]:
    """Yield the Java name and the Protobuf name of each message of ``file``."""
    options = file.options
    package = options.java_package or file.package
    outer = options.java_outer_classname or _outer_class(file)
    around = f"{package}." if package else ""
    start = around if options.java_multiple_files else f"{around}{outer}$"
    for message in file.message_type:
        yield from _nested(message, start, f"{file.package}." if file.package else "")


def _nested(message: DescriptorProto, java: str, own: str) -> Iterator[tuple[str, str]]:
    yield java + message.name, own + message.name
    for inner in message.nested_type:
        if not inner.options.map_entry:
            yield from _nested(inner, f"{java}{message.name}$", f"{own}{message.name}.")


def _outer_class(file: FileDescriptorProto) -> str:
    """Return the Java class of a file that sets no ``java_outer_classname``: its name in camel case."""
    stem = file.name.rpartition("/")[2].removesuffix(".proto")
    camel, upper = "", True
    for character in stem:
        if not (character.isascii() and character.isalnum()):
            upper = True
        else:
            camel += character.upper() if upper else character
            upper = character.isdigit()
    taken = [definition.name for group in (file.message_type, file.enum_type, file.service) for definition in group]
    return f"{camel}OuterClass" if camel in taken else camel


def _check(message: Descriptor, field: str, declared: DataType) -> None:
    descriptor = message.fields_by_name.get(field)
    if descriptor is None:
        raise ValueError(
            f"column {field!r} is no field of the message {message.full_name}, which has "
            f"{', '.join(other.name for other in message.fields) or 'none'}"
        )
    if problem := _misfit(descriptor, declared):
        raise ValueError(
            f"column {field!r} is {declared.as_nullable()}, and the field {descriptor.full_name} is {problem}"
        )


def _misfit(field: FieldDescriptor, declared: DataType) -> str:
    """Return a description of a field that does not match the declared type; empty if it matches."""
    if not field.is_repeated:
        return _misfit_of_one(field, declared)
    if is_map(field):
        if declared.root != "MAP":
            return "a map"
        fields = message_fields(field)
        problems = (_misfit_of_one(fields[n], c) for n, c in zip(("key", "value"), declared.children, strict=True))
        return next((f"a map with {problem}" for problem in problems if problem), "")
    if declared.root != "ARRAY":
        return "repeated, an ARRAY"
    problem = _misfit_of_one(field, declared.children[0])
    return f"repeated {problem}" if problem else ""


def _misfit_of_one(field: FieldDescriptor, declared: DataType) -> str:
    root = "STRING" if declared.is_text else "BYTES" if declared.root in _BINARY else declared.root
    if field.message_type is not None:
        if root != "ROW":
            return "a message, a ROW"
        for name, child in zip(declared.names, declared.children, strict=True):
            _check(field.message_type, name, child)
        return ""
    if field.enum_type is not None:
        return "" if root in _ENUM else "an enum, STRING or INT"
    expected = {
        field.CPPTYPE_BOOL: "BOOLEAN", field.CPPTYPE_INT32: "INT", field.CPPTYPE_UINT32: "INT",
        field.CPPTYPE_INT64: "BIGINT", field.CPPTYPE_UINT64: "BIGINT", field.CPPTYPE_FLOAT: "FLOAT",
        field.CPPTYPE_DOUBLE: "DOUBLE", field.CPPTYPE_STRING: "BYTES" if field.type == field.TYPE_BYTES else "STRING",
    }[field.cpp_type]  # fmt: skip
    return "" if root == expected else expected


def message_fields(field: FieldDescriptor) -> Mapping[str, FieldDescriptor]:
    """Return the fields of the message, or of the map entries, in a field."""
    assert field.message_type is not None
    return field.message_type.fields_by_name


def is_map(field: FieldDescriptor) -> bool:
    """Return true if a field is a map, which Protobuf encodes as repeated messages."""
    return field.message_type is not None and field.message_type.GetOptions().map_entry
