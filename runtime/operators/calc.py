"""A calc over rows in Arrow: it selects, renames and computes columns, and filters rows. Knows no SQL expressions.

Executors run it, so it loads no parser. :mod:`hintplan.runtime.builders.calc` decides which calcs run here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hintplan.runtime.kernels.pairs import JoinCondition

ArrowValue = Callable[[pa.Table], pa.Array | pa.ChunkedArray]
"""A function that computes a column; picklable."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """An input column, unchanged."""

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
    """A calc over tables: it keeps the rows for which ``condition`` holds, and computes ``columns``, by output name.

    ``conjuncts`` are the parts of the condition between its top-level ANDs. ``at_once`` is the number of rows to
    compute at a time; None computes all rows at once.
    """

    columns: tuple[tuple[str, ArrowValue], ...]
    condition: JoinCondition | None
    conjuncts: tuple[JoinCondition, ...] = ()
    at_once: int | None = None

    def __call__(self, rows: pa.Table) -> pa.Table:
        if self.at_once is None:
            return self._of(rows)
        rows = rows.combine_chunks()  # functions share what they compute from one array
        if rows.num_rows <= self.at_once:
            return self._of(rows)
        starts = range(0, rows.num_rows, self.at_once)
        return pa.concat_tables([self._of(rows.slice(start, self.at_once)) for start in starts]).combine_chunks()

    def drops(self, rows: pa.Table, unknown: Sequence[Set[str]]) -> npt.NDArray[np.bool_]:
        """Return which rows the condition drops, whatever the values of the columns are that are ``unknown`` in them.

        A conjunct counts only in rows in which all of its columns are known.
        """
        dropped = np.zeros(rows.num_rows, np.bool_)
        for conjunct in self.conjuncts:
            is_known = np.array([unknown[row].isdisjoint(conjunct.right) for row in range(rows.num_rows)], np.bool_)
            dropped |= is_known & ~conjunct.holds(rows.select([]), rows, rows.num_rows)
        return dropped

    def _of(self, rows: pa.Table) -> pa.Table:
        if self.condition is not None:
            rows = rows.filter(pa.array(self.condition.holds(rows.select([]), rows, rows.num_rows)))
        return pa.table([value(rows) for _, value in self.columns], [name for name, _ in self.columns])
