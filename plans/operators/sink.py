"""``sink``: writes to a table."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Sink"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink:
    """Writes its input, whose columns are those of ``table`` in order, to ``table``."""

    id: str
    inputs: tuple[str, ...]
    table: str
