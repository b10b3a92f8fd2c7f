"""``changelog-normalize``: upserts made a whole changelog."""

from __future__ import annotations

from dataclasses import dataclass

from plans.declarations.row_kinds import RowKind
from plans.settings.groups import CachedSettings, StateEntry

__all__ = ["ChangelogNormalize"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangelogNormalize:
    """Turns rows that replace each other by ``key``, in the order in which they arrived, into a whole changelog.

    Reads a scan of upserts, or of a changelog in which changes may come twice; ``-U`` rows of it are dropped.
    """

    id: str
    inputs: tuple[str, ...]
    key: tuple[str, ...]
    state: tuple[StateEntry, ...]
    changelog: tuple[RowKind, ...]
    cached: CachedSettings | None = None
