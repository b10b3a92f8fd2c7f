"""Where the rows of a lookup come from: what a connector gives the engine of lookups, which knows no connector.

A source's module, and with it the driver that it needs, is imported when a plan uses it.
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
    """How to ``open`` a source in each of its ``modes``; it travels with the task, its functions by their names.

    ``connector`` is what errors call it. ``check`` refuses on the driver what would only fail in a worker (RunError):
    a class that is not allowed, and keys that make no address. What only the environment of a worker can tell is left
    to it. ``packages`` are those that ``extra`` installs.
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
    """A source with a class in ``module`` for each mode."""
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
    """The source for ``mode``, whose ``open`` is the caller's to call.

    RunError if there is none for that mode, if a package that it needs is not installed, or if a class of the user's
    may not be loaded.
    """
    if mode not in source.modes:
        raise RunError(
            f"table {context.table} cannot be looked up in mode {mode}: its connector is {source.connector!r}",
            path=f"tables.{context.table}",
        )
    for package in source.packages:
        import_extra(package, source.extra, source.connector)
    return source.open(mode, context)
