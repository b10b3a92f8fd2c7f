"""A lookup as a task of Spark runs it: in ``mapInArrow``, with its counts as a row of their own.

The last batch of a task has no data and one row, whose ``__metrics`` are the task's counts; in rows of data it is null.
A task without rows opens nothing and counts nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

import pyarrow as pa

from runtime.lookup.metrics import LookupCounters
from runtime.lookup.spec import LookupSpec
from runtime.lookup.task import lookup_tables
from runtime.lookup.worker import acquired

__all__ = ["METRICS_COLUMN", "enrich", "with_metrics"]

METRICS_COLUMN = "__metrics"
_MOST_ROWS = 1 << 16


def with_metrics(output: pa.Schema) -> pa.Schema:
    """The schema of what :func:`enrich` yields for a lookup with ``output``."""
    return output.append(pa.field(METRICS_COLUMN, pa.list_(pa.int64())))


def enrich(batches: Iterable[pa.RecordBatch], *, spec: LookupSpec, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the joined rows of ``batches``, which are conformed to ``schema``, then the metrics."""
    tables = (_conform(pa.Table.from_batches([batch]), schema) for batch in batches if batch.num_rows)
    first = next(tables, None)
    if first is None:
        return
    output = with_metrics(spec.rows.output)
    counters = LookupCounters()
    with acquired(spec) as lookup:
        for joined in lookup_tables(chain([first], tables), lookup, counters):
            nothing = pa.nulls(joined.num_rows, output.field(METRICS_COLUMN).type)
            yield from joined.append_column(output.field(METRICS_COLUMN), nothing).to_batches(_MOST_ROWS)
        lookup.report(counters)
    data = [pa.nulls(1, field.type) for field in spec.rows.output]
    yield pa.RecordBatch.from_arrays([*data, pa.array([counters.values()], pa.list_(pa.int64()))], schema=output)


def _conform(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The same data under ``schema``: Spark labels timestamps with the session's zone and fields as not null."""
    return table if table.schema.equals(schema) else table.cast(schema)
