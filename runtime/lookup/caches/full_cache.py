"""The full cache: all rows of a table by key, loaded by one scan before the first row, and again when a trigger fires.

A load builds the new contents next to the old ones and swaps them in at once. A failed load is counted and leaves the
old contents in the cache. Loads never overlap.

A key that is not in the cache has no rows: the engine never queries the source for a single key. The cache drops rows
with a null key, and keeps all rows that share a key. This module knows no Spark and no thread; callers pass the clock.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.plans.errors import RunError
from hintplan.runtime.kernels.found_rows import KeyedRows
from hintplan.runtime.lookup.api import NO_WATERMARK, Key, ReloadContext, Row
from hintplan.runtime.lookup.caches.key_index import key_index
from hintplan.runtime.lookup.caches.schedule import Scheduler
from hintplan.runtime.lookup.metrics import LookupCounters
from hintplan.runtime.lookup.request import FetchPolicy, LoadRequest
from hintplan.runtime.lookup.rows import distinct_keys, keyed_rows
from hintplan.runtime.requests.request import answered
from hintplan.runtime.state.layout import Int64s
from hintplan.runtime.worker.clock import Clock

_log = logging.getLogger(__name__)

Scanned: TypeAlias = pa.Table | pa.RecordBatch | Row
Load = Callable[[], Iterable[Scanned]]
_ROWS_AT_ONCE = 65536


@dataclass(frozen=True, slots=True, kw_only=True)
class _Contents:
    find: Callable[[Sequence[Key]], Int64s]
    size: int
    rows: KeyedRows


class FullCache:
    """The rows of ``load()`` in ``schema``, indexed by its columns ``keys``.

    An exception in ``retry_on`` fails only the load; any other fails the query. The first load is repeated by the rules
    of ``policy`` after an exception in ``retry_on``.
    """

    def __init__(
        self,
        load: Load,
        schema: pa.Schema,
        keys: Sequence[str],
        clock: Clock,
        *,
        retry_on: tuple[type[Exception], ...],
        policy: FetchPolicy,
    ) -> None:
        self._load = load
        self._schema = schema
        self._keys = tuple(keys)
        self._clock = clock
        self._retry_on = retry_on
        self._policy = policy
        self._contents: _Contents | None = None
        self._loading = threading.Lock()
        self._counting = threading.Lock()
        self._loads = self._failures = self._latest = 0

    def open(self) -> None:
        """Load for the first time; raise RunError with the cause if the load keeps failing."""
        request = LoadRequest(policy=self._policy)
        uncounted = LookupCounters()  # the cache counts its loads itself
        answered(request, lambda _: self._reload(), retry_on=self._retry_on, clock=self._clock, counters=uncounted)

    def reload(self) -> None:
        """Load again; an exception means that the load failed and the old contents stay in the cache."""
        try:
            self._reload()
        except BaseException as error:
            _log.warning("%s: reloading the full cache failed, its old contents stay: %r", self._policy.where, error)
            raise

    def probe(self, keys: Sequence[Key]) -> KeyedRows:
        """Return the rows of each of ``keys``; a key that is not in the table has none."""
        contents = self._contents
        if contents is None:
            raise RunError(f"{self._policy.where}: the full cache was used before it was loaded")
        places = contents.find(keys)
        # The last entry of both arrays belongs to ABSENT_PLACE, the place of all keys that are not in the table.
        return KeyedRows(
            table=contents.rows.table, start=contents.rows.start[places], count=contents.rows.count[places]
        )

    def report(self, counters: LookupCounters) -> None:
        """Add the loads since the last report to ``counters``, and set the gauges of the cache's size."""
        with self._counting:
            counters.loadCount += self._loads
            counters.failures += self._failures
            counters.latestLoadTime = self._latest
            self._loads = self._failures = 0
        contents = self._contents
        if contents is not None:
            counters.numCachedRecords = contents.size
            counters.numCachedBytes = int(contents.rows.table.nbytes)

    def _reload(self) -> None:
        with self._loading:
            started = self._clock.elapsed()
            failed = True
            try:
                self._contents = _contents(self._load(), self._schema, self._keys, self._policy.where)
                failed = False
            finally:
                with self._counting:
                    self._loads += 1
                    self._failures += failed
                    self._latest = self._clock.elapsed() - started


