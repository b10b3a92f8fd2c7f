"""The python connector: lookups by a user's class, ``'connector' = 'python', 'class' = 'module.Class'``.

``class`` is a LookupFunction, ``async-class`` an AsyncLookupFunction and ``scan-class`` a ScanFunction. Classes are
created without arguments. Whoever starts the run must allow their modules. A class reads ``properties.*`` from the
options of its context.
"""

from __future__ import annotations

from collections.abc import Mapping

from hintplan.plans.connectors.python import CLASSES, PYTHON
from hintplan.plans.declarations.class_shape import Flavour, Method
from hintplan.plans.declarations.computations import LookupMode
from hintplan.runtime.classes import load_class
from hintplan.runtime.connectors.connector import LookupTable
from hintplan.runtime.lookup.api import AsyncLookupFunction, LookupContext, LookupFunction, ScanFunction
from hintplan.runtime.lookup.source import LookupSource, Source


def _open(mode: LookupMode, context: LookupContext) -> Source:
    """Return an instance of the class for ``mode``; raise RunError if it is not allowed, or lacks a method."""
    option = CLASSES[mode]
    name = context.options[option]
    path = f"tables.{context.table}.options.{option}"
    modules = context.allowed_modules
    user_class: type[LookupFunction] | type[AsyncLookupFunction] | type[ScanFunction]
    if mode == "sync":
        user_class = load_class(name, modules, LookupFunction, path=path, methods=_methods("rows", "value"))
    elif mode == "async":
        user_class = load_class(
            name, modules, AsyncLookupFunction, path=path, methods=_methods("awaited value", "awaited value")
        )
    else:
        scan = Method(name="scan", arguments=1, flavour="rows")
        user_class = load_class(name, modules, ScanFunction, path=path, methods=(scan,))
    return user_class()


def _methods(rows: Flavour, value: Flavour) -> tuple[Method, ...]:
    return (
        Method(name="lookup", arguments=1, flavour=rows),
        Method(name="lookup_many", arguments=1, flavour=value),
        Method(name="open", arguments=1, flavour=value),
        Method(name="close", arguments=0, flavour=value),
    )


def _check(mode: LookupMode, context: LookupContext) -> None:
    _open(mode, context)


_SOURCE = LookupSource(connector=PYTHON.name, modes=tuple(CLASSES), open=_open, check=_check)


class PythonCode(LookupTable):
    """Looks rows up with a class of the user."""

    connector = PYTHON

    def lookup_source(self, options: Mapping[str, str]) -> LookupSource:
        return _SOURCE


CODE = PythonCode()
