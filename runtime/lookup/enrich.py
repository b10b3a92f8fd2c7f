"""The body of a lookup in a Spark task, for ``mapInArrow``. A task without rows opens nothing and counts nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from hintplan.runtime.lookup.metrics import LookupCounters
from hintplan.runtime.lookup.pinned import task_pins
from hintplan.runtime.lookup.spec import LookupSpec
from hintplan.runtime.lookup.task import Pinning, lookup_tables
from hintplan.runtime.lookup.worker import acquired
from hintplan.runtime.worker.metered import counts, data, tables_of


def enrich(batches: Iterable[pa.RecordBatch], *, spec: LookupSpec, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the joined rows of ``batches``, which are conformed to ``schema``, then the metrics."""
    tables = tables_of(batches, schema)
    if tables is None:
        return
    counters = LookupCounters()
    with acquired(spec) as lookup:
        pinning = None if spec.pins is None else Pinning(pins=task_pins(spec.pins))
        yield from data(lookup_tables(tables, lookup, counters, pinning), spec.rows.output)
        lookup.report(counters)
    yield counts(counters.values(), spec.rows.output)
