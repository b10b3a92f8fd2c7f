"""What a lookup counts, under FLIP-221's names, and how counts of tasks and workers become those of a batch.

A row that is looked up is a hit or a miss: a miss if it was the first of its batch to ask for a key that no cache and
no other task's load could answer, so that ``missCount`` loads were made for it; a hit otherwise. Without a cache there
are neither. Knows no Spark.

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
    """The counts of one task in one batch, then the gauges as they are when it ends.

    ``loadCount`` counts keys asked of the source (partial cache, no cache) or whole loads (full cache).
    ``latestLoadTime`` is in ms; ``inFlightMax`` is the most calls of a task that the source had at once.
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
        """Add what looking up again took; it is neither another lookup nor another hit, miss or load."""
        self.numLoadFailures += other.numLoadFailures
        self.timeouts += other.timeouts
        self.inFlightMax = max(self.inFlightMax, other.inFlightMax)
        self.latestLoadTime = other.latestLoadTime or self.latestLoadTime

    def values(self) -> list[int]:
        """All of them, in the order of ``LOOKUP_METRICS``."""
        return list(astuple(self))


GAUGES = frozenset({"inFlightMax", "latestLoadTime", "numCachedRecords", "numCachedBytes"})
LOOKUP_METRICS: tuple[tuple[str, Literal["sum", "max"]], ...] = tuple(
    (field.name, "max" if field.name in GAUGES else "sum") for field in fields(LookupCounters)
)
"""The metrics in order, and how those of tasks become one: of gauges the largest, for workers do not share."""

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
        """Write what the gauges show into ``counters``."""
        for name, read in self._gauges.items():
            setattr(counters, name, read())