def _contents(batches: Iterable[Scanned], schema: pa.Schema, keys: tuple[str, ...], where: str) -> _Contents:
    parts = list(_tables(batches, schema, where))
    table = pa.concat_tables([schema.empty_table(), *parts]).combine_chunks()
    for name in keys:
        if table[name].null_count:
            table = table.filter(pc.is_valid(table[name]))
    table = table.combine_chunks()
    codes, distinct = distinct_keys([table[name].combine_chunks() for name in keys])
    count = np.bincount(codes, minlength=len(distinct)).astype(np.int64)
    if (codes[1:] < codes[:-1]).any():
        table = table.take(np.argsort(codes, kind="stable")).combine_chunks()
    start = np.cumsum(count) - count
    nothing = np.zeros(1, np.int64)
    rows = KeyedRows(table=table, start=np.append(start, nothing), count=np.append(count, nothing))
    return _Contents(find=key_index(distinct), size=len(distinct), rows=rows)


def _tables(batches: Iterable[Scanned] | None, schema: pa.Schema, where: str) -> Iterator[pa.Table]:
    """Yield the results of a scan as tables, with its tuples gathered into larger ones; RunError for anything else."""
    if not isinstance(batches, Iterable):
        shown = "None" if batches is None else f"a {type(batches).__name__}"
        raise RunError(f"{where}: the scan returned {shown}, expected rows", hint="yield tuples, or tables of Arrow")
    rows: list[Row] = []
    for item in batches:
        if isinstance(item, pa.Table | pa.RecordBatch):
            yield _conformed(item, schema, where)
        elif isinstance(item, tuple | list):
            rows.append(tuple(item))
        else:
            shown = "None" if item is None else f"a {type(item).__name__}"
            hint = "yield tuples, or tables of Arrow"
            raise RunError(f"{where}: the scan yielded {shown}, expected a row", hint=hint)
        if len(rows) >= _ROWS_AT_ONCE:
            yield keyed_rows([rows], schema, where=where).table
            rows = []
    if rows:
        yield keyed_rows([rows], schema, where=where).table


def _conformed(batch: pa.Table | pa.RecordBatch, schema: pa.Schema, where: str) -> pa.Table:
    table = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
    missing = [name for name in schema.names if name not in table.column_names]
    if missing:
        raise RunError(f"{where}: the scan returned no column {', '.join(missing)}")
    table = table.select(schema.names)
    if table.schema.equals(schema):
        return table
    try:
        return table.cast(schema)
    except pa.ArrowException as error:
        raise RunError(f"{where}: the scan returned columns that do not fit the table: {error}") from error


class Reloads(ReloadContext):
    """The clock and the reloads that the trigger of ``cache`` uses; loads run on a single thread of ``scheduler``."""

    def __init__(self, cache: FullCache, clock: Clock, scheduler: Scheduler) -> None:
        self._cache = cache
        self._clock = clock
        self._scheduler = scheduler

    def current_processing_time(self) -> int:
        return self._clock.now()

    def elapsed(self) -> int:
        return self._clock.elapsed()

    def current_watermark(self) -> int:
        return NO_WATERMARK

    def trigger_reload(self) -> Future[None]:
        return self._scheduler.run(self._cache.reload)

    def call_at(self, time: int, action: Callable[[], None]) -> Callable[[], None]:
        return self._scheduler.call_at(time, action)

    def call_after(self, milliseconds: int, action: Callable[[], None]) -> Callable[[], None]:
        return self._scheduler.call_after(milliseconds, action)
