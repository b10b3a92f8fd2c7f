"""Classes that a plan names: loaded only from modules that whoever starts the run allows, or from entry points.

A plan is a file from a pull request, so a name in it must not be a way to import code. ``--allow-module shop`` allows
``shop`` and what is inside it; an installed distribution allows a class with an entry point in the group
``hintplan.lookup``.

>>> is_allowed("shop.rates.Rates", ("shop",)), is_allowed("shopping.Rates", ("shop",))
(True, False)
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from importlib.metadata import entry_points
from typing import Any

from plans.errors import RunError

__all__ = ["GROUP", "is_allowed", "load_class"]

GROUP = "hintplan.lookup"


def is_allowed(name: str, modules: Sequence[str]) -> bool:
    """Whether the class ``name``, as ``package.module.Class``, may be loaded when ``modules`` are allowed."""
    module = name.rpartition(".")[0]
    if any(module == allowed or module.startswith(f"{allowed}.") for allowed in modules):
        return True
    return any(entry.value.replace(":", ".") == name for entry in entry_points(group=GROUP))


def load_class(name: str, modules: Sequence[str], expected: type, *, path: str) -> Any:
    """The subclass of ``expected`` called ``name``; RunError, naming ``path`` in the plan, if it is not to be had."""
    module_name, _, class_name = name.rpartition(".")
    if not is_allowed(name, modules):
        raise RunError(
            f"the class {name} may not be loaded: module {module_name} is not allowed",
            hint=f"allow it for the run: --allow-module {module_name}",
            path=path,
        )
    try:
        found = getattr(importlib.import_module(module_name), class_name, None)
    except ImportError as error:
        raise RunError(
            f"the class {name} cannot be loaded: {error}",
            hint="the module must be importable where the run starts and in the Python workers",
            path=path,
        ) from error
    if not (isinstance(found, type) and issubclass(found, expected)):
        what = "is not there" if found is None else f"is no {expected.__name__}"
        raise RunError(f"{class_name} in module {module_name} {what}", path=path)
    return found
