"""Lookup sources by connector and mode: the only place that lists them.

A source's module, and with it the driver that it needs, is imported when a plan uses it.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass

from plans.connectors.connector import LookupMode
from plans.connectors.jdbc import POSTGRES_URL
from plans.errors import RunError
from runtime.lookup.api import AsyncLookupFunction, LookupContext, LookupFunction, ScanFunction
from runtime.lookup.sources.addressing import addressed_columns
from runtime.lookup.sources.failures import import_extra
from runtime.lookup.sources.python_class import python_source

__all__ = ["check_source", "open_source"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """A module below this one, its class for each mode, and the packages that ``extra`` installs for it."""

    module: str
    classes: Mapping[LookupMode, str]
    extra: str = ""
    packages: tuple[str, ...] = ()


_SOURCES: Mapping[str, _Source] = {
    "filesystem": _Source(module="files", classes={"full": "FilesScan"}),
    "http": _Source(
        module="http", classes={"sync": "HttpLookup", "async": "AsyncHttpLookup"}, extra="http", packages=("httpx",)
    ),
    "jdbc:postgresql": _Source(
        module="postgres",
        classes={"sync": "PostgresLookup", "async": "AsyncPostgresLookup", "full": "PostgresScan"},
        extra="postgres",
        packages=("psycopg", "psycopg_pool"),
    ),
    "jdbc:sqlite": _Source(module="sqlite", classes={"sync": "SqliteLookup", "full": "SqliteScan"}),
    "redis": _Source(
        module="redis", classes={"sync": "RedisLookup", "async": "AsyncRedisLookup"}, extra="redis", packages=("redis",)
    ),
}


def check_source(connector: str, mode: LookupMode, context: LookupContext) -> None:
    """Refuse on the driver what would only fail in a worker (RunError).

    That is a class that is not allowed, and keys that make no address. What only the environment of a worker can tell
    is left to it.
    """
    if connector == "python":
        python_source(mode, context)
    elif connector == "redis":
        addressed_columns(context, "key-pattern")
    elif connector == "http":
        addressed_columns(context, "url")


def open_source(
    connector: str, mode: LookupMode, context: LookupContext
) -> LookupFunction | AsyncLookupFunction | ScanFunction:
    """The source of ``connector`` for ``mode``, whose ``open`` is the caller's to call.

    RunError if the connector cannot look up in that mode, if a package that it needs is not installed, or if a class
    of the user's may not be loaded.
    """
    if connector == "python":
        return python_source(mode, context)
    if connector == "jdbc":
        connector = "jdbc:postgresql" if context.options["url"].startswith(POSTGRES_URL) else "jdbc:sqlite"
    source = _SOURCES.get(connector)
    if source is None or mode not in source.classes:
        raise RunError(
            f"table {context.table} cannot be looked up in mode {mode}: its connector is {connector!r}",
            path=f"tables.{context.table}",
        )
    for package in source.packages:
        import_extra(package, source.extra, connector)
    module = importlib.import_module(f"{__name__}.{source.module}")
    made: LookupFunction | AsyncLookupFunction | ScanFunction = getattr(module, source.classes[mode])()
    return made
