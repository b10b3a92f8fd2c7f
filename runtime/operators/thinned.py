"""Rows that are left out before they are shuffled, because of others of their key in the same task.

What an operator leaves out of a whole batch, it may leave out of any piece of it: of what is left of the pieces it
chooses as of the batch. So each task may do so, and the rows that it sends are as they were.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from hintplan.runtime.operator import hash_column

_WORTH_IT = 0.8
"""The share of rows left from which on a task lets all of its rows be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thinned:
    """Rows with ``columns``, of which ``chosen`` gives those that may count; a Presum."""

    columns: pa.Schema
    chosen: Callable[[pa.Table], pa.Table]

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([*self.columns, pa.field(hash_column(0), pa.int64())])

    def sum_up(self, rows: pa.Table) -> pa.Table | None:
        found = self.chosen(rows.combine_chunks())
        return found if found.num_rows <= _WORTH_IT * rows.num_rows else None

    def lift(self, rows: pa.Table) -> pa.Table:
        return rows
