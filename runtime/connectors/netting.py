"""What a batch of changes does to a keyed table in the end: which rows to write and which keys to delete.

Pure: rows in, rows out; knows no database. A changelog is read in one of two ways, key by key:

- With ``-U`` and ``-D`` rows that repeat what they take back, it is a multiset. Equal rows cancel, wherever they stand;
  of what is left, the last row to be added wins, and if nothing but removals is left, the key goes.
- A key with ``+U`` but no ``-U`` comes from a query that leaves out ``-U`` because the sink upserts. There each row
  replaces the one before, so the last row decides.

>>> net([("a", 1), ("b", 2), ("a", 1)], [INSERT, INSERT, DELETE], key=(0,))
Net(upserts=(('b', 2),), deletes=())
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from hintplan.runtime.operator import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Net:
    """Rows to insert or replace by key, and keys (as tuples) to delete. No key is in both, and none twice."""

    upserts: tuple[Row, ...]
    deletes: tuple[Row, ...]


@dataclass(slots=True)
class _KeyChanges:
    """What happened to one key: the weight of each row, rows in the order in which they were last added."""

    weights: dict[Row, int] = field(default_factory=dict)
    last: Row = ()
    last_kind: int = INSERT
    replaced: bool = False
    taken_back: bool = False


def net(rows: Iterable[Row], kinds: Iterable[int], *, key: Sequence[int]) -> Net:
    """Net a batch of ``rows`` with their row ``kinds``; ``key`` holds the positions of the key columns.

    Rows must be hashable and compare by value, so NaN must have been replaced.
    """
    changes: dict[Row, _KeyChanges] = {}
    pick = itemgetter(*key)
    for row, kind in zip(rows, kinds, strict=True):
        found = pick(row) if len(key) > 1 else (pick(row),)
        change = changes.get(found)
        if change is None:
            change = changes[found] = _KeyChanges()
        if kind in (INSERT, UPDATE_AFTER):
            # Taking the row out first makes it the newest, so that the order of the dict is the order of addition.
            change.weights[row] = change.weights.pop(row, 0) + 1
            change.replaced |= kind == UPDATE_AFTER
        else:
            change.weights[row] = change.weights.get(row, 0) - 1
            change.taken_back |= kind == UPDATE_BEFORE
        change.last, change.last_kind = row, kind
    upserts: list[Row] = []
    deletes: list[Row] = []
    for found, change in changes.items():
        if change.replaced and not change.taken_back:
            left = [change.last] if change.last_kind != DELETE else []
            gone = not left
        else:
            left = [row for row, weight in change.weights.items() if weight > 0]
            gone = any(weight < 0 for weight in change.weights.values())
        if left:
            upserts.append(left[-1])
        elif gone:
            deletes.append(found)
    return Net(upserts=tuple(upserts), deletes=tuple(deletes))
