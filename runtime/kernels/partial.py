"""Partial sums: rows of a micro-batch folded per key before they are shuffled, as the aggregate goes on with them.

A partial row has the keys, what the rows behind it add to each accumulator, their weight (inserts minus retractions)
and their number. What is left to the state is right only if it does not matter how many rows a group had before. It
does matter to a retraction that goes below all before it in its piece of the batch: whether there is a row to retract,
and whether the group is empty then, only the state knows. Such rows stay single, and what is between two of them
becomes a row that weighs nothing and one with the rest (:func:`~hintplan.runtime.kernels.retraction.pieces`); so a
group that is updated any number of times becomes three rows. Rows of large amounts stay single
(:mod:`hintplan.runtime.kernels.in_steps`). An aggregate function of the user's is here only where rows are only added.
Knows no state.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hintplan.runtime.kernels.accumulators import Accumulator, contribution, folded_anew, summed
from hintplan.runtime.kernels.in_steps import are_large, has_range
from hintplan.runtime.kernels.retraction import pieces, weights_of
from hintplan.runtime.operator import hash_column
from hintplan.runtime.state.identity import Mask, hashed_groups
from hintplan.runtime.state.layout import Int64s

WEIGHT, ROWS = "__weight", "__rows"

_WORTH = 4
"""How many rows a key must have for the summing up to cost less than what it saves; measured, benchmarks/phases.py."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialSums:
    """How an aggregate of ``accumulators`` by ``keys`` over ``columns`` is summed up beforehand.

    ``required`` does so always; else only rows that become at most a quarter as many are worth it.
    """

    columns: pa.Schema
    changelog: bool
    keys: tuple[str, ...]
    accumulators: tuple[Accumulator, ...]
    required: bool

    @property
    def schema(self) -> pa.Schema:
        """The columns of partial rows."""
        keys = [self.columns.field(key) for key in self.keys]
        sums = [pa.field(accumulator.name, accumulator.type) for accumulator in self.accumulators]
        numbers = [pa.field(name, pa.int64()) for name in (WEIGHT, ROWS, hash_column(0))]
        return pa.schema([*keys, *sums, *numbers])

    def lift(self, rows: pa.Table) -> pa.Table:
        """Each row of a delta as a partial row of its own."""
        return self._partial(rows, weights_of(rows))

    def sum_up(self, rows: pa.Table) -> pa.Table | None:
        """The rows of a delta as few partial rows; None if that is not worth it."""
        batch = rows.combine_chunks()
        groups, first = hashed_groups(
            [batch[name].combine_chunks() for name in self.keys], batch[hash_column(0)].to_numpy()
        )
        if not self.required and _WORTH * len(first) > batch.num_rows:
            return None
        weights = weights_of(batch)
        large = self._are_large(batch, weights, groups, len(first))
        if large.any() or (weights is not None and weights.min(initial=1) < 0):
            number = pieces(groups, np.ones(len(groups), np.int64) if weights is None else weights)
            number = np.where(large[groups], np.arange(len(groups)), number)
            _, groups = np.unique(groups * (int(number.max()) + 1) + number, return_inverse=True)
        return self._summed(batch, weights, groups)

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
        keys = [rows[key] for key in self.keys]
        return pa.table([*keys, *sums, weight, number, rows[hash_column(0)]], names=self.schema.names).cast(self.schema)
