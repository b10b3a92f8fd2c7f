"""Frozen dataclasses as JSON values and back, driven by their fields: the one codec of operators and what they hold.

A field ``join_type`` is the key ``join-type``; one that has its default is left out. A class may say that where one
field alone is set it stands for the object (``SHORT``), and that two fields are one text with a dot between
(``JOINED``).

>>> from hintplan.plans.operators import SelectItem
>>> written(SelectItem(name="a")), written(SelectItem(name="b", type="INT", expression="a + 1"))
('a', {'name': 'b', 'type': 'INT', 'expression': 'a + 1'})
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from hintplan.plans.declarations.fields import Ref

Convert = Callable[[Any], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldForm:
    """A field as JSON: its key, how values are converted, and the value at which it is left out."""

    name: str
    key: str
    type: Any
    left_out: Any
    write: Convert | None
    read: Convert | None


def key_of(name: str) -> str:
    """The key of a field in a plan."""
    return name.rstrip("_").replace("_", "-")


def written(value: Any) -> Any:
    """The JSON value of a dataclass."""
    cls: Any = type(value)
    return _writer(cls)(value)


@cache
def forms_of(cls: Any) -> tuple[FieldForm, ...]:
    """The fields of a dataclass in their order, those that are written as a whole included."""
    hints = get_type_hints(cls, include_extras=True)
    forms = []
    for field in fields(cls):
        kind = hints[field.name]
        form = FieldForm(
            name=field.name,
            key=key_of(field.name),
            type=kind,
            left_out=field.default,
            write=_convert(kind, _writer, list),
            read=_convert(kind, _reader, tuple),
        )
        forms.append(form)
    return tuple(forms)


@cache
def _writer(cls: Any) -> Convert:
    short, joined = getattr(cls, "SHORT", None), getattr(cls, "JOINED", {})
    parts = {name for pair in joined.values() for name in pair}
    forms = [form for form in forms_of(cls) if form.name not in parts]

    def write(value: Any) -> Any:
        document: dict[str, Any] = {}
        for form in forms:
            found = getattr(value, form.name)
            if form.left_out is not MISSING and found == form.left_out:
                continue
            document[form.key] = found if form.write is None or found is None else form.write(found)
        for key, (first, second) in joined.items():
            document[key] = f"{getattr(value, first)}.{getattr(value, second)}"
        return document[short] if short is not None and document.keys() == {short} else document

    return write


@cache
def _reader(cls: Any) -> Convert:
    short, joined = getattr(cls, "SHORT", None), getattr(cls, "JOINED", {})
    forms = {form.key: form for form in forms_of(cls)}

    def build(document: Any) -> Any:
        if short is not None and isinstance(document, str):
            return cls(**{short: document})
        values: dict[str, Any] = {}
        for key, found in document.items():
            if key in joined:
                first, second = joined[key]
                values[first], _, values[second] = found.partition(".")
            else:
                form = forms[key]
                values[form.name] = found if form.read is None or found is None else form.read(found)
        return cls(**values)

    return build


def _convert(kind: Any, record: Callable[[Any], Convert], many: Callable[[Any], Any]) -> Convert | None:
    """How values of a type are converted, several of them to ``many``; None if they stand in JSON as they are."""
    kind = plain(kind)
    if is_dataclass(kind) and isinstance(kind, type):
        return record(kind)
    if get_origin(kind) is tuple:
        one = _convert(get_args(kind)[0], record, many)
        if one is None:
            return many
        return lambda values: many(map(one, values))
    return None


def plain(kind: Any) -> Any:
    """A type without its annotations and without None; of several types, those."""
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if get_origin(kind) in (UnionType, Union):
        first, *others = (plain(each) for each in get_args(kind) if each is not NoneType)
        return Union[(first, *others)]  # of one type it is that type
    return kind


def notes_on(kind: Any) -> Mapping[str, Any]:
    """What the annotations of a type say for the JSON Schema; the outermost win."""
    if get_origin(kind) in (UnionType, Union):
        return {key: value for each in get_args(kind) for key, value in notes_on(each).items()}
    if get_origin(kind) is not Annotated:
        return {}
    inner, *notes = get_args(kind)
    said = dict(notes_on(inner))
    for note in notes:
        if isinstance(note, Ref):
            note = {"$ref": f"#/$defs/{note.name}"}
        said |= {"description": note} if isinstance(note, str) else note
    return said


def is_optional(kind: Any) -> bool:
    """Whether None is among the values of a type."""
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    return NoneType in get_args(kind)
