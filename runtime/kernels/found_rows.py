"""The join of the rows of a batch with the rows that a lookup or a function call returned for each of them.

The returned rows are in one table, which a single ``take`` joins. Output rows keep the order of the input. A LEFT join
pads an input row without returned rows, or without one that satisfies the conditions; an INNER join drops it. A row
kind is an input column like any other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from hintplan.runtime.kernels.pairs import JoinCondition
from hintplan.runtime.state.identity import Mask
from hintplan.runtime.state.layout import Int64s

ABSENT = -1
"""The ``count`` of a key without an answer; a count of 0 means that there is no row for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedRows:
    """The rows of ``table`` that belong to each of some keys or calls: ``count`` rows, beginning at ``start``."""

    table: pa.Table
    start: Int64s
    count: Int64s


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedRows:
    """The output of a join of a batch with returned rows.

    ``output`` fields come from (side, column) pairs in ``origins``. ``conditions`` apply to pairs of an input row and a
    returned row, before padding.

    If ``gathered`` is set, each input row makes one output row. A last column of that name has a list of all returned
    rows; the reader of the list decides which rows to pad.
    """

    padded: bool
    conditions: tuple[JoinCondition, ...]
    output: pa.Schema
    origins: tuple[tuple[Literal["left", "right"], str], ...]
    gathered: str | None = None

    def join(self, table: pa.Table, codes: Int64s, found: KeyedRows) -> pa.Table:
        """Return the output rows of a batch: ``codes`` has each row's entry in ``found``, or -1 for none."""
        # Code -1 indexes the appended last entry, which has no rows.
        count = np.append(found.count, np.int64(0))[codes]
        start = np.append(found.start, np.int64(0))[codes]
        if self.gathered is not None:
            columns = [
                table[name].cast(field.type) for field, (_, name) in zip(self.output, self.origins, strict=False)
            ]
            return pa.table([*columns, _lists(found.table, start, count)], schema=self.output)
        left, right = _pairs(start, count)
        for condition in self.conditions:
            of_left, of_right = _taken(table, left, condition.left), _taken(found.table, right, condition.right)
            holds = condition.holds(of_left, of_right, len(left))
            left, right = left[holds], right[holds]
        absent = None
        if self.padded:
            left, right, absent = _padded(left, right, len(count))
        right_rows = pa.array(right, mask=absent)
        identity = len(left) == table.num_rows and bool((left == np.arange(len(left))).all())
        columns = []
        for field, (side, name) in zip(self.output, self.origins, strict=True):
            if side == "left":
                column = table[name] if identity else table[name].take(left)
            else:
                column = found.table[name].take(right_rows)
            columns.append(column if column.type == field.type else column.cast(field.type))
        return pa.table(columns, schema=self.output)


def ranges(start: Int64s, count: Int64s) -> Int64s:
    """Return all of ``start[i] .. start[i] + count[i] - 1``, one range after the other."""
    if len(count) and int(count.min()) == 1 and int(count.max()) == 1:
        return start
    ends = np.cumsum(count)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total, dtype=np.int64) - np.repeat(ends - count - start, count)


def _lists(table: pa.Table, start: Int64s, count: Int64s) -> pa.Array:
    """Return, for each range of ``start`` and ``count``, the rows of ``table`` in it as one list of structs."""
    rows = table.take(pa.array(ranges(start, count)))
    structs = pa.StructArray.from_arrays([c.combine_chunks() for c in rows.columns], fields=list(table.schema))
    return pa.ListArray.from_arrays(pa.array(np.append(0, np.cumsum(count)), pa.int32()), structs)


def _pairs(start: Int64s, count: Int64s) -> tuple[Int64s, Int64s]:
    rows = np.arange(len(count))
    if len(count) and int(count.max()) <= 1:
        left = np.flatnonzero(count)
        return left, start[left]
    return np.repeat(rows, count), ranges(start, count)


def _padded(left: Int64s, right: Int64s, rows: int) -> tuple[Int64s, Int64s, Mask | None]:
    alone = np.ones(rows, np.bool_)
    alone[left] = False
    lonely = np.flatnonzero(alone)
    if not len(lonely):
        return left, right, None
    both = np.concatenate((left, lonely))
    order = np.argsort(both, kind="stable")
    absent = np.concatenate((np.zeros(len(left), np.bool_), np.ones(len(lonely), np.bool_)))[order]
    return both[order], np.concatenate((right, np.zeros(len(lonely), np.int64)))[order], absent


def _taken(table: pa.Table, rows: Int64s, names: tuple[str, ...]) -> pa.Table:
    taken = table.select(list(names)).take(rows)
    return taken if names else pa.table({"__row": pa.nulls(len(rows))})
