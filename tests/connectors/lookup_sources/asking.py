"""Asks lookup sources in the same words, whether they are synchronous or not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from plans.connectors.check import check_table
from plans.declarations.tables import Column, Table, TableColumn
from runtime.connectors.table import lookup_source
from runtime.lookup.api import AsyncLookupFunction, LookupContext, LookupFunction, ScanFunction
from runtime.lookup.source import Source, open_source
from runtime.types import to_arrow

Ask = Callable[..., list[list[tuple[Any, ...]]]]


def context(
    options: Mapping[str, str],
    declared: Mapping[str, str],
    *,
    keys: Sequence[str] = (),
    columns: Sequence[str] | None = None,
    **allowed: tuple[str, ...],
) -> LookupContext:
    """A context for table ``t`` with the ``declared`` columns, all of them wanted unless ``columns`` says otherwise.

    The options must pass the check that a plan's tables pass.
    """
    table = Table(columns=tuple(TableColumn(name=n, type=t) for n, t in declared.items()), options=options)
    assert [str(finding) for finding in check_table("t", table)] == []
    return LookupContext(
        table="t",
        options=options,
        keys=tuple(Column(name=name, type=declared[name]) for name in keys),
        columns=tuple(Column(name=name, type=declared[name]) for name in (declared if columns is None else columns)),
        declared=tuple(Column(name=name, type=type_text) for name, type_text in declared.items()),
        **allowed,
    )


def opened(mode: str, where: LookupContext) -> Source:
    """The source of the table's connector for ``mode``, before its ``open`` is called."""
    return open_source(lookup_source(where.options), mode, where)  # type: ignore[arg-type]


@contextmanager
def asked(mode: str, where: LookupContext) -> Iterator[Ask]:
    """A function that takes keys and returns the rows of each, on an open source that is closed at the end."""
    source = opened(mode, where)
    if isinstance(source, LookupFunction):
        source.open(where)
        try:
            yield lambda *keys: _checked(where, source.lookup_many(keys))
        finally:
            source.close()
    else:
        assert isinstance(source, AsyncLookupFunction)
        with asyncio.Runner() as runner:
            runner.run(source.open(where))
            try:
                yield lambda *keys: _checked(where, runner.run(source.lookup_many(keys)))
            finally:
                runner.run(source.close())


def scanned(where: LookupContext) -> list[tuple[Any, ...]]:
    """All rows of a source for full caches, after a cast to the declared types."""
    source = opened("full", where)
    assert isinstance(source, ScanFunction)
    schema = pa.schema([(column.name, to_arrow(column.type)) for column in where.columns])
    rows: list[tuple[Any, ...]] = []
    for part in source.scan(where):
        table = pa.Table.from_batches([part]) if isinstance(part, pa.RecordBatch) else part
        table = table.select(schema.names).cast(schema)
        rows += zip(*(column.to_pylist() for column in table.columns), strict=True)
    return rows


def _checked(where: LookupContext, found: Sequence[Any]) -> list[list[tuple[Any, ...]]]:
    """The rows, after a way through Arrow and back, which values of a wrong type do not survive unchanged."""
    types = [to_arrow(column.type) for column in where.columns]
    answers = [[tuple(row) for row in rows] for rows in found]
    for rows in answers:
        for row in rows:
            assert len(row) == len(types)
            assert tuple(pa.array([value], t)[0].as_py() for value, t in zip(row, types, strict=True)) == row
    return answers
