"""Answers for the distinct keys of one batch: from the cache, from the source, or from a load in progress.

The steps are the same for synchronous and asynchronous sources:

- probe the cache once
- claim the missing keys, so that no other task loads them too
- fetch them and cache the final answers
- hand the answers to tasks that wait for them
- wait for the keys that other tasks fetch

Only final answers are cached, so a cached miss has used up all its attempts. This module knows neither input rows nor
Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

import numpy as np
import pyarrow as pa

from hintplan.runtime.kernels.found_rows import ABSENT, KeyedRows
from hintplan.runtime.lookup.api import Key, Row
from hintplan.runtime.lookup.caches.single_flight import Landing, SingleFlight
from hintplan.runtime.lookup.metrics import LookupCounters
from hintplan.runtime.lookup.request import Answers, FetchPolicy
from hintplan.runtime.lookup.rows import fitted_rows, keyed_rows
from hintplan.runtime.state.identity import Mask
from hintplan.runtime.state.layout import Int64s


class BatchCache(Protocol):
    """A partial cache as the engine uses it: many keys at once."""

    def probe(self, keys: Sequence[Key]) -> KeyedRows: ...

    def store(self, keys: Sequence[Key], rows: KeyedRows, written: Int64s) -> None:
        """Cache the ``rows`` of each key; ``written`` has their times, in ms of the clock by which entries expire."""
        ...


class Resolution:
    """One batch of distinct ``keys`` on its way to rows in ``schema``, by the rules of ``policy``.

    ``rows`` is the number of input rows that are looked up. Without a cache, every key goes to the source.
    """

    def __init__(
        self,
        keys: Sequence[Key],
        rows: int,
        schema: pa.Schema,
        cache: BatchCache | None,
        flights: SingleFlight,
        counters: LookupCounters,
        *,
        policy: FetchPolicy,
    ) -> None:
        self._schema = schema
        self._cache = cache
        self._flights = flights
        self._counters = counters
        self._policy = policy
        self._parts: list[tuple[Sequence[Key], KeyedRows]] = []
        self._keys = keys
        self.theirs: dict[Key, Landing] = {}
        self._answers: Mapping[Key, Sequence[Row]] = {}
        counters.lookups += rows
        if cache is None:
            self.missing = list(keys)
            absent = list(range(len(keys)))
        else:
            counters.hitCount += rows
            self.missing, absent = self._probe(cache, keys)
        self._places = dict(zip(self.missing, absent, strict=True))

    def _probe(self, cache: BatchCache, keys: Sequence[Key]) -> tuple[list[Key], list[int]]:
        probed = cache.probe(keys)
        absent = np.flatnonzero(probed.count == ABSENT).tolist()
        if len(absent) < len(keys):
            self._parts.append((keys, probed))
        return [keys[place] for place in absent], absent

    @contextmanager
    def claimed(self) -> Iterator[list[Key]]:
        """Claim the missing keys; yield the keys that this batch fetches, and keep in ``theirs`` the keys of others."""
        if self._cache is None:
            mine, self.missing = self.missing, []
            self._counters.loadCount += len(mine)
            yield mine
            return
        claim = self._flights.claim(self.missing)
        self.theirs = claim.theirs
        self._answers = {}
        try:
            # A load may have landed after the probe and before the claim.
            fetch, _ = self._probe(self._cache, claim.mine)
            self._counters.missCount += len(fetch)
            self._counters.hitCount -= len(fetch)
            self._counters.loadCount += len(fetch)
            self.missing = list(self.theirs)
            yield fetch
        finally:
            self._flights.land(claim, self._answers)

    def land(self, answers: Answers) -> None:
        """Take the final answers for claimed keys, and cache them; callers that wait get them when the claim ends."""
        if not answers.rows:
            return
        rows = self._add(answers.rows)
        if self._cache is not None:
            keys, at = list(answers.rows), np.fromiter(answers.at.values(), np.int64, len(answers.at))
            if not self._policy.caches_misses:
                hits = np.flatnonzero(rows.count)
                keys = [keys[place] for place in hits.tolist()]
                rows = KeyedRows(table=rows.table, start=rows.start[hits], count=rows.count[hits])
                at = at[hits]
            self._cache.store(keys, rows, at)
            self._answers = answers.rows

    def take(self, landed: Mapping[Key, Mapping[Key, Sequence[Row]]]) -> None:
        """Take the answers that others fetched, unless they have expired since; keys without one stay missing."""
        if not landed or self._cache is None:
            self.missing = []
            return
        uncached, _ = self._probe(self._cache, list(landed))
        # A cache that keeps no misses lacks them here, but a miss cannot have expired on the way.
        misses: dict[Key, Sequence[Row]] = {key: () for key in uncached if key in landed[key] and not landed[key][key]}
        if misses:
            self._add(misses)
        self.missing = [key for key in uncached if key not in misses]

    def _add(self, answers: Mapping[Key, Sequence[Row]]) -> KeyedRows:
        where = self._policy.where
        if self._policy.declared:
            answers = fitted_rows(answers, self._policy.declared, where=where)
        rows = keyed_rows(list(answers.values()), self._schema, where=where)
        self._parts.append((list(answers), rows))
        return rows

    @property
    def fresh(self) -> Mask:
        """The keys that the first probe did not find in the cache."""
        fresh = np.zeros(len(self._keys), np.bool_)
        fresh[list(self._places.values())] = True
        return fresh

    def known(self) -> KeyedRows:
        """Return the rows that the first probe found, in the order of the keys; the count of others is ``ABSENT``."""
        for keys, rows in self._parts:
            if keys is self._keys:
                return rows
        nothing = np.zeros(len(self._keys), np.int64)
        return KeyedRows(table=self._schema.empty_table(), start=nothing, count=nothing + ABSENT)

    def result(self) -> KeyedRows:
        """Return the rows of every key, in the order of the keys, once no key is missing."""
        if len(self._parts) == 1 and self._parts[0][0] is self._keys:
            return self._parts[0][1]
        start, count = np.zeros(len(self._keys), np.int64), np.zeros(len(self._keys), np.int64)
        offset = 0
        for keys, rows in self._parts:
            answered = np.flatnonzero(rows.count != ABSENT)
            if keys is self._keys:
                places = answered
            else:
                places = np.fromiter(
                    (self._places[keys[index]] for index in answered.tolist()), np.int64, len(answered)
                )
            start[places] = rows.start[answered] + offset
            count[places] = rows.count[answered]
            offset += rows.table.num_rows
        tables = [rows.table for _, rows in self._parts] or [self._schema.empty_table()]
        return KeyedRows(table=pa.concat_tables(tables), start=start, count=count)
