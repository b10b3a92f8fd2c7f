"""The interfaces that users implement: lookup sources, lookup caches and reload triggers.

A source returns rows for keys, one key or many keys at a time, or yields all its rows for a full cache. Every Python
worker that needs a source creates it without arguments, opens it once with a :class:`LookupContext`, and closes it when
the worker ends. Keys and rows hold Python values, as pyarrow's ``to_pylist`` returns them for the columns' types. This
module knows neither Spark nor any connector.

    class Rates(LookupFunction):
        def open(self, context):
            self._rates = {"EUR": Decimal("1.08")}

        def lookup(self, key):
            (currency,) = key
            return [(currency, self._rates[currency])] if currency in self._rates else []
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from hintplan.plans.declarations.tables import Column

Key = tuple[Any, ...]
"""Values of the lookup key columns, in the order of ``LookupContext.keys``; never contains None."""

Row = tuple[Any, ...]
"""Values of ``LookupContext.columns``, in their order."""

NO_WATERMARK = -(1 << 63)
"""The value of :meth:`ReloadContext.current_watermark` while there is no watermark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupContext:
    """The table, the key columns and the fetched columns of a lookup; a source gets them when it is opened.

    ``options`` are the table's options. Secrets in them are still references such as ``${env:NAME}``, which
    :func:`hintplan.runtime.secrets.resolve` resolves.

    ``keys`` are the columns of a key, ``columns`` the columns of a row. ``declared`` are all physical columns of the
    table in order, for sources that find values by position.

    User-defined classes may only be loaded from ``allowed_modules`` (:func:`hintplan.runtime.classes.load_class`). If
    there are ``allowed_paths``, a source may only read these local files and files below them, after following links.
    """

    table: str
    options: Mapping[str, str]
    keys: tuple[Column, ...]
    columns: tuple[Column, ...]
    declared: tuple[Column, ...] = ()
    allowed_modules: tuple[str, ...] = ()
    allowed_paths: tuple[str, ...] = ()


class LookupFunction(ABC):
    """A synchronous source: the caller waits for the rows of a key.

    One thread at a time calls ``lookup`` and ``lookup_many``. After an exception in ``retry_on``, the engine repeats
    the call up to ``lookup.max-retries`` times, and then fails the query. Any other exception fails the query at once.
    So does a plain :class:`hintplan.plans.errors.RunError`, which stands for an error that no retry can mend.
    """

    bulk: ClassVar[bool] = False
    """True if :meth:`lookup_many` fetches many keys in one call; the engine then calls no other method for keys."""

    bulk_size: ClassVar[int] = 1000
    """The most keys that the engine puts into one call of :meth:`lookup_many`."""

    retry_on: ClassVar[tuple[type[Exception], ...]] = (Exception,)

    def open(self, context: LookupContext) -> None:  # noqa: B027 -- optional
        """Prepare for lookups: connections, pools, files."""

    @abstractmethod
    def lookup(self, key: Key) -> Iterable[Row]:
        """Return all rows that match ``key``, or nothing if the source has none."""

    def lookup_many(self, keys: Sequence[Key]) -> Sequence[Iterable[Row]]:
        """Return the rows of each of the distinct ``keys``, in the order of the keys."""
        return [self.lookup(key) for key in keys]

    def close(self) -> None:  # noqa: B027 -- optional
        """Release everything that :meth:`open` acquired."""


class AsyncLookupFunction(ABC):
    """An asynchronous source, which fetches many keys at once.

    All coroutines, also ``open`` and ``close``, run on one event loop of the engine, which lives as long as the worker.
    At most ``capacity`` calls of a task are in flight; the engine cancels a call that exceeds the timeout. Failures are
    handled as for :class:`LookupFunction`.
    """

    bulk: ClassVar[bool] = False
    """True if :meth:`lookup_many` fetches many keys in one call; the engine then calls no other method for keys."""

    bulk_size: ClassVar[int] = 1000
    """The most keys that the engine puts into one call of :meth:`lookup_many`."""

    retry_on: ClassVar[tuple[type[Exception], ...]] = (Exception,)

    async def open(self, context: LookupContext) -> None:  # noqa: B027 -- optional
        """Prepare for lookups: connections, pools, files."""

    @abstractmethod
    async def lookup(self, key: Key) -> Iterable[Row]:
        """Return all rows that match ``key``, or nothing if the source has none."""

    async def lookup_many(self, keys: Sequence[Key]) -> Sequence[Iterable[Row]]:
        """Return the rows of each of the distinct ``keys``, in the order of the keys."""
        return [await self.lookup(key) for key in keys]

    async def close(self) -> None:  # noqa: B027 -- optional
        """Release everything that :meth:`open` acquired."""


