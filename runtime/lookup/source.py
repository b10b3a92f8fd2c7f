"""The interface between connectors and lookups: each connector supplies a :class:`LookupSource`.

The engine of lookups knows no connector. A source's module, and the driver package that it needs, are imported only
when a plan uses the source.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from hintplan.plans.declarations.computations import LookupMode
from hintplan.plans.errors import RunError
from hintplan.runtime.lookup.api import AsyncLookupFunction, LookupContext, LookupFunction, ScanFunction
from hintplan.runtime.lookup.sources.failures import import_extra

Source = LookupFunction | AsyncLookupFunction | ScanFunction


def _nothing_to_check(mode: LookupMode, context: LookupContext) -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupSource:
    """A source of lookups: its modes, and a function that opens it in each of them.

    The object travels with the task, and its functions are pickled by name. ``connector`` is the name in errors.
    ``check`` raises RunError on the driver for errors that would otherwise appear only in a worker: a class that is not
    allowed, or keys that make no address. It leaves out checks that depend on the worker's environment. ``extra`` is
    the pip extra that installs ``packages``.
    """

    connector: str
    modes: tuple[LookupMode, ...]
    open: Callable[[LookupMode, LookupContext], Source]
    check: Callable[[LookupMode, LookupContext], None] = _nothing_to_check
    extra: str = ""
    packages: tuple[str, ...] = ()


def source_of_classes(
    connector: str,
    module: str,
    classes: Mapping[LookupMode, str],
    *,
    check: Callable[[LookupMode, LookupContext], None] = _nothing_to_check,
    extra: str = "",
    packages: tuple[str, ...] = (),
) -> LookupSource:
    """Return a source with a class in ``module`` for each mode."""
    return LookupSource(
        connector=connector,
        modes=tuple(classes),
        open=partial(_made, module, dict(classes)),
        check=check,
        extra=extra,
        packages=packages,
    )


def _made(module: str, classes: Mapping[LookupMode, str], mode: LookupMode, context: LookupContext) -> Source:
    made: Source = getattr(importlib.import_module(module), classes[mode])()
    return made


def open_source(source: LookupSource, mode: LookupMode, context: LookupContext) -> Source:
    """Create the source for ``mode``; the caller calls its ``open``.

    RunError if the connector has no source for that mode, if a package is not installed, or if a user-defined class may
    not be loaded.
    """
    if mode not in source.modes:
        raise RunError(
            f"table {context.table} cannot be looked up in mode {mode}: its connector is {source.connector!r}",
            path=f"tables.{context.table}",
        )
    for package in source.packages:
        import_extra(package, source.extra, source.connector)
    return source.open(mode, context)
