"""Joins the rows of one Arrow batch with what their keys found: keys out, one ``take`` in, padding, row kinds kept.

A null key, or a row that its pre-filter excludes, is not looked up. A LEFT join pads what found nothing, or nothing
that satisfies its condition; an INNER join drops it. Rows stay in the order of the input. Knows no cache and no source.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from runtime.kernels.pairs import JoinCondition
from runtime.lookup.api import Key
from runtime.lookup.rows import ABSENT, KeyedRows, distinct_keys, ranges
from runtime.state.identity import Mask
from runtime.state.layout import Int64s

__all__ = ["AskedRows", "LookupRows"]

NOT_ASKED = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedRows:
    """A batch with its distinct keys; ``codes`` says which key each row asks for, ``NOT_ASKED`` if none."""

    table: pa.Table
    keys: list[Key]
    codes: Int64s

    @property
    def asking(self) -> int:
        """How many rows ask for a key."""
        return int(np.count_nonzero(self.codes != NOT_ASKED))

    def split(self, known: KeyedRows) -> tuple[AskedRows, AskedRows]:
        """The rows that ask for nothing or for a key that is known, and the others."""
        ready = np.append(known.count, np.int64(0))[self.codes] != ABSENT
        parts = (
            AskedRows(table=self.table.filter(pa.array(rows)), keys=self.keys, codes=self.codes[rows])
            for rows in (ready, ~ready)
        )
        return next(parts), next(parts)

    def without(self, rows: Int64s) -> AskedRows:
        """All rows but ``rows``."""
        if not len(rows):
            return self
        kept = np.ones(len(self.codes), np.bool_)
        kept[rows] = False
        return AskedRows(table=self.table.filter(pa.array(kept)), keys=self.keys, codes=self.codes[kept])

    def missed(self, found: KeyedRows) -> Int64s:
        """The rows that asked for a key without rows."""
        count = np.append(found.count, np.int64(1))
        return np.flatnonzero(count[self.codes] == 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupRows:
    """How one lookup operator reads its input and writes its output.

    ``keys`` are input columns in the order of the source's keys; ``asks`` is the boolean input column that says which
    rows are looked up, if not all are. ``output`` fields come from (side, column) pairs in ``origins``. ``conditions``
    apply to pairs of input row and found row, before padding.
    """

    keys: tuple[str, ...]
    asks: str | None
    found: pa.Schema
    padded: bool
    conditions: tuple[JoinCondition, ...]
    output: pa.Schema
    origins: tuple[tuple[Literal["left", "right"], str], ...]

    def ask(self, table: pa.Table) -> AskedRows:
        """The distinct keys of a batch."""
        columns = [table[name].combine_chunks() for name in self.keys]
        asks = np.ones(table.num_rows, np.bool_)
        for column in [*columns, *([table[self.asks].combine_chunks()] if self.asks else [])]:
            if column.null_count:
                asks &= np.asarray(pc.is_valid(column))
        if self.asks:
            asks &= np.asarray(pc.fill_null(table[self.asks].combine_chunks(), False))
        if asks.all():
            codes, keys = distinct_keys(columns)
            return AskedRows(table=table, keys=keys, codes=codes)
        codes = np.full(table.num_rows, NOT_ASKED, np.int64)
        places = np.flatnonzero(asks)
        codes[places], keys = distinct_keys([column.take(pa.array(places)) for column in columns])
        return AskedRows(table=table, keys=keys, codes=codes)

    def join(self, asked: AskedRows, found: KeyedRows) -> pa.Table:
        """The output rows of a batch, given the rows of each of its keys."""
        # The last entry stands for rows that asked for nothing: codes of NOT_ASKED index it.
        count = np.append(found.count, np.int64(0))[asked.codes]
        start = np.append(found.start, np.int64(0))[asked.codes]
        left, right = _pairs(start, count)
        for condition in self.conditions:
            holds = condition.holds(
                _taken(asked.table, left, condition.left), _taken(found.table, right, condition.right)
            )
            left, right = left[holds], right[holds]
        absent = None
        if self.padded:
            left, right, absent = _padded(left, right, len(count))
        right_rows = pa.array(right, mask=absent)
        identity = len(left) == asked.table.num_rows and bool((left == np.arange(len(left))).all())
        columns = []
        for field, (side, name) in zip(self.output, self.origins, strict=True):
            if side == "left":
                column = asked.table[name] if identity else asked.table[name].take(left)
            else:
                column = found.table[name].take(right_rows)
            columns.append(column if column.type == field.type else column.cast(field.type))
        return pa.table(columns, schema=self.output)


def _pairs(start: Int64s, count: Int64s) -> tuple[Int64s, Int64s]:
    rows = np.arange(len(count))
    if len(count) and int(count.max()) <= 1:
        left = np.flatnonzero(count)
        return left, start[left]
    return np.repeat(rows, count), ranges(start, count)


def _padded(left: Int64s, right: Int64s, rows: int) -> tuple[Int64s, Int64s, Mask | None]:
    alone = np.ones(rows, np.bool_)
    alone[left] = False
    lonely = np.flatnonzero(alone)
    if not len(lonely):
        return left, right, None
    both = np.concatenate((left, lonely))
    order = np.argsort(both, kind="stable")
    absent = np.concatenate((np.zeros(len(left), np.bool_), np.ones(len(lonely), np.bool_)))[order]
    return both[order], np.concatenate((right, np.zeros(len(lonely), np.int64)))[order], absent


def _taken(table: pa.Table, rows: Int64s, names: tuple[str, ...]) -> pa.Table:
    taken = table.select(list(names)).take(rows)
    return taken if names else pa.table({"__row": pa.nulls(len(rows))})
