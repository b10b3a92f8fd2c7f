"""The recent past of a run: counters of the last minute for rates, the durations of batches, and the last batch.

A page shows it with the measurements. Knows no Spark, no exporter and no clock: callers pass the time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from hintplan.runtime.metrics.measurements import Labels, Measurements
from hintplan.runtime.metrics.table import METRICS
from hintplan.runtime.progress import BatchProgress, JobProgress
from hintplan.runtime.running import RunningBatch

WINDOW_SECONDS = 60.0
"""The time over which rates are computed."""

_BETWEEN_SAMPLES_SECONDS = 5.0
_DURATIONS = 60
_SOURCES = 3

Values = Mapping[tuple[str, Labels], float]
"""The values of counters and gauges, by the name of the metric and its labels."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The values at a ``time``, in seconds of a monotonic clock."""

    time: float
    values: Values


@dataclass(slots=True)
class Recent:
    """The recent past of a run of ``plan``.

    ``last`` has the last batch or job of each sink, ``batches`` the last three batches of each query by its first sink,
    the latest last, and ``durations`` their durations in ms. ``at_work`` has the last report on the batch in progress,
    by query.
    """

    plan: str
    measurements: Measurements
    last: dict[str, BatchProgress | JobProgress] = field(default_factory=dict)
    batches: dict[str, deque[BatchProgress]] = field(default_factory=dict)
    durations: dict[str, deque[int]] = field(default_factory=dict)
    at_work: dict[str, RunningBatch] = field(default_factory=dict)
    _samples: deque[Sample] = field(default_factory=deque)

    def ended(self, progress: BatchProgress | JobProgress, *, main: bool, now: float) -> None:
        """Record a batch or a job after it was measured; ``main`` is true for the first sink of its query."""
        self.last[progress.sink] = progress
        if main:
            self.durations.setdefault(progress.sink, deque(maxlen=_DURATIONS)).append(progress.duration_ms)
            if isinstance(progress, BatchProgress):
                self.batches.setdefault(progress.sink, deque(maxlen=_SOURCES)).append(progress)
        if not self._samples or now - self._samples[-1].time >= _BETWEEN_SAMPLES_SECONDS:
            self.sample(now)

    def sample(self, now: float) -> None:
        """Record the current values, and forget values that no rate needs."""
        self._samples.append(Sample(now, self.current()))
        while len(self._samples) > 1 and self._samples[1].time <= now - WINDOW_SECONDS:
            self._samples.popleft()

    def before(self, now: float) -> Sample:
        """Return the last sample that is at least a minute old, or else the first one of the run."""
        samples = list(self._samples) or [Sample(now, {})]
        old = [sample for sample in samples if sample.time <= now - WINDOW_SECONDS]
        return old[-1] if old else samples[0]

    def current(self) -> dict[tuple[str, Labels], float]:
        """Return the current values of the plan."""
        return {
            (metric.name, labels): value
            for metric in METRICS
            for labels, value in self.measurements.values(metric)
            if labels[0] == self.plan
        }
