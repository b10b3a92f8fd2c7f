"""Rows of a batch joined with the rows that were found for each of them: padding, conditions, one ``take``.

What found them, a lookup or a call of a function, has them in one table. Rows stay in the order of the input. A LEFT
join pads what found nothing, or nothing that satisfies its conditions; an INNER join drops it. Row kinds are columns of
the input like others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from hintplan.runtime.kernels.pairs import JoinCondition
from hintplan.runtime.state.identity import Mask
from hintplan.runtime.state.layout import Int64s


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedRows:
    """For each of some keys or calls, which rows of ``table`` it found: ``count`` of them, from ``start`` on."""

    table: pa.Table
    start: Int64s
    count: Int64s


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedRows:
    """How rows of a batch and found rows make output rows.

    ``output`` fields come from (side, column) pairs in ``origins``. ``conditions`` apply to pairs of input row and
    found row, before padding. If ``gathered``, a column of that name follows, with a list of all that a row found, and
    each row of the batch is one row of the output: what is padded is decided by whoever reads the list.
    """

    padded: bool
    conditions: tuple[JoinCondition, ...]
    output: pa.Schema
    origins: tuple[tuple[Literal["left", "right"], str], ...]
    gathered: str | None = None

    def join(self, table: pa.Table, codes: Int64s, found: KeyedRows) -> pa.Table:
        """The output rows of a batch: ``codes`` says which entry of ``found`` is a row's, -1 that none is."""
        # The last entry stands for rows without one: -1 indexes it.
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
    """All of ``start[i] .. start[i] + count[i] - 1``, one range after the other."""
    if len(count) and int(count.min()) == 1 and int(count.max()) == 1:
        return start
    ends = np.cumsum(count)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total, dtype=np.int64) - np.repeat(ends - count - start, count)


def _lists(table: pa.Table, start: Int64s, count: Int64s) -> pa.Array:
    """For each range of ``start`` and ``count``, the rows of ``table`` in it as one list of structs."""
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
