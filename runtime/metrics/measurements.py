"""What has been measured of a run until now; read by those who export it, while it goes on being measured.

>>> from hintplan.runtime.metrics.table import BATCH_DURATION, RUN_RESTARTS
>>> measurements = Measurements()
>>> measurements.add(RUN_RESTARTS, 1, "paid"), measurements.add(RUN_RESTARTS, 2, "paid")
(None, None)
>>> measurements.values(RUN_RESTARTS)
[(('paid',), 3)]
>>> measurements.record(BATCH_DURATION, 0.3, "paid", "sink_paid")
>>> measurements.histograms(BATCH_DURATION)[0][1].counts[:4]
(0, 0, 1, 0)

Knows no exporter, no Spark and no clock.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock

from hintplan.runtime.metrics.table import BUCKETS, Metric

Labels = tuple[str, ...]
"""The values of a metric's labels, in their order."""

Value = float | Callable[[], float]
"""A number, or what says it when it is asked for."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many values were recorded in each bucket, the last one of those above all bounds, and their sum."""

    counts: tuple[int, ...] = (0,) * (len(BUCKETS) + 1)
    sum: float = 0.0

    def with_value(self, value: float) -> Histogram:
        bucket = bisect_left(BUCKETS, value)
        counts = (*self.counts[:bucket], self.counts[bucket] + 1, *self.counts[bucket + 1 :])
        return Histogram(counts, self.sum + value)


@dataclass(slots=True)
class Measurements:
    """The values of all metrics by their labels. ``recorders`` are told of each value of a histogram."""

    recorders: list[Callable[[Metric, Labels, float], None]] = field(default_factory=list)
    _values: dict[str, dict[Labels, Value]] = field(default_factory=dict)
    _histograms: dict[str, dict[Labels, Histogram]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def add(self, metric: Metric, amount: float, *labels: str) -> None:
        """Let a counter grow; with 0 it is there, to be compared with later."""
        with self._lock:
            found = self._values.setdefault(metric.name, {})
            before = found.get(labels, 0)
            assert not callable(before)
            found[labels] = before + amount

    def set(self, metric: Metric, value: Value | None, *labels: str) -> None:
        """Let a gauge be ``value``; None if it says nothing any more."""
        with self._lock:
            found = self._values.setdefault(metric.name, {})
            if value is None:
                found.pop(labels, None)
            else:
                found[labels] = value

    def record(self, metric: Metric, value: float, *labels: str) -> None:
        """Count ``value`` in a histogram."""
        with self._lock:
            found = self._histograms.setdefault(metric.name, {})
            found[labels] = found.get(labels, Histogram()).with_value(value)
        for recorder in self.recorders:
            recorder(metric, labels, value)

    def values(self, metric: Metric) -> list[tuple[Labels, float]]:
        """What a counter or a gauge is now."""
        with self._lock:
            found = list(self._values.get(metric.name, {}).items())
        return [(labels, value() if callable(value) else value) for labels, value in found]

    def histograms(self, metric: Metric) -> list[tuple[Labels, Histogram]]:
        """What has been recorded until now."""
        with self._lock:
            return list(self._histograms.get(metric.name, {}).items())
