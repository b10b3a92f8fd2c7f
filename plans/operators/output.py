"""An output column of an operator with two sides: a join, a lookup join, or a call of a function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["JoinColumn", "JoinType", "Side"]

JoinType = Literal["inner", "left", "right", "full", "semi", "anti"]
Side = Literal["left", "right"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinColumn:
    """An output column of a join: ``column`` of the input on ``side``, under ``name``."""

    name: str
    type: str
    side: Side
    column: str
