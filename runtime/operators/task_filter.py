"""Rows that a task drops before the shuffle, because other rows of their key in the same task replace them.

The choice of an operator from a whole batch equals its choice from the rows that it would keep of each piece. So each
task may drop rows, and the rows that it sends are unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from hintplan.runtime.operator import hash_column

_WORTH_IT = 0.8
"""If more than this share of rows would be left, a task stops dropping rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFilter:
    """A :class:`Presum` of rows with ``columns``, in which ``chosen`` returns the rows that may count."""

    columns: pa.Schema
    chosen: Callable[[pa.Table], pa.Table]

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([*self.columns, pa.field(hash_column(0), pa.int64())])

    @property
    def by_hash(self) -> bool:
        return True

    def sum_up(self, rows: pa.Table) -> pa.Table | None:
        kept = self.chosen(rows.combine_chunks())
        return kept if kept.num_rows <= _WORTH_IT * rows.num_rows else None

    def lift(self, rows: pa.Table) -> pa.Table:
        return rows
