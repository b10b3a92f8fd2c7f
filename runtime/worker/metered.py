"""A task of ``mapInArrow`` that yields its counts as a last row.

The last batch of a task has no data and one row, with the task's counts in ``__metrics``. In rows of data this column
is NULL. A task without rows does nothing and counts nothing. :mod:`hintplan.runtime.engine.mapped` builds the
DataFrames of such tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

import pyarrow as pa

METRICS_COLUMN = "__metrics"
_MOST_ROWS = 1 << 16


def with_metrics(output: pa.Schema) -> pa.Schema:
    """Return the schema of the batches that a task with ``output`` yields."""
    return output.append(pa.field(METRICS_COLUMN, pa.list_(pa.int64())))


def metered(
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    output: pa.Schema,
    work: Callable[[Iterator[pa.Table]], Iterator[pa.Table]],
    values: Callable[[], Sequence[int]],
) -> Iterator[pa.RecordBatch]:
    """Yield the tables of ``work``, then the counts that ``values`` returns; the body of a Spark task.

    ``work`` gets the batches that have rows, conformed to ``schema``. A task without rows does nothing.
    """
    tables = (_conform(pa.Table.from_batches([batch]), schema) for batch in batches if batch.num_rows)
    first = next(tables, None)
    if first is not None:
        yield from data(work(chain([first], tables)), output)
        yield counts(values(), output)


def data(tables: Iterable[pa.Table], output: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield rows of data in the form that a task with ``output`` yields."""
    field = with_metrics(output).field(METRICS_COLUMN)
    for table in tables:
        yield from table.append_column(field, pa.nulls(table.num_rows, field.type)).to_batches(_MOST_ROWS)


def counts(values: Sequence[int | None], output: pa.Schema) -> pa.RecordBatch:
    """Return the row with the counts of a task with ``output``."""
    schema = with_metrics(output)
    nothing = [pa.nulls(1, field.type) for field in output]
    return pa.RecordBatch.from_arrays([*nothing, pa.array([list(values)], pa.list_(pa.int64()))], schema=schema)


def _conform(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the same data under ``schema``.

    Spark labels timestamps with the session's time zone, and fields as not null.
    """
    return table if table.schema.equals(schema) else table.cast(schema)
