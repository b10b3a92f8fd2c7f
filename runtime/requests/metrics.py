"""The counters that lookups and function calls share, and the aggregation of metrics over tasks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

Metrics = tuple[tuple[str, Literal["sum", "max"]], ...]
"""The names of metrics in their order, each with its aggregation over tasks."""


def metrics_of(names: Iterable[str], gauges: frozenset[str]) -> Metrics:
    """Return the metrics ``names``: over tasks, ``gauges`` take the maximum, all others the sum."""
    return tuple((name, "max" if name in gauges else "sum") for name in names)


@dataclass(slots=True, kw_only=True)
class RequestCounters:
    """The counters of the requests of one task in one batch.

    ``calls`` counts all calls, ``repeats`` the calls after a failure, ``failures`` the calls that ended with an
    exception, and ``timeouts`` the requests that took too long. ``inFlightMax`` is the highest number of concurrent
    calls.
    """

    reported: ClassVar[dict[str, str]]
    """The metrics of the operator in their order, each with the counter that it shows."""

    calls: int = 0
    repeats: int = 0
    failures: int = 0
    timeouts: int = 0
    inFlightMax: int = 0

    def values(self) -> list[int]:
        """Return the values of all metrics, in the order of ``reported``."""
        return [getattr(self, counter) for counter in self.reported.values()]
