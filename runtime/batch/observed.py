"""The metrics of a batch job: Spark's Observations by operator id, read when the job has ended.

A successful job has reported at its top. But Spark may have dropped parts of its plan, such as the side of a join with
an empty table. Metrics of dropped parts never arrive, and are not awaited.

    observed = ObservedMetrics()
    frame = frame.observe(observed.observation("sink_r"), F.count(F.lit(1)).alias("rows_out"))
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyspark
from pyspark.sql import Observation

from hintplan.runtime.spark.versions import facts

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject


@dataclass(slots=True)
class ObservedMetrics:
    """The observations of one job, by name."""

    observations: dict[str, Observation] = field(default_factory=dict)

    def observation(self, name: str) -> Observation:
        """Return a new Observation, for a single use, whose metrics are stored under ``name``."""
        observation = Observation(name)
        self.observations[name] = observation
        return observation

    def of(self, name: str) -> dict[str, int]:
        """Return the metrics at the top of a job that has ended; NULL counts as 0."""
        return _numbers(self.observations[name].get)

    def rest(self, top: str) -> dict[str, dict[str, int]]:
        """Return the metrics of all names except ``top``, empty if they have not arrived; call it after :meth:`of`."""
        below_top = {name: observation for name, observation in self.observations.items() if name != top}
        return {
            name: _numbers(observation.get) if _has_arrived(observation) else {}
            for name, observation in below_top.items()
        }


def _has_arrived(observation: Observation) -> bool:
    if type(observation).__module__.startswith("pyspark.sql.connect"):
        client: Any = observation
        return bool(client._result)
    # Spark also completes the observations of dropped parts, with an empty row, which PySpark cannot read.
    java: JavaObject = observation._jo
    return bool(java.future().isCompleted()) and facts(pyspark.__version__).is_observed(java)


def _numbers(metrics: dict[str, Any]) -> dict[str, int]:
    return {name: value or 0 for name, value in metrics.items()}
