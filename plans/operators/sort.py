"""``sort``: ORDER BY, OFFSET and LIMIT of a batch job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from plans.settings.groups import CachedSettings

__all__ = ["Sort", "SortKey"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SortKey:
    """One column to sort by; ``nulls`` says where NULLs go, whatever the direction."""

    column: str
    direction: Literal["asc", "desc"] = "asc"
    nulls: Literal["first", "last"] = "first"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sort:
    """Sorts by ``order``, skips ``offset`` rows and passes on up to ``limit`` of the rest. Batch only.

    No ``order`` keeps any rows; no ``limit`` keeps all. Columns are those of the input.
    """

    id: str
    inputs: tuple[str, ...]
    order: tuple[SortKey, ...]
    offset: int = 0
    limit: int | None = None
    cached: CachedSettings | None = None
