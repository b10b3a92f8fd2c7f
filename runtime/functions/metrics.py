"""The counters of an operator that calls a function. FLIP-498 defines none; the names follow the lookup metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hintplan.runtime.requests.metrics import Metrics, RequestCounters, metrics_of


@dataclass(slots=True, kw_only=True)
class FunctionCounters(RequestCounters):
    """The counters of one task in one batch; ``rowsOut`` counts the operator's output rows."""

    reported: ClassVar[dict[str, str]] = {
        "calls": "calls",
        "retries": "repeats",
        "failures": "failures",
        "inFlightMax": "inFlightMax",
        "rowsOut": "rowsOut",
    }

    rowsOut: int = 0


FUNCTION_METRICS: Metrics = metrics_of(FunctionCounters.reported, frozenset({"inFlightMax"}))
"""The metrics of an operator that calls a function."""
