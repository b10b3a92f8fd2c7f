"""``scan``: reads columns of a table."""

from __future__ import annotations

from dataclasses import dataclass

from plans.settings.groups import CachedSettings

__all__ = ["Scan"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """Reads ``columns`` (physical ones, by name) of ``table``, with the row kinds that its source emits."""

    id: str
    table: str
    columns: tuple[str, ...]
    cached: CachedSettings | None = None

    @property
    def inputs(self) -> tuple[str, ...]:
        return ()
