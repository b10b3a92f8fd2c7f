"""The effect of a changelog row on its table: Flink's ``RowKind``.

>>> merged([("+I",), ("+I", "-D")])
('+I', '-D')
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

RowKind = Literal["+I", "-U", "+U", "-D"]
RowKinds = tuple[RowKind, ...]

ALL_KINDS: RowKinds = ("+I", "-U", "+U", "-D")
UPSERT_KINDS: RowKinds = ("+I", "+U", "-D")
INSERT_ONLY: RowKinds = ("+I",)


def merged(kinds: Iterable[RowKinds]) -> RowKinds:
    """Return all kinds that occur, in the order +I, -U, +U, -D."""
    occurring = {kind for group in kinds for kind in group}
    return tuple(kind for kind in ALL_KINDS if kind in occurring)
