"""Nets a batch of changes to a keyed table: the rows to write, and the keys to delete.

Pure: rows in, rows out; knows no database. The changelog of a key is read in one of two ways:

- With ``-U`` and ``-D`` rows that repeat the retracted row, it is a multiset. Equal rows cancel, whatever their order.
  Of the remaining rows, the last added row wins. If only retractions remain, the key is deleted.
- A key with ``+U`` but without ``-U`` comes from a query that omits ``-U``, because the sink upserts. There, each row
  replaces the previous one, so the last row wins.

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
    """The rows to upsert, and the keys (as tuples) to delete. No key is in both, and none occurs twice."""

    upserts: tuple[Row, ...]
    deletes: tuple[Row, ...]


@dataclass(slots=True)
class _KeyChanges:
    """The changes of one key: the weight of each row, with rows in the order in which they were last added."""

    weights: dict[Row, int] = field(default_factory=dict)
    last: Row = ()
    last_kind: int = INSERT
    replaced: bool = False
    taken_back: bool = False


def net(rows: Iterable[Row], kinds: Iterable[int], *, key: Sequence[int]) -> Net:
    """Net a batch of ``rows`` with their row ``kinds``; ``key`` holds the positions of the key columns.

    Rows must be hashable and compare by value, so the caller must replace NaN.
    """
    changes: dict[Row, _KeyChanges] = {}
    pick = itemgetter(*key)
    for row, kind in zip(rows, kinds, strict=True):
        row_key = pick(row) if len(key) > 1 else (pick(row),)
        change = changes.get(row_key)
        if change is None:
            change = changes[row_key] = _KeyChanges()
        if kind in (INSERT, UPDATE_AFTER):
            # pop() moves the row to the end, so that the dict is in the order of addition.
            change.weights[row] = change.weights.pop(row, 0) + 1
            change.replaced |= kind == UPDATE_AFTER
        else:
            change.weights[row] = change.weights.get(row, 0) - 1
            change.taken_back |= kind == UPDATE_BEFORE
        change.last, change.last_kind = row, kind
    upserts: list[Row] = []
    deletes: list[Row] = []
    for row_key, change in changes.items():
        if change.replaced and not change.taken_back:
            remaining = [change.last] if change.last_kind != DELETE else []
            is_deleted = not remaining
        else:
            remaining = [row for row, weight in change.weights.items() if weight > 0]
            is_deleted = any(weight < 0 for weight in change.weights.values())
        if remaining:
            upserts.append(remaining[-1])
        elif is_deleted:
            deletes.append(row_key)
    return Net(upserts=tuple(upserts), deletes=tuple(deletes))
