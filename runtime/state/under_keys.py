"""The rows that stand under some keys: those that state has, by their codes, and those that a batch adds to them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from hintplan.runtime.state.identity import Mask
from hintplan.runtime.state.keyed import KeyedState
from hintplan.runtime.state.layout import COUNT, WRITE, Int64s


def stored_under(state: KeyedState, keys: pa.Table, hashes: Int64s, *, expired: bool = False) -> tuple[Int64s, Int64s]:
    """The live rows that ``state`` has under ``keys``: for each the position of its key, and its code.

    With ``expired``, also the expired rows that it still has.
    """
    found = [(np.empty(0, np.int64), np.empty(0, np.int64)), *state.scan(keys, hashes, expired=expired)]
    key, code = (np.concatenate(part) for part in zip(*found, strict=True))
    return key, code


def rows_at(state: KeyedState, codes: Int64s, added: pa.Table, chosen: Int64s) -> tuple[pa.Table, Mask]:
    """The rows of ``chosen``, which counts through ``codes`` and then ``added``, -1 for none; and whether it is one."""
    has = chosen >= 0
    stored = has & (chosen < len(codes))
    fresh = has & ~stored
    parts = [state.take(codes[chosen[stored]], added.column_names), added.take(chosen[fresh] - len(codes))]
    place = np.zeros(len(chosen), np.int64)
    place[stored] = np.arange(int(stored.sum()))
    place[fresh] = int(stored.sum()) + np.arange(int(fresh.sum()))
    return pa.concat_tables(parts).combine_chunks().take(pa.array(place, mask=~has)), has


def write_again(state: KeyedState, codes: Int64s, now: int, *, deleted: bool = False) -> None:
    """Store the rows of ``codes`` as they are, but written ``now``; or, if ``deleted``, that they are gone."""
    if not codes.size:
        return
    schema = state.layout.schema
    rows = state.take(codes, schema.names)
    rows = _replaced(rows, WRITE, np.full(len(codes), now, np.int64))
    if deleted:
        rows = _replaced(rows, COUNT, np.zeros(len(codes), np.int64))
    state.put(rows.cast(schema), np.ones(len(codes), np.bool_))


def _replaced(rows: pa.Table, name: str, values: Int64s) -> pa.Table:
    return rows.set_column(rows.column_names.index(name), name, pa.array(values))
