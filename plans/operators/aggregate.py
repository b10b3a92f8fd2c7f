"""``aggregate``: a group aggregate."""

from __future__ import annotations

from dataclasses import dataclass

from plans.declarations.row_kinds import RowKind
from plans.settings.groups import CachedSettings, PhaseSettings, StateEntry

__all__ = ["Aggregate", "AggregateCall"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateCall:
    """``function(argument)`` over the rows whose ``filter`` column is true; no argument means ``COUNT(*)``.

    ``function`` is COUNT, SUM, AVG, MIN, MAX, or one whose result depends on the order in which rows come: FIRST_VALUE,
    LAST_VALUE and LISTAGG, which joins texts with ``separator``. ``argument`` and ``filter`` name input columns.
    """

    name: str
    function: str
    argument: str | None = None
    distinct: bool = False
    filter: str | None = None
    separator: str | None = None
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """A group aggregate. Output columns: ``keys`` in order, then the calls. No keys: one global group.

    ``phases`` is None if nobody asked for a strategy; then it is ``AUTO``.
    """

    id: str
    inputs: tuple[str, ...]
    keys: tuple[str, ...]
    aggregates: tuple[AggregateCall, ...]
    state: tuple[StateEntry, ...]
    changelog: tuple[RowKind, ...]
    phases: PhaseSettings | None = None
    cached: CachedSettings | None = None
