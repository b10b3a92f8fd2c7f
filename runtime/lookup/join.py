"""Selection of the rows of an Arrow batch to look up, and of their keys.

:mod:`hintplan.runtime.kernels.found_rows` joins them with the fetched rows. A row with a null key, or one that its
pre-filter excludes, is not looked up. This module knows no cache and no source.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.runtime.kernels.found_rows import ABSENT, JoinedRows, KeyedRows
from hintplan.runtime.lookup.api import Key
from hintplan.runtime.lookup.rows import distinct_keys
from hintplan.runtime.state.identity import Mask
from hintplan.runtime.state.layout import Int64s

NO_LOOKUP = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyBatch:
    """A batch with its distinct keys; ``codes`` has the place of each row's key, or ``NO_LOOKUP`` without a lookup."""

    table: pa.Table
    keys: list[Key]
    codes: Int64s

    @property
    def lookups(self) -> int:
        """The number of rows that are looked up."""
        return int(np.count_nonzero(self.codes != NO_LOOKUP))

    def split(self, known: KeyedRows) -> tuple[KeyBatch, KeyBatch]:
        """Return the rows that need no fetch, because their key is ``known`` or they have none, and the other rows."""
        ready = np.append(known.count, np.int64(0))[self.codes] != ABSENT
        parts = (
            KeyBatch(table=self.table.filter(pa.array(rows)), keys=self.keys, codes=self.codes[rows])
            for rows in (ready, ~ready)
        )
        return next(parts), next(parts)

    def without(self, rows: Int64s) -> KeyBatch:
        """Return the batch without ``rows``."""
        if not len(rows):
            return self
        kept = np.ones(len(self.codes), np.bool_)
        kept[rows] = False
        return KeyBatch(table=self.table.filter(pa.array(kept)), keys=self.keys, codes=self.codes[kept])

    def only(self, keys: Mask) -> KeyBatch:
        """Return the same rows, of which only the rows with one of ``keys`` are looked up."""
        codes = np.full(len(keys) + 1, NO_LOOKUP, np.int64)
        codes[:-1][keys] = np.arange(np.count_nonzero(keys))
        kept = [key for key, is_kept in zip(self.keys, keys.tolist(), strict=True) if is_kept]
        return KeyBatch(table=self.table, keys=kept, codes=codes[self.codes])

    def missed(self, rows: KeyedRows) -> Int64s:
        """Return the rows whose key has no rows in the source."""
        count = np.append(rows.count, np.int64(1))
        return np.flatnonzero(count[self.codes] == 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupRows(JoinedRows):
    """The input and output columns of one lookup operator.

    ``keys`` are input columns in the order of the source's keys. ``pre_filter`` is a boolean input column that marks
    the rows to look up, or None if all are. ``fetched`` is the schema of the fetched columns.
    """

    keys: tuple[str, ...]
    pre_filter: str | None
    fetched: pa.Schema

    def key_batch(self, table: pa.Table) -> KeyBatch:
        """Return the batch ``table`` with its distinct keys."""
        columns = [table[name].combine_chunks() for name in self.keys]
        is_looked_up = np.ones(table.num_rows, np.bool_)
        for column in [*columns, *([table[self.pre_filter].combine_chunks()] if self.pre_filter else [])]:
            if column.null_count:
                is_looked_up &= np.asarray(pc.is_valid(column))
        if self.pre_filter:
            is_looked_up &= np.asarray(pc.fill_null(table[self.pre_filter].combine_chunks(), False))
        if is_looked_up.all():
            codes, keys = distinct_keys(columns)
            return KeyBatch(table=table, keys=keys, codes=codes)
        codes = np.full(table.num_rows, NO_LOOKUP, np.int64)
        places = np.flatnonzero(is_looked_up)
        codes[places], keys = distinct_keys([column.take(pa.array(places)) for column in columns])
        return KeyBatch(table=table, keys=keys, codes=codes)
