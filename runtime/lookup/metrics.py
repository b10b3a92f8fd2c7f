"""The counters of a lookup, under the names of FLIP-221, and their aggregation over tasks and workers.

Every row that is looked up is a hit or a miss:

- With a partial cache, the first row of a batch with a key is a miss if neither the cache nor a load of another task
  has an answer. So ``missCount`` is the number of loads for missing keys.
- With a full cache, every row without a match is a miss.
- Without a cache there are no hits and no misses.

This module knows no Spark.

>>> totals = LookupCounters(lookups=10, hitCount=9, missCount=1, loadCount=1)
>>> totals.values()[:4]
[10, 9, 1, 1]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, dataclass, fields
from typing import Literal

from hintplan.runtime.lookup.api import CacheMetricGroup


@dataclass(slots=True, kw_only=True)
class LookupCounters:
    """The counters of one task in one batch, and the gauges at its end.

    ``loadCount`` counts keys that were fetched from the source (partial cache, no cache), or whole loads (full cache).
    ``latestLoadTime`` is in ms; ``inFlightMax`` is the highest number of concurrent calls of a task.
    """

    lookups: int = 0
    hitCount: int = 0
    missCount: int = 0
    loadCount: int = 0
    numLoadFailures: int = 0
    retries: int = 0
    timeouts: int = 0
    inFlightMax: int = 0
    latestLoadTime: int = 0
    numCachedRecords: int = 0
    numCachedBytes: int = 0

    def add_retried(self, other: LookupCounters) -> None:
        """Add the cost of repeated lookups, which count as no further lookup, hit, miss or load."""
        self.numLoadFailures += other.numLoadFailures
        self.timeouts += other.timeouts
        self.inFlightMax = max(self.inFlightMax, other.inFlightMax)
        self.latestLoadTime = other.latestLoadTime or self.latestLoadTime

    def values(self) -> list[int]:
        """Return all values, in the order of ``LOOKUP_METRICS``."""
        return list(astuple(self))


GAUGES = frozenset({"inFlightMax", "latestLoadTime", "numCachedRecords", "numCachedBytes"})
LOOKUP_METRICS: tuple[tuple[str, Literal["sum", "max"]], ...] = tuple(
    (field.name, "max" if field.name in GAUGES else "sum") for field in fields(LookupCounters)
)
"""The metrics in order, each with its aggregation over tasks: the maximum for gauges, because workers share no cache.
"""

_REGISTERED = ("numCachedRecords", "numCachedBytes")


class CacheGauges(CacheMetricGroup):
    """The gauges that one cache registers when it is opened."""

    def __init__(self) -> None:
        self._gauges: dict[str, Callable[[], int]] = {}

    def gauge(self, name: str, read: Callable[[], int]) -> None:
        if name not in _REGISTERED:
            raise ValueError(f"a cache has no gauge {name!r}; it can report {' and '.join(_REGISTERED)}")
        self._gauges[name] = read

    def report(self, counters: LookupCounters) -> None:
        """Write the current values of the gauges into ``counters``."""
        for name, read in self._gauges.items():
            setattr(counters, name, read())
