"""``join``: the regular stream join, with state on both sides."""

from __future__ import annotations

from dataclasses import dataclass

from plans.declarations.row_kinds import RowKind
from plans.operators.output import JoinColumn, JoinType
from plans.settings.groups import CachedSettings, StateEntry

__all__ = ["Join", "JoinKey"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinKey:
    """One equality ``left.left = right.right``; both columns have the same type, and NULL never matches."""

    left: str
    right: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """A regular stream join. ``condition`` is what the equalities leave over, over ``l.column`` and ``r.column``."""

    id: str
    inputs: tuple[str, ...]
    join_type: JoinType
    keys: tuple[JoinKey, ...]
    condition: str | None
    state: tuple[StateEntry, ...]
    output: tuple[JoinColumn, ...]
    changelog: tuple[RowKind, ...]
    cached: CachedSettings | None = None
