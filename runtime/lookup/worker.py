"""The open lookup that the tasks of one Python worker share: its source, its cache, and loads in progress.

The first task opens it, and later batches use it again; it is found by operator and settings.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TypeVar
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

from hintplan.runtime.classes import load_class
from hintplan.runtime.kernels.found_rows import ABSENT, KeyedRows
from hintplan.runtime.lookup.api import (
    AsyncLookupFunction,
    CacheReloadTrigger,
    Key,
    LookupCache,
    LookupFunction,
    ScanFunction,
)
from hintplan.runtime.lookup.caches.full_cache import FullCache, Reloads
from hintplan.runtime.lookup.caches.partial_cache import DefaultLookupCache
from hintplan.runtime.lookup.caches.schedule import Scheduler, ThreadScheduler
from hintplan.runtime.lookup.caches.single_flight import SingleFlight
from hintplan.runtime.lookup.caches.triggers import PeriodicReloadTrigger, TimedReloadTrigger, reload_time
from hintplan.runtime.lookup.metrics import CacheGauges, LookupCounters
from hintplan.runtime.lookup.resolution import BatchCache
from hintplan.runtime.lookup.rows import keyed_rows, python_rows
from hintplan.runtime.lookup.source import Source, open_source
from hintplan.runtime.lookup.spec import LookupSpec
from hintplan.runtime.state.layout import Int64s
from hintplan.runtime.worker.clock import Clock, SystemClock
from hintplan.runtime.worker.event_loop import EventLoop, finish, worker_event_loop
from hintplan.runtime.worker.shared import shared

Custom = TypeVar("Custom", LookupCache, CacheReloadTrigger)


class RowCache:
    """A user-defined cache, which is used key by key, behind the interface of a cache for many keys at once."""

    def __init__(self, cache: LookupCache, schema: pa.Schema, *, cache_missing_key: bool, where: str) -> None:
        self._cache = cache
        self._schema = schema
        self._keep_missing = cache_missing_key
        self._where = where

    def probe(self, keys: Sequence[Key]) -> KeyedRows:
        cached_rows = [self._cache.get_if_present(key) for key in keys]
        rows = keyed_rows([rows_of_key or () for rows_of_key in cached_rows], self._schema, where=self._where)
        is_cached = np.array([rows_of_key is not None for rows_of_key in cached_rows], np.bool_)
        return KeyedRows(table=rows.table, start=rows.start, count=np.where(is_cached, rows.count, ABSENT))

    def store(self, keys: Sequence[Key], rows: KeyedRows, written: Int64s) -> None:
        for index, key in enumerate(keys):
            start, count = int(rows.start[index]), int(rows.count[index])
            if count or self._keep_missing:
                self._cache.put(key, python_rows(rows.table.slice(start, count)))


class OpenLookup:
    """An open source with its cache; ``clock``, ``event_loop`` and ``scheduler`` belong to the worker."""

    def __init__(
        self, spec: LookupSpec, source: Source, clock: Clock, event_loop: EventLoop, scheduler: Scheduler
    ) -> None:
        self.spec = spec
        self.clock = clock
        self.event_loop = event_loop
        self.flights = SingleFlight()
        self.cache: BatchCache | None = None
        self.full: FullCache | None = None
        self.lock = threading.Lock()
        self._gauges = CacheGauges()
        self._source = source
        self._scheduler = scheduler
        self._trigger: CacheReloadTrigger | None = None
        self._lookup_cache: LookupCache | None = None
        if isinstance(source, AsyncLookupFunction):
            finish(event_loop, source.open(spec.context))
        elif isinstance(source, LookupFunction):
            source.open(spec.context)
        if isinstance(source, ScanFunction):
            self._open_full(source)
        elif spec.cache.kind == "PARTIAL":
            self._open_partial()

    @property
    def source(self) -> LookupFunction | AsyncLookupFunction:
        """The source of a lookup without a full cache."""
        if isinstance(self._source, ScanFunction):
            raise TypeError("a full cache never queries its source for a key")
        return self._source

    def report(self, counters: LookupCounters) -> None:
        """Write the gauges and loads of the caches into ``counters``."""
        self._gauges.report(counters)
        if self.full is not None:
            self.full.report(counters)

    def close(self) -> None:
        """Stop reloads, then close the cache and the source."""
        if self._trigger is not None:
            self._trigger.close()
        self._scheduler.close()
        if self._lookup_cache is not None:
            self._lookup_cache.close()
        if isinstance(self._source, AsyncLookupFunction):
            finish(self.event_loop, self._source.close())
        elif isinstance(self._source, LookupFunction):
            self._source.close()

    def _open_partial(self) -> None:
        spec, cache = self.spec, self.spec.cache
        schema = spec.rows.fetched
        if cache.cache_class is None:
            default = DefaultLookupCache(
                schema,
                self.clock,
                expire_after_access=cache.expire_after_access,
                expire_after_write=cache.expire_after_write,
                max_rows=cache.max_rows,
                cache_missing_key=cache.cache_missing_key,
            )
            self.cache = self._lookup_cache = default
        else:
            custom = self._custom(cache.cache_class, LookupCache)  # type: ignore[type-abstract]
            self.cache = RowCache(custom, schema, cache_missing_key=cache.cache_missing_key, where=spec.policy.where)
            self._lookup_cache = custom
            self._gauges.gauge("numCachedRecords", custom.size)
        self._lookup_cache.open(self._gauges)

    def _open_full(self, source: ScanFunction) -> None:
        spec = self.spec
        self.full = FullCache(
            lambda: source.scan(spec.context),
            spec.rows.fetched,
            [column.name for column in spec.context.keys],
            self.clock,
            retry_on=source.retry_on,
            policy=spec.policy,
        )
        self.full.open()
        self._trigger = self._reload_trigger()
        self._trigger.open(Reloads(self.full, self.clock, self._scheduler))

    def _reload_trigger(self) -> CacheReloadTrigger:
        cache = self.spec.cache
        if cache.trigger_class is not None:
            return self._custom(cache.trigger_class, CacheReloadTrigger)  # type: ignore[type-abstract]
        if cache.iso_time is not None:
            return TimedReloadTrigger(reload_time(cache.iso_time, ZoneInfo(cache.time_zone)), cache.interval_in_days)
        return PeriodicReloadTrigger(cache.interval or 0, cache.schedule_mode)

    def _custom(self, name: str, expected: type[Custom]) -> Custom:
        context = self.spec.context
        path = f"operators.{self.spec.policy.operator}.cache"
        custom: Custom = load_class(name, context.allowed_modules, expected, path=path)(context.options)
        return custom


_clock = SystemClock()


def shared_lookup(spec: LookupSpec) -> AbstractContextManager[OpenLookup]:
    """Return the lookup of ``spec`` in this process, opened if necessary; concurrent tasks share it."""
    return shared(spec.identity, spec.run, lambda: _open(spec))


def _open(spec: LookupSpec) -> OpenLookup:
    source = open_source(spec.source, spec.mode, spec.context)
    return OpenLookup(spec, source, _clock, worker_event_loop(), ThreadScheduler(_clock))
