"""Merges segments, range of hashes by range: the newest version of each row, sorted by hash.

The size of a range bounds memory, not the size of the segments, which are mapped files. Knows no store and no manifest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from hintplan.runtime.state.identity import keep_newest, without_chunks
from hintplan.runtime.state.layout import HASH, SUFFIX_MASK, Int64s, StateLayout, int64s

_SAMPLES = 256
"""The number of hashes to sample per range, to make the ranges equal in size."""


def hash_ranges(tables: Sequence[pa.Table], *, rows: int | None = None, size: int) -> Iterator[list[pa.Table]]:
    """Yield the slices of all tables in a range of hashes, range after range; all rows of a key are in one range.

    A range has at most about ``rows`` rows and ``size`` bytes. Tables without rows in a range are left out.
    """
    total = sum(table.num_rows for table in tables)
    if not total:
        return
    width = max(1, sum(table.nbytes for table in tables) // total)
    max_rows = max(1, size // width)
    pieces = -(-total // (max_rows if rows is None else min(rows, max_rows)))
    hashes = [int64s(table, HASH) for table in tables]
    # Sample all tables: a single one may cover only a part of the hashes.
    step = max(1, total // (pieces * _SAMPLES))
    sample = np.sort(np.concatenate([column[::step] for column in hashes]))
    cuts = np.unique(sample[np.arange(1, pieces) * len(sample) // pieces] & ~SUFFIX_MASK)
    bounds = [np.concatenate(([0], np.searchsorted(column, cuts), [len(column)])) for column in hashes]
    for index in range(len(cuts) + 1):
        slices = [
            table.slice(ends[index], ends[index + 1] - ends[index])
            for table, ends in zip(tables, bounds, strict=True)
            if ends[index + 1] > ends[index]
        ]
        if slices:
            yield slices


def newest_versions(layout: StateLayout, tables: Sequence[pa.Table]) -> tuple[pa.Table, Int64s]:
    """Return the rows of ``tables``, and the places of the newest versions in order of hash.

    ``tables`` are sorted from old to new.
    """
    rows = pa.concat_tables(tables)
    if len(tables) == 1:
        return rows, np.arange(rows.num_rows)
    hashes = int64s(rows, HASH)
    order = np.argsort(hashes, kind="stable")  # merges a few runs
    hashes = hashes[order]
    same = hashes[1:] == hashes[:-1]
    if same.any():
        identity = rows.select(layout.identity.names)
        order = order[keep_newest(same, lambda places: identity.take(order[places]))]
    return rows, order


def taken(rows: pa.Table, order: Int64s) -> pa.Table:
    """Return the rows at the places ``order``, without chunks.

    Columns are taken one by one, so that only one is in memory twice.
    """
    return pa.table([without_chunks(column).take(pa.array(order)) for column in rows.columns], schema=rows.schema)


def gathered(pieces: Iterable[pa.Table], size: int) -> Iterator[pa.Table]:
    """Yield ``pieces`` without chunks, joined with their neighbours if they have less than ``size`` bytes."""
    held: list[pa.Table] = []
    for piece in pieces:
        held.append(piece)
        if sum(table.nbytes for table in held) >= size:
            yield pa.concat_tables(held).combine_chunks()
            held = []
    if held:
        yield pa.concat_tables(held).combine_chunks()
