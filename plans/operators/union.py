"""``union``: UNION ALL."""

from __future__ import annotations

from dataclasses import dataclass

from plans.settings.groups import CachedSettings

__all__ = ["Union"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Union:
    """UNION ALL of inputs that agree in column names and types."""

    id: str
    inputs: tuple[str, ...]
    cached: CachedSettings | None = None
