"""Lookups by a class of the user's: ``'connector' = 'python', 'class' = 'module.Class'``.

``class`` is a LookupFunction, ``async-class`` an AsyncLookupFunction and ``scan-class`` a ScanFunction; all are created
without arguments. They come only from modules that whoever starts the run allows. ``properties.*`` are theirs to read
from the options of the context.
"""

from __future__ import annotations

from plans.errors import RunError
from plans.lookup_connectors import PYTHON_CLASSES
from plans.options import LookupMode
from runtime.classes import load_class
from runtime.lookup.api import AsyncLookupFunction, LookupContext, LookupFunction, ScanFunction

__all__ = ["python_source"]


def python_source(mode: LookupMode, context: LookupContext) -> LookupFunction | AsyncLookupFunction | ScanFunction:
    """An instance of the class named for ``mode``; RunError if it may not be loaded or is of another kind."""
    option = PYTHON_CLASSES[mode]
    name = context.options[option]
    path = f"tables.{context.table}.options.{option}"
    modules = context.allowed_modules
    found: type[LookupFunction] | type[AsyncLookupFunction] | type[ScanFunction]
    if mode == "sync":
        found = load_class(name, modules, LookupFunction, path=path)
    elif mode == "async":
        found = load_class(name, modules, AsyncLookupFunction, path=path)
    else:
        found = load_class(name, modules, ScanFunction, path=path)
    if missing := sorted(found.__abstractmethods__):
        raise RunError(f"the class {name} does not define {', '.join(missing)}", path=path)
    return found()
