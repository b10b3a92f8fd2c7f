"""The lookups of one task: Arrow batches in, Arrow tables and counters out.

With an asynchronous source, the task reads further batches while earlier ones wait for answers, as long as the source
has room for calls. Ordered output follows the order of the input. Unordered output follows the order of completion;
rows without a call come first.

Answers that must be the same when the batch runs again are pinned before their rows leave the task. Each pin is a file,
so one pin holds the answers of many rows. Output is then in order, because later operators may depend on the order.
"""

from __future__ import annotations

from asyncio import wrap_future
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from hintplan.runtime.kernels.found_rows import KeyedRows
from hintplan.runtime.lookup.api import AsyncLookupFunction, LookupFunction
from hintplan.runtime.lookup.caches.full_cache import FullCache
from hintplan.runtime.lookup.fetch import AsyncFetcher, fetch_sync
from hintplan.runtime.lookup.join import KeyBatch
from hintplan.runtime.lookup.metrics import LookupCounters
from hintplan.runtime.lookup.resolution import Resolution
from hintplan.runtime.lookup.spec import LookupSpec
from hintplan.runtime.lookup.worker import OpenLookup, shared_lookup
from hintplan.runtime.requests.pins import Pinned, TaskPins, rows_id, task_pins
from hintplan.runtime.state.identity import Mask
from hintplan.runtime.storage.pins import question_of
from hintplan.runtime.worker.metered import metered
from hintplan.runtime.worker.pipeline import Step, flowing

_MOST_WAITING = 8
"""The most batches that wait for answers at once; it bounds the ordered output that one slow key holds back."""

_PINNED_ROWS = 1 << 16
"""The approximate number of rows that share one pin and wait for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A batch, or a part of it, with the rows of each of its keys; ``fresh`` marks the keys that no cache had answered.

    ``pinned`` is True if answers may be older than this task.
    """

    batch: KeyBatch
    rows: KeyedRows
    fresh: Mask
    pinned: bool = False


