"""Loads classes that SQL or a plan refers to: only from allowed modules, or classes with an entry point.

A plan is a file from a pull request, so a name in it must not be a way to import code. Whoever starts a command allows
the module ``shop`` and everything inside it with ``--allow-module shop``. An installed distribution allows a class with
an entry point in the group of its type, such as ``hintplan.lookup``. Planner and runtime both load classes here. Knows
no interface that classes implement.

>>> is_allowed("shop.rates.Rates", ("shop",), group=FUNCTIONS), is_allowed("shopping.Rates", ("shop",), group=FUNCTIONS)
(True, False)
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import entry_points
from typing import Any

from hintplan.plans.declarations.built_in import CLASSES_BUILT_IN

LOOKUPS = "hintplan.lookup"
FUNCTIONS = "hintplan.functions"
"""The groups of entry points that allow classes."""


# The import of a faulty user module may raise any of these.
_BROKEN = (ImportError, SyntaxError, NameError, AttributeError, LookupError, TypeError, ValueError, OSError)


class ClassRefusal(ValueError):
    """A class that may not or cannot be loaded; ``hint`` is a remedy."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


def is_allowed(name: str, modules: Sequence[str], *, group: str) -> bool:
    """Return True if the class ``name``, as ``package.module.Class``, may be loaded when ``modules`` are allowed."""
    if group == FUNCTIONS and name in CLASSES_BUILT_IN:
        return True
    module = name.rpartition(".")[0]
    if any(module == allowed or module.startswith(f"{allowed}.") for allowed in modules):
        return True
    return any(entry.value.replace(":", ".") == name for entry in entry_points(group=group))


def load_named_class(name: str, modules: Sequence[str], *, group: str, needed: str) -> type[Any]:
    """Return the class called ``name``; raise ClassRefusal if it may not or cannot be loaded.

    ``needed`` is a hint that describes where the module must be importable.
    """
    module_name, _, class_name = name.rpartition(".")
    if not is_allowed(name, modules, group=group):
        raise ClassRefusal(
            f"the class {name} may not be loaded: module {module_name} is not allowed",
            hint=f"allow it: --allow-module {module_name}",
        )
    try:
        module = importlib.import_module(module_name)
    except _BROKEN as error:
        raise ClassRefusal(f"the class {name} cannot be loaded: {error}", hint=needed) from error
    attribute = getattr(module, class_name, None)
    if not isinstance(attribute, type):
        reason = "is not there" if attribute is None else "is no class"
        place = getattr(module, "__file__", None)
        raise ClassRefusal(
            f"{class_name} in module {module_name} {reason}", hint=f"look into {place}" if place else None
        )
    return attribute


@contextmanager
def importable_from(directories: Sequence[str]) -> Iterator[None]:
    """Make modules in ``directories`` importable within the context, with lower priority than installed ones.

    The priority is lower because a file next to a script must not replace a library that hintplan itself is about to
    use.
    """
    added = [directory for directory in directories if directory not in sys.path]
    sys.path.extend(added)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        for directory in added:
            sys.path.remove(directory)
