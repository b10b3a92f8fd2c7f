"""``calc``: filters rows and computes columns, without state."""

from __future__ import annotations

from dataclasses import dataclass

from plans.settings.groups import CachedSettings

__all__ = ["Calc", "SelectItem"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectItem:
    """An output column of a calc: passed through by name, or computed as ``expression`` of ``type``."""

    name: str
    expression: str | None = None
    type: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Calc:
    """Keeps the input rows for which ``filter`` is true, then projects them to ``select``. Stateless."""

    id: str
    inputs: tuple[str, ...]
    select: tuple[SelectItem, ...]
    filter: str | None = None
    cached: CachedSettings | None = None
