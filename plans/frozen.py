"""Frozen dataclasses with slots and keyword arguments, made in half the time that the decorator of Python takes.

Commands wait for all classes of the modules that they load. For each class, :mod:`dataclasses` writes and compiles
seven methods. Here one is compiled, which is ``__init__``; the others are closures over the fields.

>>> @frozen
... class Point:
...     x: int
...     y: int = 0
>>> Point(x=1) == Point(x=1, y=0), {Point(x=1): "one"}
(True, {Point(x=1, y=0): 'one'})
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from inspect import get_annotations
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any, TypeVar, cast, dataclass_transform

_Class = TypeVar("_Class", bound=type)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def frozen(cls: _Class) -> _Class:
    """Make the same of a class as ``@dataclass(frozen=True, slots=True, kw_only=True)``.

    Every field is an argument, and none is an ``InitVar``. A field without a default may override a property of a base
    class.
    """
    for name in get_annotations(cls):
        if isinstance(getattr(cls, name, None), property) and name not in cls.__dict__:
            # Dataclasses would take the property for the default of the field.
            setattr(cls, name, field())
    made: Any = dataclass(slots=True, kw_only=True, init=False, eq=False, repr=False)(cls)
    parts = fields(made)
    names = [part.name for part in parts]
    # The class comes first, so that there is a tuple even if only one field is compared.
    compared = attrgetter("__class__", *(part.name for part in parts if part.compare))

    def equal(self: Any, other: object) -> bool:
        return bool(compared(self) == compared(other)) if other.__class__ is self.__class__ else NotImplemented

    def hashed(self: Any) -> int:
        return hash(compared(self))

    @recursive_repr()
    def shown(self: Any) -> str:
        values = (f"{part.name}={getattr(self, part.name)!r}" for part in parts if part.repr)
        return f"{self.__class__.__qualname__}({', '.join(values)})"

    def refuse_to_set(self: Any, name: str, value: object) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def refuse_to_delete(self: Any, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def state(self: Any) -> list[Any]:
        return [getattr(self, name) for name in names]

    def set_state(self: Any, values: Sequence[Any]) -> None:
        for name, value in zip(names, values, strict=True):
            object.__setattr__(self, name, value)

    own = {"__init__": _init(made, parts), "__eq__": equal, "__hash__": hashed, "__repr__": shown}
    own |= {"__setattr__": refuse_to_set, "__delattr__": refuse_to_delete}
    own |= {"__getstate__": state, "__setstate__": set_state}
    for name, method in own.items():
        if name not in cls.__dict__:
            setattr(made, name, method)
    return cast(_Class, made)


def _init(cls: type[Any], parts: Sequence[Field[Any]]) -> Callable[..., None]:
    """Return an ``__init__`` with the fields as its arguments."""
    given, lines = [], []
    values: dict[str, Any] = {"_put": object.__setattr__, "_missing": MISSING}
    for part in parts:
        name = part.name
        value = name
        if part.default_factory is not MISSING:
            values[f"_make_{name}"] = part.default_factory
            value = f"_make_{name}() if {name} is _missing else {name}"
            given.append(f"{name}=_missing")
        elif part.default is not MISSING:
            values[f"_default_{name}"] = part.default
            given.append(f"{name}=_default_{name}")
        else:
            given.append(name)
        lines.append(f"  _put(self, {name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append("  self.__post_init__()")
    arguments = ", ".join(["self", *(["*", *given] if given else [])])
    body = "\n".join(lines or ["  pass"])
    # As in dataclasses: the function is of the module of the class, so that its annotations are found.
    places = sys.modules[cls.__module__].__dict__
    found: dict[str, Any] = {}
    exec(f"def make({', '.join(values)}):\n def __init__({arguments}):\n{body}\n return __init__", places, found)
    init: Callable[..., None] = found["make"](**values)
    init.__annotations__ = {part.name: part.type for part in parts} | {"return": None}
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    return init
