"""Frozen dataclasses with slots and keyword arguments, made in less time than by the decorator of Python.

Commands wait for all classes of the modules that they load. For each class, :mod:`dataclasses` writes and compiles
``==``, ``hash`` and ``repr``. Here they are closures over one getter of the fields.

>>> @frozen
... class Point:
...     x: int
...     y: int = 0
>>> Point(x=1) == Point(x=1, y=0), {Point(x=1): "one"}
(True, {Point(x=1, y=0): 'one'})
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any, TypeVar, cast, dataclass_transform

_Class = TypeVar("_Class", bound=type)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def frozen(cls: _Class) -> _Class:
    """Make the same of a class as ``@dataclass(frozen=True, slots=True, kw_only=True)``."""

    def equal(self: Any, other: object) -> bool:
        return bool(compared(self) == compared(other)) if other.__class__ is self.__class__ else NotImplemented

    def hashed(self: Any) -> int:
        return hash(compared(self))

    @recursive_repr()
    def shown(self: Any) -> str:
        return f"{self.__class__.__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    for name, method in (("__eq__", equal), ("__hash__", hashed), ("__repr__", shown)):
        if name not in cls.__dict__:
            setattr(cls, name, method)
    made: Any = dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)(cls)
    names = [one.name for one in fields(made) if one.repr]
    # The class comes first, so that there is a tuple even if only one field is compared.
    compared = attrgetter("__class__", *(one.name for one in fields(made) if one.compare))
    return cast(_Class, made)
