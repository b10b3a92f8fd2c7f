"""The lookups of one task: Arrow batches in, Arrow tables out, and what was counted.

With an asynchronous source, batches are read on while earlier ones wait for answers, as long as there is room for more
calls; ordered output comes in the order of the input, unordered output as it is complete, rows without a call first.

Answers that must be the same whenever the batch runs are pinned before rows with them go on: those of many rows at
once, for each pin is a file. Output is then in order, for what follows may depend on it.
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
from hintplan.runtime.lookup.fetch_async import AsyncFetcher
from hintplan.runtime.lookup.fetch_sync import fetch_sync
from hintplan.runtime.lookup.join import AskedRows
from hintplan.runtime.lookup.metrics import LookupCounters
from hintplan.runtime.lookup.pinned import Pinned, TaskPins, merged, rows_id
from hintplan.runtime.lookup.resolve import Resolution
from hintplan.runtime.lookup.worker import OpenLookup
from hintplan.runtime.state.identity import Mask
from hintplan.runtime.storage.pins import question_of
from hintplan.runtime.worker.pipeline import Step, flowing

_MOST_WAITING = 8
"""Batches that may wait for answers at once; it bounds what ordered output holds back behind one slow key."""

_PINNED_ROWS = 1 << 16
"""About so many rows go into one pin, and wait for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A batch, or a part of it, with the rows of each of its keys; ``fresh`` says which no cache had answered.

    ``pinned`` says that answers may be older than this task.
    """

    asked: AskedRows
    found: KeyedRows
    fresh: Mask
    pinned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinning:
    """The pins that answers go into; ``label`` tells apart what is asked at several times in one batch."""

    pins: TaskPins
    label: str = ""


def lookup_tables(
    tables: Iterable[pa.Table], lookup: OpenLookup, counters: LookupCounters, pinning: Pinning | None = None
) -> Iterator[pa.Table]:
    """The joined rows of ``tables``; RunError if the source fails, is too slow, or answers what does not fit."""
    rows = lookup.spec.rows
    filled = (table for table in tables if table.num_rows)
    portions = filled if pinning is None else _portions(filled)
    for answered in looked_up((rows.ask(table) for table in portions), lookup, counters, pinning):
        joined = rows.join(answered.asked.table, answered.asked.codes, answered.found)
        if joined.num_rows:
            yield joined


def _portions(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    pending: list[pa.Table] = []
    for table in tables:
        pending.append(table)
        if sum(each.num_rows for each in pending) >= _PINNED_ROWS:
            yield pa.concat_tables(pending)
            pending = []
    if pending:
        yield pa.concat_tables(pending)


def looked_up(
    batches: Iterable[AskedRows], lookup: OpenLookup, counters: LookupCounters, pinning: Pinning | None = None
) -> Iterator[Answered]:
    """The answers for ``batches``, whose rows may come in other portions than they went in, unless they are pinned."""
    known = (_known(asked, lookup, pinning, counters) for asked in batches)
    if lookup.full is not None:
        return _cached(known, lookup.full, counters)
    if isinstance(lookup.source, AsyncLookupFunction):
        return _asynchronous(known, lookup, lookup.source, counters, ordered=pinning is not None)
    return _synchronous(known, lookup, lookup.source, counters)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """A batch of which ``left`` is still to be asked; ``before`` is what is pinned of it."""

    whole: AskedRows
    left: AskedRows
    before: Pinned | None = None
    pinning: Pinning | None = None
    marked: bool = False

    def answered(self, found: KeyedRows, fresh: Mask) -> Answered:
        """The answers to all, now that those to ``left`` are ``found``, pinned where that is wanted."""
        if self.pinning is None or self.before is None:
            return Answered(asked=self.whole, found=found, fresh=fresh)
        before, marks = self.before, self.before.marks.copy()
        if before.whole:
            return Answered(asked=self.whole, found=before.found, fresh=marks, pinned=True)
        marks[before.left] = fresh & self.marked
        together = merged(before.found, before.left, found)
        settled = self.pinning.pins.settled(before, together, marks)
        old = settled.found is not together or len(self.left.keys) < len(self.whole.keys)
        return Answered(asked=self.whole, found=settled.found, fresh=settled.marks, pinned=old)


def _known(asked: AskedRows, lookup: OpenLookup, pinning: Pinning | None, counters: LookupCounters) -> _Known:
    if pinning is None or not asked.keys:
        return _Known(whole=asked, left=asked)
    questions = [question_of(key) for key in asked.keys]
    before = pinning.pins.known(pinning.label, rows_id(asked.table), questions, lookup.spec.rows.found)
    left = asked.only(before.left)
    counters.lookups += asked.asking - left.asking
    # Only who defers misses must know which of them are new.
    marked = not lookup.spec.policy.caches_misses
    return _Known(whole=asked, left=left, before=before, pinning=pinning, marked=marked)


def _cached(batches: Iterable[_Known], cache: FullCache, counters: LookupCounters) -> Iterator[Answered]:
    for known in batches:
        asked = known.left
        found = cache.probe(asked.keys)
        missed = len(asked.missed(found))
        counters.lookups += asked.asking
        counters.hitCount += asked.asking - missed
        counters.missCount += missed
        yield known.answered(found, np.zeros(len(asked.keys), np.bool_))


def _synchronous(
    batches: Iterable[_Known], lookup: OpenLookup, source: LookupFunction, counters: LookupCounters
) -> Iterator[Answered]:
    for known in batches:
        resolution = _resolution(known.left, lookup, counters)
        _resolve(resolution, lookup, source, counters)
        yield _answered(known, resolution)


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
            there = resolution.known()
            ready, rest = known.whole.split(there)
            known = _Known(whole=rest, left=rest)
            yield Step(result=partial(Answered, asked=ready, found=there, fresh=resolution.fresh), work=None)
        yield Step(result=partial(_answered, known, resolution), work=_resolve_async(resolution, fetcher))


def _answered(known: _Known, resolution: Resolution) -> Answered:
    return known.answered(resolution.result(), resolution.fresh)
