"""The lookups of one task: Arrow batches in, Arrow tables out, and what was counted.

With an asynchronous source, batches are read on while earlier ones wait for answers, as long as there is room for more
calls; ordered output comes in the order of the input, unordered output as it is complete, rows without a call first.
"""

from __future__ import annotations

from asyncio import wrap_future
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from runtime.kernels.found_rows import KeyedRows
from runtime.lookup.api import AsyncLookupFunction, LookupFunction
from runtime.lookup.caches.full_cache import FullCache
from runtime.lookup.fetch_async import AsyncFetcher
from runtime.lookup.fetch_sync import fetch_sync
from runtime.lookup.join import AskedRows
from runtime.lookup.metrics import LookupCounters
from runtime.lookup.resolve import Resolution
from runtime.lookup.worker import OpenLookup
from runtime.state.identity import Mask
from runtime.worker.pipeline import Step, flowing

_MOST_WAITING = 8
"""Batches that may wait for answers at once; it bounds what ordered output holds back behind one slow key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A batch, or a part of it, with the rows of each of its keys; ``fresh`` says which no cache had answered."""

    asked: AskedRows
    found: KeyedRows
    fresh: Mask


def lookup_tables(tables: Iterable[pa.Table], lookup: OpenLookup, counters: LookupCounters) -> Iterator[pa.Table]:
    """The joined rows of ``tables``; RunError if the source fails, is too slow, or answers what does not fit."""
    rows = lookup.spec.rows
    for answered in looked_up((rows.ask(table) for table in tables if table.num_rows), lookup, counters):
        joined = rows.join(answered.asked.table, answered.asked.codes, answered.found)
        if joined.num_rows:
            yield joined


def looked_up(batches: Iterable[AskedRows], lookup: OpenLookup, counters: LookupCounters) -> Iterator[Answered]:
    """The answers for ``batches``, whose rows may come in other portions than they went in."""
    if lookup.full is not None:
        return _cached(batches, lookup.full, counters)
    if isinstance(lookup.source, AsyncLookupFunction):
        return _asynchronous(batches, lookup, lookup.source, counters)
    return _synchronous(batches, lookup, lookup.source, counters)


def _cached(batches: Iterable[AskedRows], cache: FullCache, counters: LookupCounters) -> Iterator[Answered]:
    for asked in batches:
        found = cache.probe(asked.keys)
        missed = len(asked.missed(found))
        counters.lookups += asked.asking
        counters.hitCount += asked.asking - missed
        counters.missCount += missed
        yield Answered(asked=asked, found=found, fresh=np.zeros(len(asked.keys), np.bool_))


def _synchronous(
    batches: Iterable[AskedRows], lookup: OpenLookup, source: LookupFunction, counters: LookupCounters
) -> Iterator[Answered]:
    for asked in batches:
        resolution = _resolution(asked, lookup, counters)
        _resolve(resolution, lookup, source, counters)
        yield _answered(asked, resolution)


def _resolution(asked: AskedRows, lookup: OpenLookup, counters: LookupCounters) -> Resolution:
    schema, policy = lookup.spec.rows.found, lookup.spec.policy
    return Resolution(asked.keys, asked.asking, schema, lookup.cache, lookup.flights, counters, policy=policy)


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
    batches: Iterable[AskedRows], lookup: OpenLookup, source: AsyncLookupFunction, counters: LookupCounters
) -> Iterator[Answered]:
    ordered = lookup.spec.policy.ordered
    fetcher = AsyncFetcher(source, lookup.spec.policy, lookup.clock, counters, lookup.event_loop.steps)
    steps = _steps(batches, lookup, fetcher, counters)
    return flowing(steps, fetcher.room, lookup.event_loop, ordered=ordered, most=_MOST_WAITING)


def _steps(
    batches: Iterable[AskedRows], lookup: OpenLookup, fetcher: AsyncFetcher, counters: LookupCounters
) -> Iterator[Step[Answered]]:
    for batch in batches:
        asked, resolution = batch, _resolution(batch, lookup, counters)
        if resolution.missing and not lookup.spec.policy.ordered:
            known = resolution.known()
            ready, asked = asked.split(known)
            yield Step(result=partial(Answered, asked=ready, found=known, fresh=resolution.fresh), work=None)
        yield Step(result=partial(_answered, asked, resolution), work=_resolve_async(resolution, fetcher))


def _answered(asked: AskedRows, resolution: Resolution) -> Answered:
    return Answered(asked=asked, found=resolution.result(), fresh=resolution.fresh)
