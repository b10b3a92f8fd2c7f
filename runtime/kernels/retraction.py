"""Retractions that find nothing to retract.

A count never falls below zero: a -U or -D for a row never inserted, or whose state has expired, is dropped, and what
follows it counts from zero again, as Flink's group aggregate does record by record. Vectorised over a micro-batch.

>>> import numpy as np
>>> overdrawn(np.array([0, 0, 1]), np.array([-1, 1, -1]), np.array([0, 1])).tolist()
[True, False, False]
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from hintplan.runtime.operator import INSERT, KIND, UPDATE_AFTER
from hintplan.runtime.state.identity import Mask
from hintplan.runtime.state.layout import Int64s


def weights_of(rows: pa.Table) -> Int64s | None:
    """+1 for each row that is inserted, -1 for each that is retracted; None if the rows have no kinds."""
    if KIND not in rows.column_names:
        return None
    kinds = rows[KIND].to_numpy()
    return np.where((kinds == INSERT) | (kinds == UPDATE_AFTER), np.int64(1), np.int64(-1))


def overdrawn(groups: Int64s, weights: Int64s, start: Int64s) -> Mask:
    """Mark the rows that would take their group's count below zero.

    ``groups`` and ``weights`` (+1 or -1, or what rows summed up weigh together, which is not negative) are per row in
    row order; ``start`` is each group's count before them.
    """
    result = np.zeros(len(groups), np.bool_)
    taken = np.bincount(groups[weights < 0], minlength=len(start))
    # Most groups had before what is taken from them, in whatever order.
    doubtful = np.flatnonzero((taken > start)[groups])
    if doubtful.size:
        result[doubtful] = _overdrawn(groups[doubtful], weights[doubtful], start)
    return result


def running(groups: Int64s, numbers: Int64s) -> Int64s:
    """For each row, the sum of the ``numbers`` of the rows of its group up to itself."""
    order = np.argsort(groups, kind="stable")
    total = np.cumsum(numbers[order])
    result = np.empty(len(groups), np.int64)
    if len(order):
        first = np.concatenate(([True], groups[order][1:] != groups[order][:-1]))
        result[order] = total - (total - numbers[order])[first][np.cumsum(first) - 1]
    return result


def last_emptied(groups: Int64s, weights: Int64s, start: Int64s) -> Int64s:
    """For each group, the last row behind which the group has no rows left; -1 if it always has some.

    No row is :func:`overdrawn`. A row that weighs 0 stands for rows of which the group had no more behind them than
    before them.

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
        last[groups[empty]] = empty  # of several rows of a group, the last one stays
    return last


def pieces(groups: Int64s, weights: Int64s) -> Int64s:
    """Number the rows of each group, so that rows with one number can be summed up whatever the group had before.

    Numbers go up with the rows. A retraction that goes below all before it may empty the group, or may find nothing to
    retract: it has a number of its own. So have the rows behind it up to the last one that brings the group down to the
    same level, behind which the group is empty if it was before them; and the rows after that one, which are then all
    that the group has.

    >>> pieces(np.zeros(7, np.int64), np.array([1, -1, -1, 1, -1, 1, 1])).tolist()
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
