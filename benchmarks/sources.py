"""Lookup sources for the benchmark: PostgreSQL asked key by key, and sources that take a fixed time to answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from hintplan.runtime.connectors.jdbc.postgres_lookup import AsyncPostgresLookup, PostgresLookup
from hintplan.runtime.lookup.api import AsyncLookupFunction, Key, LookupContext, LookupFunction, Row

__all__ = ["DELAY_SECONDS", "KeyByKey", "KeyByKeyAsync", "Slow", "SlowAsync", "SlowBulk", "SlowBulkAsync"]

DELAY_SECONDS = 0.005


def _passed_on(context: LookupContext) -> LookupContext:
    options = {name.removeprefix("properties."): value for name, value in context.options.items()}
    return replace(context, options=options)


class KeyByKey(PostgresLookup):
    """The jdbc source with one key a query."""

    bulk: ClassVar[bool] = False

    def open(self, context: LookupContext) -> None:
        super().open(_passed_on(context))


class KeyByKeyAsync(AsyncPostgresLookup):
    """The asynchronous jdbc source with one key a query."""

    bulk: ClassVar[bool] = False

    async def open(self, context: LookupContext) -> None:
        await super().open(_passed_on(context))


def _row(key: Key) -> Row:
    return (key[0], key[0] * 0.5, f"name {key[0]}")


class Slow(LookupFunction):
    """Answers a key after the delay."""

    def lookup(self, key: Key) -> list[Row]:
        time.sleep(DELAY_SECONDS)
        return [_row(key)]


class SlowAsync(AsyncLookupFunction):
    """Answers a key after the delay, and any number at once."""

    async def lookup(self, key: Key) -> list[Row]:
        await asyncio.sleep(DELAY_SECONDS)
        return [_row(key)]


class SlowBulk(Slow):
    """Answers a call after the delay, however many keys it has."""

    bulk: ClassVar[bool] = True

    def lookup_many(self, keys: Sequence[Key]) -> list[list[Row]]:
        time.sleep(DELAY_SECONDS)
        return [[_row(key)] for key in keys]


class SlowBulkAsync(SlowAsync):
    """Answers a call after the delay, however many keys it has, and any number of calls at once."""

    bulk: ClassVar[bool] = True

    async def lookup_many(self, keys: Sequence[Key]) -> list[list[Row]]:
        await asyncio.sleep(DELAY_SECONDS)
        return [[_row(key)] for key in keys]
