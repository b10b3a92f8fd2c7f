"""The calls of one task: Arrow tables in, Arrow tables out, in the order of the input, and what was counted.

With an asynchronous function, batches are read on while calls for earlier ones are in flight. The rows that a function
returns for one row stay together, in their order; a LEFT join pads rows for which it returned none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from runtime.functions.api import AsyncScalarFunction, AsyncTableFunction, ScalarFunction, TableFunction
from runtime.functions.call_async import AsyncCalls
from runtime.functions.failures import Blame, call_text
from runtime.functions.metrics import FunctionCounters
from runtime.functions.rows import Arguments, argument_rows, listed
from runtime.functions.spec import FunctionSpec
from runtime.functions.worker import OpenFunction, acquired
from runtime.worker.metered import counts, data, tables_of
from runtime.worker.pipeline import Step, flowing

_PIECE = 4096
"""Rows whose results are held as Python objects until they become an Arrow table."""

_MOST_WAITING = 65_536
"""Rows that may wait behind one slow call, for output is in order."""


def call_functions(
    batches: Iterable[pa.RecordBatch], *, spec: FunctionSpec, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """A task as Spark runs it: yield the joined rows of ``batches``, conformed to ``schema``, then the metrics."""
    tables = tables_of(batches, schema)
    if tables is None:
        return
    counters = FunctionCounters()
    with acquired(spec) as opened:
        yield from data(function_tables(tables, opened, counters), spec.rows.output)
    yield counts(counters.values(), spec.rows.output)


def function_tables(tables: Iterable[pa.Table], opened: OpenFunction, counters: FunctionCounters) -> Iterator[pa.Table]:
    """The joined rows of ``tables``; RunError if a call fails, takes too long, or returns what was not declared."""
    pieces = (table.slice(start, _PIECE) for table in tables for start in range(0, table.num_rows, _PIECE))
    function = opened.function
    joined_pieces = (
        _asynchronous(pieces, opened, function, counters)
        if isinstance(function, AsyncTableFunction | AsyncScalarFunction)
        else _synchronous(pieces, opened, function, counters)
    )
    for joined in joined_pieces:
        if joined.num_rows:
            counters.rowsOut += joined.num_rows
            yield joined


def _synchronous(
    pieces: Iterable[pa.Table],
    opened: OpenFunction,
    function: TableFunction | ScalarFunction,
    counters: FunctionCounters,
) -> Iterator[pa.Table]:
    policy = opened.spec.policy
    counters.inFlightMax = 1
    for piece in pieces:
        rows = argument_rows(piece, opened.spec.arguments)
        found: list[list[Any]] = []

        def where(rows: list[Arguments] = rows, found: list[list[Any]] = found) -> str:
            return call_text(policy, rows[len(found)])

        with opened.lock, Blame(where):
            for arguments in rows:
                counters.calls += 1
                value = function.eval(*arguments)
                found.append([value] if isinstance(function, ScalarFunction) else listed(value, where))
        yield _joined(piece, rows, found, opened)


def _asynchronous(
    pieces: Iterable[pa.Table],
    opened: OpenFunction,
    function: AsyncTableFunction | AsyncScalarFunction,
    counters: FunctionCounters,
) -> Iterator[pa.Table]:
    calls = AsyncCalls(function, opened.spec.policy, counters, opened.event_loop.steps)

    def steps() -> Iterator[Step[pa.Table]]:
        for piece in pieces:
            rows = argument_rows(piece, opened.spec.arguments)
            found: list[list[Any]] = []
            result = partial(_joined, piece, rows, found, opened)
            yield Step(result=result, work=calls.answer(rows, found), size=piece.num_rows)

    return flowing(steps(), calls.room, opened.event_loop, ordered=True, most=_MOST_WAITING)


def _joined(piece: pa.Table, rows: list[Arguments], found: list[list[Any]], opened: OpenFunction) -> pa.Table:
    returned = opened.returned.arrow(found, lambda place: call_text(opened.spec.policy, rows[place]))
    return opened.spec.rows.join(piece, np.arange(piece.num_rows), returned)
