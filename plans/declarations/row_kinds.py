"""What a row of a changelog does to the table that it belongs to: Flink's ``RowKind``.

>>> merged([("+I",), ("+I", "-D")])
('+I', '-D')
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

RowKind = Literal["+I", "-U", "+U", "-D"]
RowKinds = tuple[RowKind, ...]

ALL_KINDS: RowKinds = ("+I", "-U", "+U", "-D")
INSERT_ONLY: RowKinds = ("+I",)


def merged(kinds: Iterable[RowKinds]) -> RowKinds:
    """All kinds that occur, in the order +I, -U, +U, -D."""
    found = {kind for group in kinds for kind in group}
    return tuple(kind for kind in ALL_KINDS if kind in found)
