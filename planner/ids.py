"""Operator ids: derived from the names in the query, so unrelated changes to a script rename no operator.

>>> supply = IdSupply()
>>> supply.take("join", ("o", "Order Lines"), "result"), supply.take("join", ("o", "Order Lines"), "result")
('join_o_order_lines', 'join_o_order_lines_in_result')
"""

from __future__ import annotations

import hashlib
import re

_MAX_LENGTH = 64


class IdSupply:
    """Creates unique ids: the plain name, then the name with its block, then numbers in the order of the query."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._next: dict[tuple[str, str], int] = {}

    def take(self, kind: str, names: tuple[str, ...], block: str) -> str:
        plain = "_".join((kind, *map(_clean, names)))
        inside = f"{plain}_in_{_clean(block)}"
        number = self._next.get((plain, inside), 0)
        while (candidate := _shortened((plain, inside)[number] if number < 2 else f"{inside}_{number}")) in self._taken:
            number += 1
        self._next[plain, inside] = number + 1
        self._taken.add(candidate)
        return candidate


def _clean(name: str) -> str:
    return re.sub(r"[^a-z0-9_]", "_", name.lower())


def _shortened(name: str) -> str:
    if len(name) <= _MAX_LENGTH:
        return name
    return f"{name[: _MAX_LENGTH - 9]}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"
