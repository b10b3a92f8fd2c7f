"""Counts the rows of a state table and the rows that a TTL leaves: pure functions over the table's segments.

Only the newest version of a row counts, and a deleted row does not count. Segments are sorted by hash and merged in
ranges of hashes, so the memory depends on the range and not on the table.

>>> rows = pa.table({"__hash": [1, 2], "k": [7, 8], "__count": [1, 1], "__write": [1_000, 5_000]})
>>> layout = StateLayout(name="t", identity=pa.schema([("k", pa.int64())]), payload=pa.schema([]))
>>> counted = count_rows(layout, [rows], ttls=(3_000, 0), now=6_000)
>>> counted.under[0], counted.under[1].rows
(Under(rows=1, expired=1, soon=1), 2)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from hintplan.plans.evidence.ages import ENDS, NONE, Counts
from hintplan.runtime.state.identity import Mask, distinct_rows, encode_groups, equal_columns, without_chunks
from hintplan.runtime.state.layout import COUNT, HASH, SUFFIX_MASK, WRITE, Int64s, StateLayout, int64s
from hintplan.runtime.state.merge import hash_ranges, newest_versions

HOUR = 3_600_000
_RANGE_ROWS = 1 << 20
_RANGE_BYTES = 128 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Under:
    """The rows under a TTL: ``rows`` are visible, ``expired`` rows are stored but invisible.

    ``soon`` of the visible rows expire within an hour.
    """

    rows: int = 0
    expired: int = 0
    soon: int = 0

    def __add__(self, other: Under) -> Under:
        return Under(rows=self.rows + other.rows, expired=self.expired + other.expired, soon=self.soon + other.soon)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """The counts of one table in one partition, or of several. ``under`` has an item for each TTL of the request.

    ``keys``, ``oldest`` and ``newest`` (last writes in ms, None without rows) count the visible rows under the first
    TTL, and ``ages`` the time since these writes. ``shown`` are the rows that were written last, newest first,
    including expired rows.
    """

    under: tuple[Under, ...]
    keys: int = 0
    oldest: int | None = None
    newest: int | None = None
    ages: Counts = NONE
    shown: pa.Table | None = field(default=None, compare=False)


def count_rows(
    layout: StateLayout, tables: Sequence[pa.Table], *, ttls: Sequence[int], now: int, show: int = 0
) -> Counted:
    """Count the table with the segments ``tables``, from oldest to newest, under each of ``ttls`` at ``now``.

    All times are in ms; TTL 0 never expires. The result has at most ``show`` rows.
    """
    under = [Under() for _ in ttls]
    keys = 0
    oldest: int | None = None
    newest: int | None = None
    ages = np.zeros(len(NONE), np.int64)
    shown: list[pa.Table] = []
    for rows, order in present_rows(layout, tables):
        writes = int64s(rows, WRITE)[order]
        for index, ttl in enumerate(ttls):
            under[index] += _judged(writes, ttl, now)
        visible = is_visible(writes, ttls[0], now)
        if visible.any():
            seen = writes[visible]
            oldest = int(seen.min()) if oldest is None else min(oldest, int(seen.min()))
            newest = int(seen.max()) if newest is None else max(newest, int(seen.max()))
            ages += np.bincount(np.searchsorted(ENDS, now - seen, "right"), minlength=len(NONE))
            keys += _keys(layout, rows, order[visible])
        if show and len(order):
            shown = [newest_first([*shown, rows.take(order[_latest(writes, show)])], show)]
    return Counted(
        under=tuple(under),
        keys=keys,
        oldest=oldest,
        newest=newest,
        ages=tuple(ages.tolist()),
        shown=shown[0] if shown else None,
    )


def present_rows(layout: StateLayout, tables: Sequence[pa.Table]) -> Iterator[tuple[pa.Table, Int64s]]:
    """Yield the rows of ``tables`` in ranges of hashes, each with the positions of its present rows, ordered by hash.

    ``tables`` are the segments from oldest to newest. The newest version of a row is present unless it is deleted,
    whether expired or not.
    """
    for slices in hash_ranges(tables, rows=_RANGE_ROWS, size=_RANGE_BYTES):
        rows, order = newest_versions(layout, slices)
        yield rows, order[int64s(rows, COUNT)[order] > 0]


def is_visible(writes: Int64s, ttl: int, now: int) -> Mask:
    """Return a mask of the rows that have not expired, given the last write of each in ``writes``."""
    result: Mask = writes + ttl > now if ttl else np.ones(len(writes), np.bool_)
    return result


def count_parked(key: Sequence[str], tables: Sequence[pa.Table], *, show: int = 0) -> Counted:
    """Count rows that wait for a deferred lookup; their last lookup is in ``__write``."""
    rows = pa.concat_tables(tables).combine_chunks()
    writes = int64s(rows, WRITE)
    keys = len(encode_groups([without_chunks(rows[name]) for name in key])[1]) if key else 1
    shown = newest_first([rows], show) if show else None
    under = (Under(rows=rows.num_rows),)
    return Counted(under=under, keys=keys, oldest=int(writes.min()), newest=int(writes.max()), shown=shown)


def newest_first(tables: Sequence[pa.Table], limit: int) -> pa.Table:
    """Return the ``limit`` rows that were written last, newest first, in a stable order."""
    rows = pa.concat_tables(tables)
    return rows.take(np.argsort(-int64s(rows, WRITE), kind="stable")[:limit])


def _judged(writes: Int64s, ttl: int, now: int) -> Under:
    visible = is_visible(writes, ttl, now)
    later = is_visible(writes, ttl, now + HOUR)
    rows = int(visible.sum())
    return Under(rows=rows, expired=len(writes) - rows, soon=rows - int((visible & later).sum()))


def _latest(writes: Int64s, limit: int) -> Int64s:
    """Return the positions of the ``limit`` last writes, newest first, in a stable order."""
    positions = np.arange(len(writes))
    if len(writes) > limit:  # drop most of them without sorting
        least = np.partition(writes, len(writes) - limit)[len(writes) - limit]
        after = np.flatnonzero(writes > least)
        positions = np.concatenate((after, np.flatnonzero(writes == least)[: limit - len(after)]))
    return positions[np.argsort(-writes[positions], kind="stable")]


def _keys(layout: StateLayout, rows: pa.Table, places: Int64s) -> int:
    """Return the number of distinct keys of the rows at ``places``, which are ordered by hash."""
    if not layout.key:
        return len(places)  # the identity of a row is its key
    hashes = int64s(rows, HASH)[places] & ~SUFFIX_MASK
    names = list(dict.fromkeys(layout.key))
    keys = pa.table([without_chunks(rows[name]).take(pa.array(places)) for name in names], names=names)
    alike = hashes[1:] == hashes[:-1]
    collisions = alike & ~equal_columns(keys.slice(1), keys.slice(0, len(places) - 1))
    if not collisions.any():
        return len(places) - int(alike.sum())
    # Different keys with the same hash may alternate, so compare these by value.
    groups = np.cumsum(np.concatenate(([False], ~alike)))
    mixed = np.flatnonzero(np.isin(groups, groups[1:][collisions]))
    distinct = len(distinct_rows(keys.take(pa.array(mixed)), hashes[mixed])[1])
    return int(groups[-1]) + 1 - len(np.unique(groups[mixed])) + distinct
