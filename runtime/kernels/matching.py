"""The equi-join of two tables: the pairs of rows whose keys are equal, in portions.

NULL never matches. Rows are compared by hash first, then on the real columns.

>>> left, right = pa.table({"k": [1, None, 2]}), pa.table({"k": [2, 2, None]})
>>> matching = matched_groups(left, right, (("k",), ("k",)), (np.array([1, 0, 2]), np.array([2, 2, 0])))
>>> [[part.tolist() for part in pair] for pair in matching.pairs(1000)]
[[[2, 2], [0, 1]]]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.runtime.kernels.found_rows import ranges
from hintplan.runtime.state.identity import Mask, hashed_groups, without_chunks
from hintplan.runtime.state.layout import Int64s


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching:
    """The right rows that match each left row: ``count`` of them, from ``start`` on in ``right``."""

    start: Int64s
    count: Int64s
    right: Int64s

    def pairs(self, limit: int) -> Iterator[tuple[Int64s, Int64s]]:
        """Yield all pairs of a left and a right row by place, in the order of the left rows.

        A portion has about ``limit`` pairs; all pairs of a left row are in one portion.
        """
        left = np.flatnonzero(self.count)
        total = np.cumsum(self.count[left])
        begin = 0
        while begin < len(left):
            base = total[begin - 1] if begin else 0
            end = max(begin + 1, int(np.searchsorted(total, base + limit, "right")))
            rows = left[begin:end]
            counts = self.count[rows]
            yield np.repeat(rows, counts), self.right[ranges(self.start[rows], counts)]
            begin = end


def matched_groups(
    left: pa.Table,
    right: pa.Table,
    keys: tuple[tuple[str, ...], tuple[str, ...]],
    hashes: tuple[Int64s, Int64s],
) -> Matching:
    """Match the rows of ``left`` and ``right`` whose ``keys`` are equal; equal keys have equal ``hashes``."""
    left_groups, right_groups = key_groups(left, right, keys, hashes)
    valid = without_null(right, keys[1])
    right_rows = np.arange(right.num_rows) if valid is None else np.flatnonzero(valid)
    right_groups = right_groups[right_rows]
    if (right_groups[1:] < right_groups[:-1]).any():
        order = np.argsort(right_groups, kind="stable")
        right_rows, right_groups = right_rows[order], right_groups[order]
    counts = np.bincount(right_groups, minlength=max(left_groups.max(initial=-1), right_groups.max(initial=-1)) + 1)
    count = counts[left_groups]
    valid = without_null(left, keys[0])
    if valid is not None:
        count = np.where(valid, count, 0)
    return Matching(start=(np.cumsum(counts) - counts)[left_groups], count=count, right=right_rows)


def key_groups(
    left: pa.Table,
    right: pa.Table,
    keys: tuple[tuple[str, ...], tuple[str, ...]],
    hashes: tuple[Int64s, Int64s],
) -> tuple[Int64s, Int64s]:
    """Return a number for each row of ``left`` and ``right``, which is the same for rows whose ``keys`` are equal.

    NULL equals NULL.
    """
    columns = [
        pa.concat_arrays([without_chunks(left[mine]), without_chunks(right[theirs]).cast(left[mine].type)])
        for mine, theirs in zip(*keys, strict=True)
    ]
    groups, _ = hashed_groups(columns, np.concatenate(hashes))
    return groups[: left.num_rows], groups[left.num_rows :]


def without_null(rows: pa.Table, names: tuple[str, ...]) -> Mask | None:
    """Return a mask of the rows without NULL in these columns; None for all rows."""
    valid: Mask | None = None
    for name in names:
        if rows[name].null_count:
            here = np.asarray(pc.is_valid(rows[name]))
            valid = here if valid is None else valid & here
    return valid
