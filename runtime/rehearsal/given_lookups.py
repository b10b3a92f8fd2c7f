"""Lookup tables whose rows a test gives: a source for each, in all modes, which finds rows by their key.

A lookup compares keys as SQL does: NULL is equal to nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from hintplan.plans.declarations.computations import LookupMode
from hintplan.runtime.lookup.api import AsyncLookupFunction, Key, LookupContext, LookupFunction, Row, ScanFunction
from hintplan.runtime.lookup.source import LookupSource, Source

_MODES: tuple[LookupMode, ...] = ("sync", "async", "full")


def given_lookup(rows: pa.Table) -> LookupSource:
    """Return a source that answers from ``rows``, which have all physical columns of the table."""
    return LookupSource(connector="test", modes=_MODES, open=_Opening(rows))


@dataclass(frozen=True, slots=True)
class _Opening:
    rows: pa.Table

    def __call__(self, mode: LookupMode, context: LookupContext) -> Source:
        if mode == "full":
            return _AllRows(self.rows)
        return _AsyncRows(self.rows) if mode == "async" else _SyncRows(self.rows)


def _matching(rows: pa.Table, context: LookupContext, key: Key) -> list[Row]:
    names = [column.name for column in context.keys]
    return [
        tuple(row[column.name] for column in context.columns)
        for row in rows.to_pylist()
        if all(row[name] is not None and row[name] == value for name, value in zip(names, key, strict=True))
    ]


class _SyncRows(LookupFunction):
    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows

    def open(self, context: LookupContext) -> None:
        self._context = context

    def lookup(self, key: Key) -> Iterable[Row]:
        return _matching(self._rows, self._context, key)


class _AsyncRows(AsyncLookupFunction):
    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows

    async def open(self, context: LookupContext) -> None:
        self._context = context

    async def lookup(self, key: Key) -> Iterable[Row]:
        return _matching(self._rows, self._context, key)


class _AllRows(ScanFunction):
    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows

    def scan(self, context: LookupContext) -> Iterator[Sequence[Row] | pa.Table]:
        yield self._rows.select([column.name for column in context.columns])
