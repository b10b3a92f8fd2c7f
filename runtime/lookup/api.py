"""What a lookup source, a lookup cache and a reload trigger are to the engine: the interfaces people implement.

A source answers keys with rows, one key or many keys at a time, or yields all its rows for a full cache. It is created
without arguments in every Python worker that needs it, opened once with a :class:`LookupContext`, used until the worker
goes, and closed. Values are Python values as pyarrow's ``to_pylist`` gives them for the columns' types. This module
knows neither Spark nor any connector.

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
"""What :meth:`ReloadContext.current_watermark` says while there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupContext:
    """What a source learns when it is opened: its table, and which columns are asked for.

    ``options`` are the table's, with secrets still as ``${env:NAME}``: :func:`hintplan.runtime.secrets.resolve` reads
    them. ``keys`` are the columns that a key has values of; ``columns`` are those a row has values of; ``declared`` are
    all physical columns of the table in order, for sources that find values by position. Classes of the user's may only
    be loaded from ``allowed_modules`` (:func:`hintplan.runtime.classes.load_class`). Local files, if there are
    ``allowed_paths``, are only these and those below them, wherever links lead.
    """

    table: str
    options: Mapping[str, str]
    keys: tuple[Column, ...]
    columns: tuple[Column, ...]
    declared: tuple[Column, ...] = ()
    allowed_modules: tuple[str, ...] = ()
    allowed_paths: tuple[str, ...] = ()


class LookupFunction(ABC):
    """A source that answers a key while the caller waits.

    ``lookup`` and ``lookup_many`` are called by one thread at a time. An exception in ``retry_on`` is tried again as
    often as ``lookup.max-retries`` allows, and then fails the query. Any other one fails it at once, and so does a
    plain :class:`hintplan.plans.errors.RunError`, which says what no retry can mend.
    """

    bulk: ClassVar[bool] = False
    """Whether :meth:`lookup_many` asks for many keys in one call; the engine then calls nothing else."""

    bulk_size: ClassVar[int] = 1000
    """The most keys that the engine puts into one call of :meth:`lookup_many`."""

    retry_on: ClassVar[tuple[type[Exception], ...]] = (Exception,)

    def open(self, context: LookupContext) -> None:  # noqa: B027 -- optional
        """Prepare for lookups: connections, pools, files."""

    @abstractmethod
    def lookup(self, key: Key) -> Iterable[Row]:
        """All rows that match ``key``; none if there is no such row."""

    def lookup_many(self, keys: Sequence[Key]) -> Sequence[Iterable[Row]]:
        """The rows of each of the distinct ``keys``, in the order of the keys."""
        return [self.lookup(key) for key in keys]

    def close(self) -> None:  # noqa: B027 -- optional
        """Release what :meth:`open` took."""


class AsyncLookupFunction(ABC):
    """A source that answers many keys at once, on an event loop that is the engine's and lives as long as the worker.

    All coroutines run on that loop, ``open`` and ``close`` too. At most ``capacity`` calls of a task are in flight; a
    call that exceeds the timeout is cancelled. Failures as in :class:`LookupFunction`.
    """

    bulk: ClassVar[bool] = False
    """Whether :meth:`lookup_many` asks for many keys in one call; the engine then calls nothing else."""

    bulk_size: ClassVar[int] = 1000
    """The most keys that the engine puts into one call of :meth:`lookup_many`."""

    retry_on: ClassVar[tuple[type[Exception], ...]] = (Exception,)

    async def open(self, context: LookupContext) -> None:  # noqa: B027 -- optional
        """Prepare for lookups: connections, pools, files."""

    @abstractmethod
    async def lookup(self, key: Key) -> Iterable[Row]:
        """All rows that match ``key``; none if there is no such row."""

    async def lookup_many(self, keys: Sequence[Key]) -> Sequence[Iterable[Row]]:
        """The rows of each of the distinct ``keys``, in the order of the keys."""
        return [await self.lookup(key) for key in keys]

    async def close(self) -> None:  # noqa: B027 -- optional
        """Release what :meth:`open` took."""


class ScanFunction(ABC):
    """A source that yields all its rows, for a full cache; created anew for every load."""

    retry_on: ClassVar[tuple[type[Exception], ...]] = (Exception,)

    @abstractmethod
    def scan(self, context: LookupContext) -> Iterable[pa.Table | pa.RecordBatch | Row]:
        """Every row of the table: tuples of the values of ``context.columns``, in that order, or Arrow.

        Arrow has at least these columns, by name, in types that cast to theirs; it may alternate with tuples.
        """


class CacheMetricGroup(ABC):
    """Where a cache says how much it holds. Hits, misses and loads are counted by the engine."""

    @abstractmethod
    def gauge(self, name: str, read: Callable[[], int]) -> None:
        """Report ``read()`` under ``name``: ``numCachedRecords`` or ``numCachedBytes``; ValueError for other names."""


class LookupCache(ABC):
    """A semi-persistent map from keys to the rows of each, shared by all tasks of a Python worker.

    An empty sequence of rows says that the source has none. Implementations must be thread-safe. A class of the user's
    is created with the table's options as a mapping, its only argument.
    """

    def open(self, metrics: CacheMetricGroup) -> None:  # noqa: B027 -- optional
        """Called once before any other method."""

    @abstractmethod
    def get_if_present(self, key: Key) -> Sequence[Row] | None:
        """The rows cached under ``key``, or None if it is not cached."""

    @abstractmethod
    def put(self, key: Key, rows: Sequence[Row]) -> Sequence[Row] | None:
        """Cache ``rows`` under ``key``; returns what was cached under it before, or None."""

    @abstractmethod
    def invalidate(self, key: Key) -> None:
        """Forget ``key``."""

    @abstractmethod
    def size(self) -> int:
        """How many keys are cached."""

    def close(self) -> None:  # noqa: B027 -- optional
        """Release everything; no other method is called afterwards."""


class ReloadContext(ABC):
    """What a reload trigger can see and do; times of day in ms since the epoch."""

    @abstractmethod
    def current_processing_time(self) -> int:
        """What the engine's clock says, which may be put forward or back."""

    @abstractmethod
    def elapsed(self) -> int:
        """The ms since some moment, by a clock that only goes on."""

    @abstractmethod
    def current_watermark(self) -> int:
        """The watermark of the stream that looks up, or ``NO_WATERMARK``."""

    @abstractmethod
    def trigger_reload(self) -> Future[None]:
        """Load the cache anew; loads never overlap. A failed load is counted and keeps what was there.

        The future is done when the load is: its result is None, its exception why the load failed.
        """

    @abstractmethod
    def call_at(self, time: int, action: Callable[[], None]) -> Callable[[], None]:
        """Have ``action`` called once at ``time``, on a thread of the engine's; returns what cancels it."""

    @abstractmethod
    def call_after(self, milliseconds: int, action: Callable[[], None]) -> Callable[[], None]:
        """Have ``action`` called once when so much time has passed, whatever is done to the clock meanwhile."""


class CacheReloadTrigger(ABC):
    """Decides when a full cache is loaded again. The first load, before the first row, is the engine's.

    A class of the user's is created with the table's options as a mapping, its only argument.
    """

    @abstractmethod
    def open(self, context: ReloadContext) -> None:
        """Start: register for the first reload."""

    def close(self) -> None:  # noqa: B027 -- optional
        """Stop: no reload is triggered afterwards."""
