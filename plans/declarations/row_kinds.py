"""What a row of a changelog does to the table that it belongs to (Flink's ``RowKind``)."""

from __future__ import annotations

from typing import Literal

__all__ = ["RowKind"]

RowKind = Literal["+I", "-U", "+U", "-D"]
