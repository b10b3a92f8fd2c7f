"""The rows of some keys: stored rows, addressed by code, and rows that a batch adds."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from hintplan.runtime.state.identity import Mask, hashed_groups, without_chunks
from hintplan.runtime.state.keyed import KeyedState
from hintplan.runtime.state.layout import COUNT, WRITE, Int64s


def stored_under(state: KeyedState, keys: pa.Table, hashes: Int64s, *, expired: bool = False) -> tuple[Int64s, Int64s]:
    """Return the live rows of ``state`` with these ``keys``: for each row the position of its key, and its code.

    With ``expired``, expired rows that are still stored are included.
    """
    portions = [(np.empty(0, np.int64), np.empty(0, np.int64)), *state.scan(keys, hashes, expired=expired)]
    key, code = (np.concatenate(part) for part in zip(*portions, strict=True))
    return key, code


def rows_at(state: KeyedState, codes: Int64s, added: pa.Table, chosen: Int64s) -> tuple[pa.Table, Mask]:
    """Return the rows with the indexes ``chosen``, NULLs for -1, and a mask of the indexes that are not -1.

    Indexes count through ``codes`` and then through ``added``.
    """
    has = chosen >= 0
    is_used = np.zeros(len(codes) + added.num_rows, np.bool_)
    is_used[chosen[has]] = True
    used = np.flatnonzero(is_used)
    stored = int(np.count_nonzero(is_used[: len(codes)]))
    fresh = added if len(used) - stored == added.num_rows else added.take(used[stored:] - len(codes))
    rows = pa.concat_tables([state.take(codes[used[:stored]], added.column_names), fresh]).combine_chunks()
    if np.array_equal(chosen, used):
        return rows, has
    place = np.zeros(len(chosen), np.int64)
    place[has] = (np.cumsum(is_used) - 1)[chosen[has]]
    return rows.take(pa.array(place, mask=~has)), has


def add_copies(
    state: KeyedState,
    rows: pa.Table,
    hashes: Int64s,
    payload: Mapping[str, Int64s],
    now: int,
    sums: Mapping[str, Int64s] = MappingProxyType({}),
) -> None:
    """Add ``rows``, with the columns of the state's identity, to their counts in ``state``.

    ``payload`` has the other columns that depend on the identity alone, and ``sums`` the columns that add up.
    """
    rows = rows.select(state.layout.identity.names)
    entries, first = hashed_groups([without_chunks(column) for column in rows.columns], hashes)
    rows, hashes = rows.take(pa.array(first)), hashes[first]
    counts = np.bincount(entries, minlength=len(first)).astype(np.int64)
    codes = state.find(rows, hashes)
    present = codes >= 0
    counts[present] += state.integers(codes[present], COUNT)
    writes = np.full(len(first), now, np.int64)
    others = []
    for field in state.layout.payload:
        if field.name in sums:
            summed = np.bincount(entries, weights=sums[field.name], minlength=len(first)).astype(np.int64)
            summed[present] += state.integers(codes[present], field.name)
            others.append(pa.array(summed))
        else:
            others.append(pa.array(payload[field.name][first]))
    data = [pa.array(hashes), *rows.columns, *others, pa.array(counts), pa.array(writes)]
    state.put(pa.table(data, schema=state.layout.schema), present)


def write_again(
    state: KeyedState,
    codes: Int64s,
    now: int,
    *,
    deleted: bool = False,
    changed: Mapping[str, Int64s] = MappingProxyType({}),
) -> None:
    """Write the rows of ``codes`` again with the time ``now``; or delete them, if ``deleted``.

    ``changed`` has the new values of int64 columns.
    """
    if not codes.size:
        return
    schema = state.layout.schema
    rows = state.take(codes, schema.names)
    rows = _replaced(rows, WRITE, np.full(len(codes), now, np.int64))
    for name, values in changed.items():
        rows = _replaced(rows, name, values)
    if deleted:
        rows = _replaced(rows, COUNT, np.zeros(len(codes), np.int64))
    state.put(rows.cast(schema), np.ones(len(codes), np.bool_))


def _replaced(rows: pa.Table, name: str, values: Int64s) -> pa.Table:
    return rows.set_column(rows.column_names.index(name), name, pa.array(values))
