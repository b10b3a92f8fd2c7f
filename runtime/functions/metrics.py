"""What an operator that calls a function counts. FLIP-498 names no metrics; names follow those of lookups."""

from __future__ import annotations

from dataclasses import astuple, dataclass, fields
from typing import Literal


@dataclass(slots=True, kw_only=True)
class FunctionCounters:
    """The counts of one task in one batch.

    ``calls`` counts calls of ``eval``, repeated ones too; ``retries`` are those of them that repeat one, ``failures``
    those that ended with an exception. ``inFlightMax`` is the most calls of a task that ran at once, and ``rowsOut``
    the rows that the operator put out.
    """

    calls: int = 0
    retries: int = 0
    failures: int = 0
    inFlightMax: int = 0
    rowsOut: int = 0

    def values(self) -> list[int]:
        """All of them, in the order of ``FUNCTION_METRICS``."""
        return list(astuple(self))


FUNCTION_METRICS: tuple[tuple[str, Literal["sum", "max"]], ...] = tuple(
    (field.name, "max" if field.name == "inFlightMax" else "sum") for field in fields(FunctionCounters)
)
"""The metrics in order, and how those of tasks become one."""