def enrich(batches: Iterable[pa.RecordBatch], *, spec: LookupSpec, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the joined rows of ``batches``, which are conformed to ``schema``, then the metrics; a Spark task."""
    counters = LookupCounters()

    def joined(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        with shared_lookup(spec) as lookup:
            pins = None if spec.pins is None else task_pins(spec.pins)
            yield from lookup_tables(tables, lookup, counters, pins)
            lookup.report(counters)

    return metered(batches, schema, spec.rows.output, joined, counters.values)


def lookup_tables(
    tables: Iterable[pa.Table], lookup: OpenLookup, counters: LookupCounters, pins: TaskPins | None = None
) -> Iterator[pa.Table]:
    """Yield the joined rows of ``tables``; RunError if the source fails, is too slow, or returns unsuitable rows."""
    rows = lookup.spec.rows
    filled = (table for table in tables if table.num_rows)
    portions = filled if pins is None else _portions(filled)
    for answered in looked_up((rows.key_batch(table) for table in portions), lookup, counters, pins):
        joined = rows.join(answered.batch.table, answered.batch.codes, answered.rows)
        if joined.num_rows:
            yield joined


def _portions(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    pending: list[pa.Table] = []
    for table in tables:
        pending.append(table)
        if sum(part.num_rows for part in pending) >= _PINNED_ROWS:
            yield pa.concat_tables(pending)
            pending = []
    if pending:
        yield pa.concat_tables(pending)


def looked_up(
    batches: Iterable[KeyBatch], lookup: OpenLookup, counters: LookupCounters, pins: TaskPins | None = None
) -> Iterator[Answered]:
    """Yield the answers for ``batches``.

    Pinned answers come in the order and division of the input; other answers may be divided otherwise.
    """
    known = (_known(batch, lookup, pins, counters) for batch in batches)
    if lookup.full is not None:
        return _cached(known, lookup.full, counters)
    if isinstance(lookup.source, AsyncLookupFunction):
        return _asynchronous(known, lookup, lookup.source, counters, ordered=pins is not None)
    return _synchronous(known, lookup, lookup.source, counters)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """A batch whose keys ``left`` are still to be fetched; ``before`` has the pinned answers."""

    whole: KeyBatch
    left: KeyBatch
    before: Pinned | None = None
    pins: TaskPins | None = None
    marked: bool = False

    def answered(self, rows: KeyedRows, fresh: Mask) -> Answered:
        """Return all answers, given the answers ``rows`` for ``left``; pin them first if the lookup pins."""
        if self.pins is None or self.before is None:
            return Answered(batch=self.whole, rows=rows, fresh=fresh)
        completed = self.pins.completed(self.before, rows, fresh & self.marked)
        pinned = not completed.own or len(self.left.keys) < len(self.whole.keys)
        return Answered(batch=self.whole, rows=completed.answers, fresh=completed.marks, pinned=pinned)


def _known(batch: KeyBatch, lookup: OpenLookup, pins: TaskPins | None, counters: LookupCounters) -> _Known:
    if pins is None or not batch.keys:
        return _Known(whole=batch, left=batch)
    questions = [question_of(key) for key in batch.keys]
    before = pins.known(rows_id(batch.table), questions, lookup.spec.rows.fetched)
    left = batch.only(before.left)
    counters.lookups += batch.lookups - left.lookups
    # Only a deferred retry needs to know which misses are new.
    marked = not lookup.spec.policy.caches_misses
    return _Known(whole=batch, left=left, before=before, pins=pins, marked=marked)


def _cached(batches: Iterable[_Known], cache: FullCache, counters: LookupCounters) -> Iterator[Answered]:
    for known in batches:
        batch = known.left
        rows = cache.probe(batch.keys)
        missed = len(batch.missed(rows))
        counters.lookups += batch.lookups
        counters.hitCount += batch.lookups - missed
        counters.missCount += missed
        yield known.answered(rows, np.zeros(len(batch.keys), np.bool_))


def _synchronous(
    batches: Iterable[_Known], lookup: OpenLookup, source: LookupFunction, counters: LookupCounters
) -> Iterator[Answered]:
    for known in batches:
        resolution = _resolution(known.left, lookup, counters)
        _resolve(resolution, lookup, source, counters)
        yield _answered(known, resolution)


def _resolution(batch: KeyBatch, lookup: OpenLookup, counters: LookupCounters) -> Resolution:
    schema, policy = lookup.spec.rows.fetched, lookup.spec.policy
    return Resolution(batch.keys, batch.lookups, schema, lookup.cache, lookup.flights, counters, policy=policy)


def _resolve(resolution: Resolution, lookup: OpenLookup, source: LookupFunction, counters: LookupCounters) -> None:
    while resolution.missing:
        with resolution.claimed() as mine, lookup.lock:
            resolution.land(fetch_sync(source, mine, lookup.spec.policy, lookup.clock, counters))
        resolution.take({key: flight.result() for key, flight in resolution.theirs.items()})


async def _resolve_async(resolution: Resolution, fetcher: AsyncFetcher) -> None:
    while resolution.missing:
        with resolution.claimed() as mine:
            resolution.land(await fetcher.fetch(mine))
        resolution.take({key: await wrap_future(flight) for key, flight in resolution.theirs.items()})


def _asynchronous(
    batches: Iterable[_Known],
    lookup: OpenLookup,
    source: AsyncLookupFunction,
    counters: LookupCounters,
    *,
    ordered: bool,
) -> Iterator[Answered]:
    ordered |= lookup.spec.policy.ordered
    fetcher = AsyncFetcher(source, lookup.spec.policy, lookup.clock, counters, lookup.event_loop.steps)
    steps = _steps(batches, lookup, fetcher, counters, ordered=ordered)
    return flowing(steps, fetcher.room, lookup.event_loop, ordered=ordered, most=_MOST_WAITING)


def _steps(
    batches: Iterable[_Known], lookup: OpenLookup, fetcher: AsyncFetcher, counters: LookupCounters, *, ordered: bool
) -> Iterator[Step[Answered]]:
    for batch in batches:
        known, resolution = batch, _resolution(batch.left, lookup, counters)
        if resolution.missing and not ordered:
            cached = resolution.known()
            ready, waiting = known.whole.split(cached)
            known = _Known(whole=waiting, left=waiting)
            yield Step(result=partial(Answered, batch=ready, rows=cached, fresh=resolution.fresh), work=None)
        yield Step(result=partial(_answered, known, resolution), work=_resolve_async(resolution, fetcher))


def _answered(known: _Known, resolution: Resolution) -> Answered:
    return known.answered(resolution.result(), resolution.fresh)
