"""Changelogs in numpy: the weights of their rows, retractions without a row to retract, and the changes of a batch.

A count never falls below zero. A -U or -D is dropped if its row was never inserted, or if its state has expired. The
rows after it count from zero again. Flink's group aggregate does the same record by record; this module is vectorised
over a micro-batch.

>>> import numpy as np
>>> overdrawn(np.array([0, 0, 1]), np.array([-1, 1, -1]), np.array([0, 1])).tolist()
[True, False, False]
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hintplan.runtime.operator import DELETE, INSERT, KIND, UPDATE_AFTER, UPDATE_BEFORE
from hintplan.runtime.state.identity import Mask, equal_columns
from hintplan.runtime.state.layout import Int64s

Kinds: TypeAlias = npt.NDArray[np.int8]


def weights_of(rows: pa.Table) -> Int64s | None:
    """Return +1 for each inserted row and -1 for each retracted row; None if the rows have no kinds."""
    if KIND not in rows.column_names:
        return None
    kinds = rows[KIND].to_numpy()
    return np.where((kinds == INSERT) | (kinds == UPDATE_AFTER), np.int64(1), np.int64(-1))


def overdrawn(groups: Int64s, weights: Int64s, start: Int64s) -> Mask:
    """Mark the rows that would take their group's count below zero.

    ``groups`` and ``weights`` are per row in row order. A weight is +1 or -1, or the sum of several rows, which is not
    negative. ``start`` is each group's count before them.
    """
    result = np.zeros(len(groups), np.bool_)
    taken = np.bincount(groups[weights < 0], minlength=len(start))
    # Most groups had enough rows before the batch, so the order of their rows does not matter.
    doubtful = np.flatnonzero((taken > start)[groups])
    if doubtful.size:
        result[doubtful] = _overdrawn(groups[doubtful], weights[doubtful], start)
    return result


def running(groups: Int64s, numbers: Int64s) -> Int64s:
    """Return, for each row, the sum of the ``numbers`` of its group up to and including the row."""
    order = np.argsort(groups, kind="stable")
    total = np.cumsum(numbers[order])
    result = np.empty(len(groups), np.int64)
    if len(order):
        first = np.concatenate(([True], groups[order][1:] != groups[order][:-1]))
        result[order] = total - (total - numbers[order])[first][np.cumsum(first) - 1]
    return result


def last_emptied(groups: Int64s, weights: Int64s, start: Int64s) -> Int64s:
    """Return, for each group, the last row that leaves it empty; -1 if no row does.

    No row may be :func:`overdrawn`. A row of weight 0 stands for several rows that leave the group's count as it was.

    >>> last_emptied(np.array([0, 0, 0, 1]), np.array([1, -1, 1, 1]), np.array([0, 0])).tolist()
    [1, -1]
    """
    last = np.full(len(start), -1, np.int64)
    lessens = weights <= 0
    taken = np.bincount(groups[lessens], -weights[lessens], len(start))
    doubtful = (np.bincount(groups[lessens], minlength=len(start)) > 0) & (taken >= start)
    rows = np.flatnonzero(doubtful[groups])
    if rows.size:
        empty = rows[start[groups[rows]] + running(groups[rows], weights[rows]) == 0]
        last[groups[empty]] = empty  # numpy keeps the last row of each group
    return last


def summable_pieces(groups: Int64s, weights: Int64s) -> Int64s:
    """Assign numbers to the rows of each group; rows with one number can be summed up for any previous count.

    Numbers ascend with the rows. A retraction that takes the count below all earlier levels has a number of its own: it
    may empty the group, or find nothing to retract. The rows after it have two numbers:

    - The first is for the rows up to the last one that brings the count back to that level. If the group was empty
      before them, it is empty after them.
    - The second is for the later rows. If the group was empty before them, they are all its rows.

    >>> summable_pieces(np.zeros(7, np.int64), np.array([1, -1, -1, 1, -1, 1, 1])).tolist()
    [1, 1, 3, 4, 4, 5, 5]
    """
    alone = overdrawn(groups, weights, np.zeros(int(groups.max(initial=-1)) + 1, np.int64))
    low = running(groups, alone.astype(np.int64))
    part = groups * (int(low.max(initial=0)) + 1) + low
    rows = np.arange(len(groups))
    at_level = ~alone & (running(groups, weights) + low == 0)
    last = np.full(int(part.max(initial=-1)) + 1, -1, np.int64)
    last[part[at_level]] = rows[at_level]
    number: Int64s = 3 * low + np.where(alone, 0, np.where(rows <= last[part], 1, 2))
    return number


def _overdrawn(groups: Int64s, weights: Int64s, start: Int64s) -> Mask:
    order = np.argsort(groups, kind="stable")
    group, weight = groups[order], weights[order]
    total = np.cumsum(weight)
    first = np.concatenate(([True], group[1:] != group[:-1]))
    before = (total - weight)[first]
    running = total - before[np.cumsum(first) - 1] + start[group]
    # A descending offset per group keeps one group's minimum from reaching into the next.
    offset = group * (int(running.max()) - int(running.min()) + 1)
    lowest = np.minimum.accumulate(running - offset) + offset
    floor = np.concatenate(([0], np.minimum(lowest[:-1], 0)))
    floor[first] = 0
    result = np.empty(len(groups), np.bool_)
    result[order] = (weight < 0) & (running < floor)
    return result


def changelog_between(
    before: pa.Table, after: pa.Table, was: Mask, is_: Mask, *, updates_before: bool, equal_rows: bool
) -> pa.Table:
    """Return the changelog from ``before`` to ``after``; row i exists in them where ``was`` and ``is_`` are true.

    ``updates_before`` adds -U rows, ``equal_rows`` adds updates that change nothing.
    """
    updated = was & is_
    if not equal_rows:
        updated &= ~equal_columns(before, after)
    emitted, kinds = update_kinds(was, is_, updated, updates_before=updates_before)
    size = len(was)
    place = np.column_stack((np.arange(size), np.arange(size, 2 * size))).ravel()[emitted]
    rows = pa.concat_tables([before, after]).combine_chunks().take(place)
    return rows.append_column(pa.field(KIND, pa.int8()), pa.array(kinds[emitted]))


def update_kinds(was: Mask, is_: Mask, updated: Mask, *, updates_before: bool) -> tuple[Mask, Kinds]:
    """Return a mask of the rows of a changelog, and their row kinds: for each i, the row before and the row after.

    Row i exists before where ``was`` is true, and after where ``is_`` is true. Of rows that exist both times, it has
    only the ``updated`` ones. So the -U of an update directly precedes its +U.
    """
    emit_old = (was & ~is_) | (updated & updates_before)
    emit_new = (is_ & ~was) | updated
    emitted = np.column_stack((emit_old, emit_new)).ravel()
    kinds = np.column_stack((np.where(is_, UPDATE_BEFORE, DELETE), np.where(was, UPDATE_AFTER, INSERT))).ravel()
    return emitted, kinds.astype(np.int8)
