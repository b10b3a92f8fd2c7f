"""``lookup-join``: rows enriched with what a table says of their keys at that moment (FLIP-204, FLIP-221, FLIP-234)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from plans.operators.output import JoinColumn
from plans.settings.groups import AsyncSettings, CachedSettings, CacheSettings, RetrySettings

__all__ = ["LookupJoin", "LookupKey"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupKey:
    """One equality by which a lookup finds rows: ``column`` of the dimension equals an input column or a constant.

    Exactly one of ``left`` and ``constant`` is set; ``constant`` is a literal in Spark SQL, such as ``'EUR'``.
    """

    column: str
    left: str | None = None
    constant: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupJoin:
    """Looks every input row up in ``table`` by ``keys`` at the moment it is processed; row kinds pass through.

    ``columns`` are fetched from the table. ``pre_filter`` (over the input) keeps rows of a left join from being looked
    up; ``filter`` (over ``columns``) and ``condition`` (over ``l.column`` and ``r.column``) drop what was found.
    """

    id: str
    inputs: tuple[str, ...]
    table: str
    join_type: Literal["inner", "left"]
    keys: tuple[LookupKey, ...]
    columns: tuple[str, ...]
    pre_filter: str | None
    filter: str | None
    condition: str | None
    output: tuple[JoinColumn, ...]
    async_: AsyncSettings
    retry: RetrySettings | None
    cache: CacheSettings
    cached: CachedSettings | None = None
