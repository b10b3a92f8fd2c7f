"""The current measurements of a run; exporters read them while they change.

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
"""A number, or a function that returns it on each read."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """The number of values per bucket, the last bucket for values above all bounds, and the sum of the values."""

    counts: tuple[int, ...] = (0,) * (len(BUCKETS) + 1)
    sum: float = 0.0

    def with_value(self, value: float) -> Histogram:
        bucket = bisect_left(BUCKETS, value)
        counts = (*self.counts[:bucket], self.counts[bucket] + 1, *self.counts[bucket + 1 :])
        return Histogram(counts, self.sum + value)


@dataclass(slots=True)
class Measurements:
    """The values of all metrics by their labels. ``recorders`` receive each value of a histogram."""

    recorders: list[Callable[[Metric, Labels, float], None]] = field(default_factory=list)
    _values: dict[str, dict[Labels, Value]] = field(default_factory=dict)
    _histograms: dict[str, dict[Labels, Histogram]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def add(self, metric: Metric, amount: float, *labels: str) -> None:
        """Increase a counter; an ``amount`` of 0 creates it, so that later values can be compared with it."""
        with self._lock:
            by_labels = self._values.setdefault(metric.name, {})
            before = by_labels.get(labels, 0)
            assert not callable(before)
            by_labels[labels] = before + amount

    def set(self, metric: Metric, value: Value | None, *labels: str) -> None:
        """Set a gauge to ``value``; None removes it."""
        with self._lock:
            by_labels = self._values.setdefault(metric.name, {})
            if value is None:
                by_labels.pop(labels, None)
            else:
                by_labels[labels] = value

    def record(self, metric: Metric, value: float, *labels: str) -> None:
        """Record ``value`` in a histogram."""
        with self._lock:
            by_labels = self._histograms.setdefault(metric.name, {})
            by_labels[labels] = by_labels.get(labels, Histogram()).with_value(value)
        for recorder in self.recorders:
            recorder(metric, labels, value)

    def values(self, metric: Metric) -> list[tuple[Labels, float]]:
        """Return the current values of a counter or a gauge."""
        with self._lock:
            current = list(self._values.get(metric.name, {}).items())
        return [(labels, value() if callable(value) else value) for labels, value in current]

    def histograms(self, metric: Metric) -> list[tuple[Labels, Histogram]]:
        """Return the current histograms of a metric."""
        with self._lock:
            return list(self._histograms.get(metric.name, {}).items())
