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
from dataclasses import dataclass
from typing import ClassVar

from hintplan.runtime.lookup.api import CacheMetricGroup
from hintplan.runtime.requests.metrics import Metrics, RequestCounters, metrics_of


@dataclass(slots=True, kw_only=True)
class LookupCounters(RequestCounters):
    """The counters of one task in one batch, and the gauges at its end.

    ``loadCount`` counts keys that were fetched from the source (partial cache, no cache), or whole loads (full cache).
    ``retries`` counts the keys that were looked up again after a miss. ``latestLoadTime`` is in ms.
    """

    reported: ClassVar[dict[str, str]] = {
        "lookups": "lookups",
        "hitCount": "hitCount",
        "missCount": "missCount",
        "loadCount": "loadCount",
        "numLoadFailures": "failures",
        "retries": "retries",
        "timeouts": "timeouts",
        "inFlightMax": "inFlightMax",
        "latestLoadTime": "latestLoadTime",
        "numCachedRecords": "numCachedRecords",
        "numCachedBytes": "numCachedBytes",
    }

    lookups: int = 0
    hitCount: int = 0
    missCount: int = 0
    loadCount: int = 0
    retries: int = 0
    latestLoadTime: int = 0
    numCachedRecords: int = 0
    numCachedBytes: int = 0

    def add_retried(self, other: LookupCounters) -> None:
        """Add the cost of repeated lookups, which count as no further lookup, hit, miss or load."""
        self.failures += other.failures
        self.timeouts += other.timeouts
        self.inFlightMax = max(self.inFlightMax, other.inFlightMax)
        self.latestLoadTime = other.latestLoadTime or self.latestLoadTime


GAUGES = frozenset({"inFlightMax", "latestLoadTime", "numCachedRecords", "numCachedBytes"})
LOOKUP_METRICS: Metrics = metrics_of(LookupCounters.reported, GAUGES)
"""The metrics of a lookup; gauges take the maximum over tasks, because workers share no cache."""

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
