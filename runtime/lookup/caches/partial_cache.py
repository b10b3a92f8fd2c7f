"""The default partial cache: recently looked up keys, bounded by time and by number of keys.

A dictionary maps each key to a slot. Slots are numpy arrays: the place of the rows, the time of the write, the time of
the last access. The rows lie in Arrow tables, so a probe of many keys runs no Python code per key.

The cache never returns expired entries. ``max_rows`` counts keys, as in Flink; the least recently used keys are evicted
first. The cache is thread-safe. Callers pass the clock; this module knows no source.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from itertools import repeat

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hintplan.runtime.kernels.found_rows import ABSENT, KeyedRows, ranges
from hintplan.runtime.lookup.api import CacheMetricGroup, Key, LookupCache, Row
from hintplan.runtime.lookup.rows import keyed_rows, python_rows
from hintplan.runtime.state.layout import Int64s
from hintplan.runtime.worker.clock import Clock

_SMALLEST = 64
_SLACK = 64
"""A full cache evicts a 64th of its keys at once, because the search for the least recently used ones scans all keys.
"""
_SAMPLE = 16
_PURGES = 4
"""Expired entries are removed this many times within the shortest expiry time, so that they do not fill the memory."""

Mask = npt.NDArray[np.bool_]


class DefaultLookupCache(LookupCache):
    """A cache of rows in ``schema``. Times are in ms; None means no expiry, or no bound on the number of keys."""

    def __init__(
        self,
        schema: pa.Schema,
        clock: Clock,
        *,
        expire_after_access: int | None = None,
        expire_after_write: int | None = None,
        max_rows: int | None = None,
        cache_missing_key: bool = True,
    ) -> None:
        self._schema = schema
        self._clock = clock
        self._after_access = expire_after_access
        self._after_write = expire_after_write
        self._max = max_rows
        self._keep_missing = cache_missing_key
        self._lock = threading.RLock()
        self._sequence = 0
        self._purged = clock.elapsed()
        self._clear()

    def _clear(self) -> None:
        self._index: dict[Key, int] = {}
        self._keys: list[Key | None] = [None] * _SMALLEST
        self._free = list(range(_SMALLEST - 1, -1, -1))
        self._start, self._count, self._written, self._accessed, self._used = np.zeros((5, _SMALLEST), np.int64)
        self._tables = [self._schema.empty_table()]
        self._total = self._live = 0
        self._key_bytes = 0

    # --- as the engine uses it ----------------------------------------------------------------------------------------

    def probe(self, keys: Sequence[Key]) -> KeyedRows:
        """Return the cached rows of each of the distinct ``keys``.

        The count of a missing or expired key is ``ABSENT``.
        """
        with self._lock:
            now = self._clock.elapsed()
            slots = np.fromiter(map(self._index.get, keys, repeat(-1)), np.int64, len(keys))
            places = np.flatnonzero(slots >= 0)
            places = places[self._alive(slots[places], now)]
            hit_slots = slots[places]
            self._accessed[hit_slots] = now
            self._used[hit_slots] = self._ticks(len(hit_slots))
            start, count = np.zeros(len(keys), np.int64), np.full(len(keys), ABSENT, np.int64)
            start[places], count[places] = self._start[hit_slots], self._count[hit_slots]
            # Tables are immutable, so the result stays valid when the cache changes afterwards.
            return KeyedRows(table=pa.concat_tables(self._tables), start=start, count=count)

    def store(self, keys: Sequence[Key], rows: KeyedRows, written: Int64s) -> None:
        """Cache ``rows`` under the distinct ``keys``, with one count and one time of ``written`` per key."""
        kept = np.arange(len(keys)) if self._keep_missing else np.flatnonzero(rows.count > 0)
        with self._lock:
            now = self._clock.elapsed()
            self._purge(now)
            if not self._keep_missing:
                for place in np.flatnonzero(rows.count == 0).tolist():
                    self._drop([keys[place]])
            if self._max is not None and len(kept) > self._max:
                kept = kept[len(kept) - self._max :]
            if not len(kept):
                return
            kept_keys = [keys[place] for place in kept.tolist()]
            self._drop(kept_keys)
            self._evict(len(kept_keys))
            while len(self._free) < len(kept_keys):
                self._grow()
            slots = np.array([self._free.pop() for _ in kept_keys], np.int64)
            for key, slot in zip(kept_keys, slots.tolist(), strict=True):
                self._index[key] = slot
                self._keys[slot] = key
            count = rows.count[kept]
            self._start[slots] = np.cumsum(count) - count + self._total
            self._count[slots] = count
            self._written[slots] = self._accessed[slots] = written[kept]
            self._used[slots] = self._ticks(len(slots))
            self._append(rows.table.take(ranges(rows.start[kept], count)))
            sample = kept_keys[:_SAMPLE]
            self._key_bytes += len(kept_keys) * sum(map(_size_of, sample)) // len(sample)

    # --- as LookupCache -----------------------------------------------------------------------------------------------

    def open(self, metrics: CacheMetricGroup) -> None:
        metrics.gauge("numCachedRecords", self.size)
        metrics.gauge("numCachedBytes", self.size_in_bytes)

    def get_if_present(self, key: Key) -> Sequence[Row] | None:
        return _rows(self.probe([key]))

    def put(self, key: Key, rows: Sequence[Row]) -> Sequence[Row] | None:
        with self._lock:
            before = _rows(self.probe([key]))
            now = np.array([self._clock.elapsed()])
            self.store([key], keyed_rows([rows], self._schema, where="cache"), now)
            return before

    def invalidate(self, key: Key) -> None:
        with self._lock:
            self._drop([key])

    def size(self) -> int:
        """Return the number of keys, including expired ones that were not removed yet."""
        with self._lock:
            return len(self._index)

    def size_in_bytes(self) -> int:
        """Return the approximate size of the rows, the keys and the tables around them."""
        with self._lock:
            slots = 5 * self._start.nbytes + sys.getsizeof(self._keys) + sys.getsizeof(self._index)
            return int(sum(table.nbytes for table in self._tables)) + slots + self._key_bytes

    def close(self) -> None:
        with self._lock:
            self._clear()

    # --- slots --------------------------------------------------------------------------------------------------------

    def _alive(self, slots: Int64s, now: int) -> Mask:
        alive = np.ones(len(slots), np.bool_)
        if self._after_write is not None:
            alive &= self._written[slots] + self._after_write > now
        if self._after_access is not None:
            alive &= self._accessed[slots] + self._after_access > now
        return alive

    def _ticks(self, number: int) -> Int64s:
        self._sequence += number
        return np.arange(self._sequence - number, self._sequence)

    def _grow(self) -> None:
        size = len(self._keys)
        self._keys.extend([None] * size)
        self._free.extend(range(2 * size - 1, size - 1, -1))
        arrays = (self._start, self._count, self._written, self._accessed, self._used)
        self._start, self._count, self._written, self._accessed, self._used = (
            np.concatenate((array, np.zeros(size, np.int64))) for array in arrays
        )

    def _drop(self, keys: Sequence[Key]) -> None:
        before = len(self._index)
        for key in keys:
            slot = self._index.pop(key, None)
            if slot is not None:
                self._keys[slot] = None
                self._free.append(slot)
                self._live -= int(self._count[slot])
        if before:
            self._key_bytes = self._key_bytes * len(self._index) // before

    def _drop_slots(self, slots: Int64s) -> None:
        self._drop([key for slot in slots.tolist() if (key := self._keys[slot]) is not None])

    def _evict(self, coming: int) -> None:
        if self._max is None or len(self._index) + coming <= self._max:
            return
        taken = self._taken()
        excess = min(len(taken), len(taken) + coming - self._max + self._max // _SLACK)
        self._drop_slots(taken[np.argsort(self._used[taken])[:excess]])

    def _purge(self, now: int) -> None:
        limits = [limit for limit in (self._after_access, self._after_write) if limit is not None]
        if limits and self._purged + min(limits) // _PURGES <= now:
            taken = self._taken()
            self._drop_slots(taken[~self._alive(taken, now)])
            self._purged = now

    def _taken(self) -> Int64s:
        return np.fromiter(self._index.values(), np.int64, len(self._index))

    # --- rows ---------------------------------------------------------------------------------------------------------

    def _append(self, table: pa.Table) -> None:
        """Append rows. Tables of similar size are merged, so there are few tables and each row is copied rarely."""
        self._total += table.num_rows
        self._live += table.num_rows
        if table.num_rows:
            self._tables.append(table)
        while len(self._tables) > 1 and self._tables[-2].num_rows <= 2 * self._tables[-1].num_rows:
            self._tables[-2:] = [pa.concat_tables(self._tables[-2:]).combine_chunks()]
        if self._total > 2 * self._live + _SMALLEST:
            self._compact()

    def _compact(self) -> None:
        slots = self._taken()
        count = self._count[slots]
        rows = pa.concat_tables(self._tables).take(ranges(self._start[slots], count)).combine_chunks()
        self._tables = [rows]
        self._start[slots] = np.cumsum(count) - count
        self._total = self._live = rows.num_rows


def _rows(rows: KeyedRows) -> Sequence[Row] | None:
    if rows.count[0] == ABSENT:
        return None
    return python_rows(rows.table.slice(int(rows.start[0]), int(rows.count[0])))


def _size_of(key: Key) -> int:
    return sys.getsizeof(key) + sum(map(sys.getsizeof, key))
