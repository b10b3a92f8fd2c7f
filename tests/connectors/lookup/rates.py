"""Lookup classes that tests name in plans: rates by currency, out of a JSON file that a test may change at any time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from runtime.lookup.api import (
    AsyncLookupFunction,
    CacheReloadTrigger,
    Key,
    LookupCache,
    LookupContext,
    LookupFunction,
    ReloadContext,
    Row,
    ScanFunction,
)


def read(context: LookupContext) -> list[dict[str, Any]]:
    """The rows of the file; one line of ``calls`` beside it for every time it is read."""
    path = Path(context.options["properties.path"])
    with path.with_suffix(".calls").open("a") as calls:
        calls.write("call\n")
    return [json.loads(line) for line in path.read_text().splitlines()]


def find(context: LookupContext, keys: Sequence[Key]) -> list[list[Row]]:
    names = [column.name for column in context.columns]
    rows = read(context)
    return [
        [
            tuple(row[name] for name in names)
            for row in rows
            if tuple(row[column.name] for column in context.keys) == key
        ]
        for key in keys
    ]


class Rates(LookupFunction):
    def open(self, context: LookupContext) -> None:
        self.context = context

    def lookup(self, key: Key) -> Iterable[Row]:
        return find(self.context, [key])[0]


class AsyncRates(AsyncLookupFunction):
    async def open(self, context: LookupContext) -> None:
        self.context = context

    async def lookup(self, key: Key) -> Iterable[Row]:
        return find(self.context, [key])[0]


class AllRates(ScanFunction):
    def scan(self, context: LookupContext) -> Iterator[pa.Table]:
        yield pa.Table.from_pylist(read(context))


class BrokenRates(LookupFunction):
    def lookup(self, key: Key) -> Iterable[Row]:
        raise ConnectionError("the rates are gone")


class PlainCache(LookupCache):
    """The simplest cache there can be."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.rows: dict[Key, Sequence[Row]] = {}

    def get_if_present(self, key: Key) -> Sequence[Row] | None:
        return self.rows.get(key)

    def put(self, key: Key, rows: Sequence[Row]) -> Sequence[Row] | None:
        before = self.rows.get(key)
        self.rows[key] = rows
        return before

    def invalidate(self, key: Key) -> None:
        self.rows.pop(key, None)

    def size(self) -> int:
        return len(self.rows)


class Never(CacheReloadTrigger):
    """Never loads again."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.opened = False

    def open(self, context: ReloadContext) -> None:
        self.opened = True
