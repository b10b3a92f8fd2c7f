"""Metrics of a batch job: Spark's Observations by operator id, read when the job has ended.

A job that ended well has reported at its top, but Spark may have dropped parts of its plan, such as what is joined with
nothing; what was observed there never arrives, and is not waited for.

    observed = ObservedMetrics()
    frame = frame.observe(observed.named("sink_r"), F.count(F.lit(1)).alias("rows_out"))
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Observation


@dataclass(slots=True)
class ObservedMetrics:
    """What one job observes, by name."""

    observations: dict[str, Any] = field(default_factory=dict)

    def named(self, name: str) -> Any:
        """A new Observation, to be used once, whose metrics are found under ``name``."""
        observation = Observation(name)
        self.observations[name] = observation
        return observation

    def of(self, name: str) -> dict[str, int]:
        """The metrics of what is observed at the top of a job that has ended; NULL counts as 0."""
        return _numbers(self.observations[name].get)

    def rest(self, top: str) -> dict[str, dict[str, int]]:
        """The metrics of all others, none of those that have not arrived; to be called after :meth:`of`."""
        others = {name: one for name, one in self.observations.items() if name != top}
        return {name: _numbers(one.get) if _has_arrived(one) else {} for name, one in others.items()}


def _has_arrived(observation: Any) -> bool:
    if type(observation).__module__.startswith("pyspark.sql.connect"):
        return bool(observation._result)
    # Spark ends what it has dropped, too: by an empty row, which PySpark cannot read.
    return bool(observation._jo.future().isCompleted()) and observation._jo.getRow().schema() is not None


def _numbers(metrics: dict[str, Any]) -> dict[str, int]:
    return {name: value or 0 for name, value in metrics.items()}
