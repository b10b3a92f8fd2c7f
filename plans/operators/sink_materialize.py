"""``sink-materialize``: all rows by the key of their sink, the latest of which is passed on."""

from __future__ import annotations

from dataclasses import dataclass

from plans.declarations.row_kinds import RowKind
from plans.settings.groups import CachedSettings, StateEntry

__all__ = ["SinkMaterialize"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkMaterialize:
    """Keeps all rows by the ``key`` of the sinks that read it, and passes on the latest that is there for each key.

    When the latest is taken back, the one before it comes again.
    """

    id: str
    inputs: tuple[str, ...]
    key: tuple[str, ...]
    state: tuple[StateEntry, ...]
    changelog: tuple[RowKind, ...]
    cached: CachedSettings | None = None
