"""The counters of an operator that calls a function. FLIP-498 defines none; the names follow the lookup metrics."""

from __future__ import annotations

from dataclasses import astuple, dataclass, fields
from typing import Literal


@dataclass(slots=True, kw_only=True)
class FunctionCounters:
    """The counters of one task in one batch.

    ``calls`` counts all calls of ``eval``, ``retries`` the repeated ones, and ``failures`` the calls that ended with an
    exception. ``inFlightMax`` is the highest number of concurrent calls of a task. ``rowsOut`` counts the operator's
    output rows.
    """

    calls: int = 0
    retries: int = 0
    failures: int = 0
    inFlightMax: int = 0
    rowsOut: int = 0

    def values(self) -> list[int]:
        """Return all values, in the order of ``FUNCTION_METRICS``."""
        return list(astuple(self))


FUNCTION_METRICS: tuple[tuple[str, Literal["sum", "max"]], ...] = tuple(
    (field.name, "max" if field.name == "inFlightMax" else "sum") for field in fields(FunctionCounters)
)
"""The metrics in order, each with its aggregation over tasks."""
