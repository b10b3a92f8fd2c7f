"""``expand``: every row once for each grouping set."""

from __future__ import annotations

from dataclasses import dataclass

from plans.settings.groups import CachedSettings

__all__ = ["Expand"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Expand:
    """Every input row once for each of ``sets``, with NULL in the ``keys`` that are not in the set; row kinds pass.

    ``group_id`` is a further column, BIGINT NOT NULL, that tells the sets apart: in binary, a digit for each of
    ``keys``, which is 1 where the key is not in the set, as Flink's Expand has it. Stateless.
    """

    id: str
    inputs: tuple[str, ...]
    keys: tuple[str, ...]
    sets: tuple[tuple[str, ...], ...]
    group_id: str
    cached: CachedSettings | None = None
