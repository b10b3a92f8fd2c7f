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


def afresh(groups: Int64s, weights: Int64s, start: Int64s) -> Mask:
    """Mark the rows before which their group has lost all rows that it had.

    >>> afresh(np.array([0, 0, 0, 1]), np.array([1, -1, 1, 1]), np.array([0, 0])).tolist()
    [False, False, True, False]
    """
    before = start[groups] + running(groups, weights) - weights
    again: Mask = (before == 0) & (running(groups, np.ones(len(groups), np.int64)) > 1)
    return again


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
