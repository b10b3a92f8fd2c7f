"""A calc over rows in Arrow: columns are chosen, named and computed, and rows filtered. Knows no expressions of SQL.

Executors run it, so it loads no parser; :mod:`hintplan.runtime.build.calc` decides which calcs are done here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from hintplan.runtime.kernels.pairs import JoinCondition

ArrowValue = Callable[[pa.Table], pa.Array | pa.ChunkedArray]
"""What computes a column; picklable."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A column as it is."""

    source: str

    def __call__(self, rows: pa.Table) -> pa.ChunkedArray:
        return rows[self.source]


@dataclass(frozen=True, slots=True)
class Day:
    """The day of a TIMESTAMP as text, such as ``2024-02-29``."""

    source: str

    def __call__(self, rows: pa.Table) -> pa.ChunkedArray:
        return rows[self.source].cast(pa.date32()).cast(pa.string())


@dataclass(frozen=True, slots=True)
class Computed:
    """The value of an expression."""

    value: JoinCondition

    def __call__(self, rows: pa.Table) -> pa.Array:
        return self.value.answers(rows.select([]), rows, rows.num_rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrowCalc:
    """A calc over tables: ``columns`` by the names they get, of rows for which ``condition`` holds.

    ``at_once`` is how many rows it computes at a time, if not all.
    """

    columns: tuple[tuple[str, ArrowValue], ...]
    condition: JoinCondition | None
    at_once: int | None = None

    def __call__(self, rows: pa.Table) -> pa.Table:
        if self.at_once is None or rows.num_rows <= self.at_once:
            return self._of(rows)
        starts = range(0, rows.num_rows, self.at_once)
        return pa.concat_tables([self._of(rows.slice(start, self.at_once)) for start in starts]).combine_chunks()

    def _of(self, rows: pa.Table) -> pa.Table:
        if self.condition is not None:
            rows = rows.filter(pa.array(self.condition.holds(rows.select([]), rows, rows.num_rows)))
        return pa.table([value(rows) for _, value in self.columns], [name for name, _ in self.columns])
