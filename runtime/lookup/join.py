"""Which rows of an Arrow batch are looked up, and with which keys; :mod:`hintplan.runtime.kernels.found_rows` joins
them.

A null key, or a row that its pre-filter excludes, is not looked up. Knows no cache and no source.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.runtime.kernels.found_rows import JoinedRows, KeyedRows
from hintplan.runtime.lookup.api import Key
from hintplan.runtime.lookup.rows import ABSENT, distinct_keys
from hintplan.runtime.state.identity import Mask
from hintplan.runtime.state.layout import Int64s

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

    def only(self, keys: Mask) -> AskedRows:
        """The same rows, of which those ask that ask for ``keys``."""
        codes = np.full(len(keys) + 1, NOT_ASKED, np.int64)
        codes[:-1][keys] = np.arange(np.count_nonzero(keys))
        asked = [key for key, wanted in zip(self.keys, keys.tolist(), strict=True) if wanted]
        return AskedRows(table=self.table, keys=asked, codes=codes[self.codes])

    def missed(self, found: KeyedRows) -> Int64s:
        """The rows that asked for a key without rows."""
        count = np.append(found.count, np.int64(1))
        return np.flatnonzero(count[self.codes] == 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupRows(JoinedRows):
    """How one lookup operator reads its input and writes its output.

    ``keys`` are input columns in the order of the source's keys; ``asks`` is the boolean input column that says which
    rows are looked up, if not all are; ``found`` are the columns of the source.
    """

    keys: tuple[str, ...]
    asks: str | None
    found: pa.Schema

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
