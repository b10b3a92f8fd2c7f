"""``correlate``: calls a function of the user's for every row (FLIP-498)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from plans.operators.output import JoinColumn
from plans.settings.groups import CachedSettings, CallRetry, CallSettings

__all__ = ["Argument", "Correlate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """What a function is called with: an input column, or a literal in Spark SQL, such as ``'$'``; exactly one is set.

    A column has the declared type of the argument; a literal is cast to it.
    """

    column: str | None = None
    constant: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlate:
    """Calls ``function`` for every input row and joins the row with what the call returns; row kinds pass through.

    A ``left`` correlate keeps a row whose call returned nothing, padded with NULL; a scalar function is always called
    by an ``inner`` one, and returns one row. ``async_`` and ``retry`` are None for a synchronous function.
    """

    id: str
    inputs: tuple[str, ...]
    function: str
    join_type: Literal["inner", "left"]
    arguments: tuple[Argument, ...]
    output: tuple[JoinColumn, ...]
    async_: CallSettings | None
    retry: CallRetry | None
    cached: CachedSettings | None = None
