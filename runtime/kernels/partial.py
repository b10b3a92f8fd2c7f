"""Partial aggregation: rows of a micro-batch folded per key before the shuffle, in the form that the aggregate reads.

A partial row has the keys, the contribution of its rows to each accumulator, their weight (inserts minus retractions)
and their number.

Rows may be summed up only if the result does not depend on how many rows the group had before. It does depend on this
for a retraction that takes the count below all earlier levels in its piece of the batch. Only the state shows whether
there is a row to retract, and whether the group is empty afterwards. Such rows stay single. The rows between two of
them become a row of weight 0 and a row with the others
(:func:`~hintplan.runtime.kernels.changelog.summable_pieces`). So a group becomes three rows, no matter how often it is
updated.

Rows with large amounts stay single too (:mod:`hintplan.runtime.kernels.in_steps`). A user-defined aggregate function is
summed up only over insert-only input. This module knows no state.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.runtime.kernels.accumulators import Accumulator, contribution, folded_anew, summed
from hintplan.runtime.kernels.changelog import summable_pieces, weights_of
from hintplan.runtime.kernels.in_steps import are_large, has_range
from hintplan.runtime.kernels.slices import Slices, numbered_by
from hintplan.runtime.operator import hash_column
from hintplan.runtime.state.identity import Mask, hashed_groups, without_chunks
from hintplan.runtime.state.layout import Int64s

WEIGHT, ROWS = "__weight", "__rows"

_WORTH = 4
"""The rows per key from which summing up costs less than it saves; measured by benchmarks/phases.py."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialSums:
    """The partial aggregation of ``accumulators`` by ``keys`` over ``columns``.

    If ``required``, rows are always summed up; else only if their number falls to a quarter or less. ``slices`` adds
    the slice of each row to ``columns``, for a window aggregate.
    """

    columns: pa.Schema
    changelog: bool
    keys: tuple[str, ...]
    accumulators: tuple[Accumulator, ...]
    required: bool
    slices: Slices | None = None

    @property
    def schema(self) -> pa.Schema:
        """The schema of partial rows."""
        keys = [self.columns.field(key) for key in self.keys]
        sums = [pa.field(accumulator.name, accumulator.type) for accumulator in self.accumulators]
        numbers = [pa.field(name, pa.int64()) for name in (WEIGHT, ROWS, hash_column(0))]
        return pa.schema([*keys, *sums, *numbers])

    @property
    def by_hash(self) -> bool:
        """True without slices. With slices, rows come in order of time and have few groups, so their values tell them
        apart faster than a sort of their hashes.
        """
        return self.slices is None or self.slices.are_ends

    def lift(self, rows: pa.Table) -> pa.Table:
        """Return each row of a delta as a partial row of its own."""
        return self._partial(self._sliced(rows), weights_of(rows))

    def sum_up(self, rows: pa.Table) -> pa.Table | None:
        """Sum up the rows of a delta into few partial rows; None if that is not worth it."""
        batch = self._sliced(rows).combine_chunks()
        groups, size = self._groups(batch)
        if not self.required and _WORTH * size > batch.num_rows:
            return None
        weights = weights_of(batch)
        large = self._are_large(batch, weights, groups, size)
        if large.any() or (weights is not None and weights.min(initial=1) < 0):
            number = summable_pieces(groups, np.ones(len(groups), np.int64) if weights is None else weights)
            number = np.where(large[groups], np.arange(len(groups)), number)
            _, groups = np.unique(groups * (int(number.max()) + 1) + number, return_inverse=True)
        return self._summed(batch, weights, groups)

    def _groups(self, batch: pa.Table) -> tuple[Int64s, int]:
        """Return the number of the group of each row, and the number of groups."""
        if self.slices is not None:
            return numbered_by(batch, self.keys)
        columns = [without_chunks(batch[name]) for name in self.keys]
        groups, first = hashed_groups(columns, batch[hash_column(0)].to_numpy())
        return groups, len(first)

    def _sliced(self, rows: pa.Table) -> pa.Table:
        return rows if self.slices is None else self.slices.added_to(rows)

    def _are_large(self, batch: pa.Table, weights: Int64s | None, groups: Int64s, size: int) -> Mask:
        sums = [a for a in self.accumulators if has_range(a)]
        return are_large(sums, groups, [contribution(a, batch, weights) for a in sums], size)

    def _partial(self, rows: pa.Table, weights: Int64s | None) -> pa.Table:
        ones = np.ones(rows.num_rows, np.int64)
        batch, alone = rows.combine_chunks(), np.arange(rows.num_rows)
        parts = [
            folded_anew(a, batch, alone) if a.user is not None else contribution(a, batch, weights)
            for a in self.accumulators
        ]
        return self._table(rows, parts, ones if weights is None else weights, ones)

    def _summed(self, rows: pa.Table, weights: Int64s | None, groups: Int64s) -> pa.Table:
        size = int(groups.max(initial=-1)) + 1
        first = np.empty(size, np.int64)
        first[groups[::-1]] = np.arange(len(groups) - 1, -1, -1)
        batch = rows.combine_chunks()
        sums = [
            folded_anew(a, batch, groups)
            if a.user is not None
            else summed(groups, [a], [contribution(a, batch, weights)])[0]
            for a in self.accumulators
        ]
        number = np.bincount(groups, minlength=size).astype(np.int64)
        weight = number if weights is None else np.bincount(groups, weights, minlength=size).astype(np.int64)
        return self._table(batch.take(pa.array(first)), sums, weight, number)

    def _table(self, rows: pa.Table, sums: list[pa.Array], weight: Int64s, number: Int64s) -> pa.Table:
        columns = [*(rows[key] for key in self.keys), *sums, weight, number]
        if hash_column(0) in rows.column_names:
            columns.append(rows[hash_column(0)])
        schema = pa.schema(list(self.schema)[: len(columns)])
        return pa.table(columns, names=schema.names).cast(schema)


def rows_behind(rows: pa.Table | None) -> int:
    """Return the number of input rows that a delta represents."""
    if rows is None:
        return 0
    return int(pc.sum(rows[ROWS]).as_py() or 0) if ROWS in rows.column_names else rows.num_rows