class ScanFunction(ABC):
    """A source that yields all its rows, for a full cache; the engine creates a new one for every load."""

    retry_on: ClassVar[tuple[type[Exception], ...]] = (Exception,)

    @abstractmethod
    def scan(self, context: LookupContext) -> Iterable[pa.Table | pa.RecordBatch | Row]:
        """Yield every row of the table: Arrow data, or tuples of the values of ``context.columns`` in that order.

        Arrow data has at least these columns, by name, in types that cast to the columns' types. Tuples and Arrow data
        may alternate.
        """


class CacheMetricGroup(ABC):
    """The gauges with which a cache reports its size. The engine counts hits, misses and loads."""

    @abstractmethod
    def gauge(self, name: str, read: Callable[[], int]) -> None:
        """Report ``read()`` under ``name``: ``numCachedRecords`` or ``numCachedBytes``; ValueError for other names."""


class LookupCache(ABC):
    """A semi-persistent map from each key to its rows, shared by all tasks of a Python worker.

    An empty sequence of rows means that the source has none. Implementations must be thread-safe. The engine creates a
    user-defined cache with a single argument, a mapping of the table's options.
    """

    def open(self, metrics: CacheMetricGroup) -> None:  # noqa: B027 -- optional
        """Prepare the cache; called once, before any other method."""

    @abstractmethod
    def get_if_present(self, key: Key) -> Sequence[Row] | None:
        """Return the rows cached under ``key``, or None if ``key`` is not cached."""

    @abstractmethod
    def put(self, key: Key, rows: Sequence[Row]) -> Sequence[Row] | None:
        """Cache ``rows`` under ``key``; return the rows cached under it before, or None."""

    @abstractmethod
    def invalidate(self, key: Key) -> None:
        """Remove ``key`` from the cache."""

    @abstractmethod
    def size(self) -> int:
        """Return the number of cached keys."""

    def close(self) -> None:  # noqa: B027 -- optional
        """Release everything; no other method is called afterwards."""


class ReloadContext(ABC):
    """The clock and the actions that a reload trigger can use; times of day are in ms since the epoch."""

    @abstractmethod
    def current_processing_time(self) -> int:
        """Return the time of the engine's clock, which may be set forward or back."""

    @abstractmethod
    def elapsed(self) -> int:
        """Return the ms since an arbitrary moment, by a monotonic clock."""

    @abstractmethod
    def current_watermark(self) -> int:
        """Return the watermark of the stream that performs the lookup, or ``NO_WATERMARK``."""

    @abstractmethod
    def trigger_reload(self) -> Future[None]:
        """Load the cache again; loads never overlap. A failed load is counted and leaves the old contents in the cache.

        The future is done when the load ends: its result is None, and its exception the reason for a failed load.
        """

    @abstractmethod
    def call_at(self, time: int, action: Callable[[], None]) -> Callable[[], None]:
        """Call ``action`` once at ``time``, on a thread of the engine; return a function that cancels the call."""

    @abstractmethod
    def call_after(self, milliseconds: int, action: Callable[[], None]) -> Callable[[], None]:
        """Call ``action`` once after ``milliseconds``; return a function that cancels the call.

        The delay does not change when somebody sets the clock.
        """


class CacheReloadTrigger(ABC):
    """The schedule by which a full cache is loaded again.

    The engine itself performs the first load, before the first row. It creates a user-defined trigger with a single
    argument, a mapping of the table's options.
    """

    @abstractmethod
    def open(self, context: ReloadContext) -> None:
        """Start the trigger: register the first reload."""

    def close(self) -> None:  # noqa: B027 -- optional
        """Stop the trigger: it starts no reload afterwards."""
