"""Converts frozen dataclasses to JSON values and back, driven by their fields: the only codec of operators.

A field ``join_type`` becomes the key ``join-type``; a field with its default value is left out. If a class has
``SHORT``, an object with only this field is written as the bare value. If it has ``JOINED``, two fields are written as
one text, joined by a dot.

>>> from hintplan.plans.operators import SelectItem
>>> field_json(SelectItem(name="a")), field_json(SelectItem(name="b", type="INT", expression="a + 1"))
('a', {'name': 'b', 'type': 'INT', 'expression': 'a + 1'})
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from inspect import get_annotations
from types import NoneType, UnionType
from typing import Annotated, Any, Union, cast, get_args, get_origin

from hintplan.plans.declarations.fields import Ref
from hintplan.plans.frozen import frozen

Convert = Callable[[Any], Any]


@frozen
class FieldForm:
    """The JSON form of a field: its key, its conversions, and the value for which it is left out."""

    name: str
    key: str
    type: Any
    left_out: Any
    write: Convert | None
    read: Convert | None


def field_key(name: str) -> str:
    """Return the key of a field in a plan."""
    return name.rstrip("_").replace("_", "-")


def field_json(value: object) -> object:
    """Return the JSON value of a dataclass."""
    cls: object = type(value)
    converted: object = _writer(cls)(value)
    return converted


@cache
def forms_of(cls: object) -> tuple[FieldForm, ...]:
    """Return the fields of a dataclass in order, including fields that are written together."""
    # The class variables of abstract base classes are not evaluated, which takes longer than all fields.
    owners = [base for base in cast(type, cls).__mro__ if is_dataclass(base)]
    hints = {name: kind for base in reversed(owners) for name, kind in get_annotations(base, eval_str=True).items()}
    forms = []
    for field in fields(cast(Any, cls)):
        kind = hints[field.name]
        form = FieldForm(
            name=field.name,
            key=field_key(field.name),
            type=kind,
            left_out=field.default,
            write=_convert(kind, _writer, list),
            read=_convert(kind, _reader, tuple),
        )
        forms.append(form)
    return tuple(forms)


@cache
def _writer(cls: object) -> Convert:
    short, joined = getattr(cls, "SHORT", None), getattr(cls, "JOINED", {})
    parts = {name for pair in joined.values() for name in pair}
    forms = [form for form in forms_of(cls) if form.name not in parts]

    def write(value: object) -> object:
        document: dict[str, Any] = {}
        for form in forms:
            part = getattr(value, form.name)
            if form.left_out is not MISSING and part == form.left_out:
                continue
            document[form.key] = part if form.write is None or part is None else form.write(part)
        for key, (first, second) in joined.items():
            document[key] = f"{getattr(value, first)}.{getattr(value, second)}"
        return document[short] if short is not None and document.keys() == {short} else document

    return write


@cache
def _reader(cls: object) -> Convert:
    short, joined = getattr(cls, "SHORT", None), getattr(cls, "JOINED", {})
    forms = {form.key: form for form in forms_of(cls)}
    make = cast(Callable[..., object], cls)

    def build(document: str | Mapping[str, Any]) -> object:
        if isinstance(document, str):
            assert short is not None
            return make(**{short: document})
        values: dict[str, Any] = {}
        for key, part in document.items():
            if key in joined:
                first, second = joined[key]
                values[first], _, values[second] = part.partition(".")
            else:
                form = forms[key]
                values[form.name] = part if form.read is None or part is None else form.read(part)
        return make(**values)

    return build


def _convert(kind: object, record: Callable[[Any], Convert], many: Callable[[Any], Any]) -> Convert | None:
    """Return the conversion of a type's values, with several values as ``many``; None if JSON has the same values."""
    kind = bare_type(kind)
    if is_dataclass(kind) and isinstance(kind, type):
        return record(kind)
    if get_origin(kind) is tuple:
        convert = _convert(get_args(kind)[0], record, many)
        if convert is None:
            return many
        return lambda values: many(map(convert, values))
    return None


def bare_type(kind: object) -> object:
    """Return a type without its annotations and without None; a union stays a union."""
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if get_origin(kind) in (UnionType, Union):
        first, *more = (bare_type(member) for member in get_args(kind) if member is not NoneType)
        return Union[(first, *more)]  # a union of one type is that type
    return kind


def notes_on(kind: object) -> Mapping[str, Any]:
    """Return the JSON Schema keywords in the annotations of a type; the outermost annotations win."""
    if get_origin(kind) in (UnionType, Union):
        return {key: value for member in get_args(kind) for key, value in notes_on(member).items()}
    if get_origin(kind) is not Annotated:
        return {}
    inner, *notes = get_args(kind)
    keywords = dict(notes_on(inner))
    for note in notes:
        if isinstance(note, Ref):
            note = {"$ref": f"#/$defs/{note.name}"}
        keywords |= {"description": note} if isinstance(note, str) else note
    return keywords


def is_optional(kind: object) -> bool:
    """Return True if None is a value of the type."""
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    return NoneType in get_args(kind)
