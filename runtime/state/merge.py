"""Merging segments: rows in order of hash, of each row its newest version, range of hashes by range.

Memory is bounded by the range, not by the segments, which are mapped files. Knows no store and no manifest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from hintplan.runtime.state.identity import keep_newest, without_chunks
from hintplan.runtime.state.layout import HASH, SUFFIX_MASK, Int64s, StateLayout, int64s

_SAMPLES = 256
"""Of the hashes of each range, by which ranges are made alike."""


def hash_ranges(tables: Sequence[pa.Table], *, rows: int | None = None, size: int) -> Iterator[list[pa.Table]]:
    """The same range of hashes of each table, range after range; a key's rows are never in two of them.

    A range has about ``rows`` rows and ``size`` bytes at most. Tables that have none of it are left out.
    """
    total = sum(table.num_rows for table in tables)
    if not total:
        return
    width = max(1, sum(table.nbytes for table in tables) // total)
    most = max(1, size // width)
    pieces = -(-total // (most if rows is None else min(rows, most)))
    hashes = [int64s(table, HASH) for table in tables]
    # Of all tables: one alone may cover a part of the hashes only.
    step = max(1, total // (pieces * _SAMPLES))
    sample = np.sort(np.concatenate([each[::step] for each in hashes]))
    cuts = np.unique(sample[np.arange(1, pieces) * len(sample) // pieces] & ~SUFFIX_MASK)
    bounds = [np.concatenate(([0], np.searchsorted(each, cuts), [len(each)])) for each in hashes]
    for index in range(len(cuts) + 1):
        found = [
            table.slice(each[index], each[index + 1] - each[index])
            for table, each in zip(tables, bounds, strict=True)
            if each[index + 1] > each[index]
        ]
        if found:
            yield found


def newest_versions(layout: StateLayout, tables: Sequence[pa.Table]) -> tuple[pa.Table, Int64s]:
    """The rows of ``tables``, which go from old to new, and the places of their newest versions, in order of hash."""
    rows = pa.concat_tables(tables)
    if len(tables) == 1:
        return rows, np.arange(rows.num_rows)
    hashes = int64s(rows, HASH)
    order = np.argsort(hashes, kind="stable")  # of a few runs: a merge
    hashes = hashes[order]
    same = hashes[1:] == hashes[:-1]
    if same.any():
        identity = rows.select(layout.identity.names)
        order = order[keep_newest(same, lambda places: identity.take(order[places]))]
    return rows, order


def taken(rows: pa.Table, order: Int64s) -> pa.Table:
    """The rows at the places ``order``, in one piece; column by column, so that only one is held twice."""
    return pa.table([without_chunks(column).take(pa.array(order)) for column in rows.columns], schema=rows.schema)


def gathered(pieces: Iterable[pa.Table], size: int) -> Iterator[pa.Table]:
    """``pieces``, with those joined to their neighbours that have less than ``size`` bytes; each without chunks."""
    held: list[pa.Table] = []
    for piece in pieces:
        held.append(piece)
        if sum(each.nbytes for each in held) >= size:
            yield pa.concat_tables(held).combine_chunks()
            held = []
    if held:
        yield pa.concat_tables(held).combine_chunks()
