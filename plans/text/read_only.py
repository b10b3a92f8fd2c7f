"""A mapping that is read like a dict and cannot be changed: what a plan is made of.

It equals a dict with the same entries, pickles, and becomes JSON as a dict does, which ``types.MappingProxyType`` does
not.

>>> config = ReadOnly({"parallelism.default": "4"})
>>> config == {"parallelism.default": "4"}, {**config, "name": "p"}
(True, {'parallelism.default': '4', 'name': 'p'})
>>> config["parallelism.default"] = "8"
Traceback (most recent call last):
    ...
TypeError: nothing changes a plan: hintplan.set(plan, path, value) gives another one
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class ReadOnly(dict[K, V]):
    """A dict that raises TypeError when it would change."""

    def _refuse(self, *arguments: Any, **named: Any) -> NoReturn:
        raise TypeError("nothing changes a plan: hintplan.set(plan, path, value) gives another one")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return read_only, (dict(self),)


def read_only(mapping: Mapping[K, V]) -> ReadOnly[K, V]:
    """Return ``mapping`` as it is now, which cannot be changed; itself if it is one already."""
    return mapping if isinstance(mapping, ReadOnly) else ReadOnly(mapping)
