"""The function calls of one task: Arrow tables in; Arrow tables, in the order of the input, and counters out.

With an asynchronous function, the task continues to read batches while calls for earlier ones are in flight. The rows
that a function returns for one input row stay together, in their order. A LEFT join pads input rows without any.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from hintplan.runtime.functions.api import (
    AggregateFunction,
    AsyncScalarFunction,
    AsyncTableFunction,
    ScalarFunction,
    TableFunction,
)
from hintplan.runtime.functions.call import Arguments, AsyncCalls, Blame, call_text, row_list
from hintplan.runtime.functions.metrics import FunctionCounters
from hintplan.runtime.functions.rows import argument_rows
from hintplan.runtime.functions.spec import FunctionSpec
from hintplan.runtime.functions.worker import OpenFunction, shared_function
from hintplan.runtime.requests.pins import Pinned, TaskPins, rows_id, task_pins
from hintplan.runtime.storage.pins import Question, question_of
from hintplan.runtime.worker.metered import metered
from hintplan.runtime.worker.pipeline import Step, flowing

_PIECE = 4096
"""The rows whose results are Python objects at a time, before they become an Arrow table."""

_MOST_WAITING = 65_536
"""The rows that may wait behind one slow call, because output is in order."""


def call_functions(
    batches: Iterable[pa.RecordBatch], *, spec: FunctionSpec, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield the joined rows of ``batches``, conformed to ``schema``, then the metrics; the body of a Spark task."""
    counters = FunctionCounters()

    def joined(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        pins = None if spec.pins is None else task_pins(spec.pins)
        with shared_function(spec) as opened:
            yield from function_tables(tables, opened, counters, pins)

    return metered(batches, schema, spec.rows.output, joined, counters.values)


def function_tables(
    tables: Iterable[pa.Table],
    opened: OpenFunction[FunctionSpec],
    counters: FunctionCounters,
    pins: TaskPins | None = None,
) -> Iterator[pa.Table]:
    """Yield the joined rows of ``tables``; RunError if a call fails, takes too long, or returns undeclared values."""
    pieces = (table.slice(start, _PIECE) for table in tables for start in range(0, table.num_rows, _PIECE))
    rows = (_begun(piece, opened, pins) for piece in pieces)
    function = opened.function
    assert not isinstance(function, AggregateFunction), "it is called for groups"
    joined_pieces = (
        _asynchronous(rows, opened, function, counters)
        if isinstance(function, AsyncTableFunction | AsyncScalarFunction)
        else _synchronous(rows, opened, function, counters)
    )
    for joined in joined_pieces:
        if joined.num_rows:
            counters.rowsOut += joined.num_rows
            yield joined


@dataclass(frozen=True, slots=True, kw_only=True)
class _Piece:
    """Rows of a task, with the ``arguments`` of the rows that still need a call.

    ``before`` has the pinned results of the other rows.
    """

    table: pa.Table
    arguments: list[Arguments]
    before: Pinned | None = None
    pins: TaskPins | None = None

    def joined(self, results: list[list[Any]], opened: OpenFunction[FunctionSpec]) -> pa.Table:
        """Return all rows, joined with pinned results and with the ``results`` of the calls."""
        returned = opened.returned.arrow(results, lambda place: call_text(opened.spec.policy, self.arguments[place]))
        if self.before is not None and self.pins is not None:
            returned = self.pins.completed(self.before, returned).answers
        return opened.spec.rows.join(self.table, np.arange(self.table.num_rows), returned)


def _begun(table: pa.Table, opened: OpenFunction[FunctionSpec], pins: TaskPins | None) -> _Piece:
    argument_columns = opened.spec.arguments
    if pins is None:
        return _Piece(table=table, arguments=argument_rows(table, argument_columns))
    before = pins.known(rows_id(table), _questions(table), opened.returned.table_schema)
    left = table.filter(pa.array(before.left))
    return _Piece(table=table, arguments=argument_rows(left, argument_columns), before=before, pins=pins)


def _questions(table: pa.Table) -> list[Question]:
    """Return a key for each row: its values, and its number among equal rows."""
    seen: Counter[str] = Counter()
    questions = []
    for values in zip(*(column.to_pylist() for column in table.columns), strict=True):
        text = repr(values)
        questions.append(question_of((text, seen[text])))
        seen[text] += 1
    return questions


def _synchronous(
    pieces: Iterable[_Piece],
    opened: OpenFunction[FunctionSpec],
    function: TableFunction | ScalarFunction,
    counters: FunctionCounters,
) -> Iterator[pa.Table]:
    policy = opened.spec.policy
    counters.inFlightMax = 1
    for piece in pieces:
        rows = piece.arguments
        results: list[list[Any]] = []

        def where(rows: list[Arguments] = rows, results: list[list[Any]] = results) -> str:
            return call_text(policy, rows[len(results)])

        with opened.lock, Blame(where):
            for arguments in rows:
                counters.calls += 1
                value = function.eval(*arguments)
                results.append([value] if isinstance(function, ScalarFunction) else row_list(value, where))
        yield piece.joined(results, opened)


def _asynchronous(
    pieces: Iterable[_Piece],
    opened: OpenFunction[FunctionSpec],
    function: AsyncTableFunction | AsyncScalarFunction,
    counters: FunctionCounters,
) -> Iterator[pa.Table]:
    calls = AsyncCalls(function, opened.spec.policy, counters, opened.event_loop.steps)

    def steps() -> Iterator[Step[pa.Table]]:
        for piece in pieces:
            results: list[list[Any]] = []
            work = calls.call_all(piece.arguments, results)
            yield Step(result=partial(piece.joined, results, opened), work=work, size=piece.table.num_rows)

    return flowing(steps(), calls.room, opened.event_loop, ordered=True, most=_MOST_WAITING)
