"""A keyed state table: found by identity or by key, changed by appending segments, expired by last write time.

A log-structured merge tree in miniature. Each micro-batch appends one segment with the rows it changed; a row's newest
version wins; segments of like size are merged, so each row is rewritten a logarithmic number of times. A row whose
``last write + ttl <= now`` is invisible at once and dropped when the oldest segment is next merged: dropping it earlier
could uncover an older version. TTL 0 never expires. Knows nothing of joins, aggregates or Spark.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from runtime.operator import SegmentStore
from runtime.state.identity import Mask, equal_rows, keep_newest
from runtime.state.layout import COUNT, HASH, SUFFIX_MASK, WRITE, Int64s, StateLayout
from runtime.state.manifest import SegmentEntry, StateTable

__all__ = ["KeyedState"]

_FANOUT = 4
_SMALLEST_TIER = 4096
_LARGEST_MERGE = 1 << 29
"""Bytes. A merge maps what it reads, and takes as much again for its result and half as much to sort and copy; with
1 GiB, a worker would come to take more than 2 GiB."""


class KeyedState:
    """One state table during one micro-batch. Rows are addressed by a code that is valid until :meth:`commit`."""

    def __init__(
        self,
        layout: StateLayout,
        table: StateTable,
        store: SegmentStore,
        *,
        ttl: int,
        now: int,
    ) -> None:
        self.layout = layout
        self._store = store
        self._ttl = ttl
        self._now = now
        self._entries = list(table.segments)
        self._last_number = max((int(entry.id.rpartition("/")[2]) for entry in self._entries), default=0)
        self._rows = table.rows
        self._stored: list[pa.Table] | None = None
        self._added: list[tuple[pa.Table, bool]] = []

    # --- reading ------------------------------------------------------------------------------------------------------

    def _tables(self) -> list[pa.Table]:
        if self._stored is None:
            self._stored = [self._store.read(entry.id) for entry in self._entries]
        return [*self._stored, *(table for table, _ in self._added)]

    def find(self, identity: pa.Table, hashes: Int64s) -> Int64s:
        """The code of each row's newest version, -1 if there is none or it was deleted; expired rows are found too."""
        codes = np.full(len(hashes), -1, np.int64)
        if not len(hashes):
            return codes
        tables = self._tables()
        offsets = _offsets(tables)
        open_ = np.argsort(hashes, kind="stable")
        for table, offset in reversed(list(zip(tables, offsets, strict=True))):
            if not open_.size:
                break
            sorted_hashes = _int64(table, HASH)
            needles = hashes[open_]
            low = np.searchsorted(sorted_hashes, needles, "left")
            hit = low < len(sorted_hashes)
            hit[hit] = sorted_hashes[low[hit]] == needles[hit]
            places = np.flatnonzero(hit)
            if not places.size:
                continue
            high = np.searchsorted(sorted_hashes, needles[places], "right")
            place, row = _expand(places, low[places], high)
            same = equal_rows(identity, open_[place], table, row)
            codes[open_[place[same]]] = offset + row[same]
            open_ = open_[codes[open_] < 0]
        found = np.flatnonzero(codes >= 0)
        deleted = self.integers(codes[found], COUNT) == 0
        codes[found[deleted]] = -1
        return codes

    def live(self, codes: Int64s) -> Mask:
        """Whether each code (-1 allowed) names a row that has not expired."""
        result = codes >= 0
        if self._ttl:
            result[result] = self.integers(codes[result], WRITE) + self._ttl > self._now
        return result

    def scan(self, keys: pa.Table, key_hashes: Int64s, limit: int = 1 << 21) -> Iterator[tuple[Int64s, Int64s]]:
        """All live rows under each key, as pairs (position in ``keys``, code), in portions of about ``limit`` pairs.

        ``keys`` has the layout's key columns, without NULLs; ``key_hashes`` are their hashes. A key's rows are never
        spread over two portions.
        """
        tables = [table for table in self._tables() if table.num_rows]
        if not tables or not len(key_hashes):
            return
        offsets = _offsets(tables)
        order = np.argsort(key_hashes, kind="stable")
        low_hash = key_hashes[order] & ~SUFFIX_MASK
        high_hash = low_hash | SUFFIX_MASK
        lows = [np.searchsorted(_int64(table, HASH), low_hash, "left") for table in tables]
        highs = [np.searchsorted(_int64(table, HASH), high_hash, "right") for table in tables]
        totals = np.cumsum(sum(high - low for low, high in zip(lows, highs, strict=True)))
        shadowed = any(entry.shadows for entry in self._entries[1:]) or any(shadows for _, shadows in self._added)
        begin = 0
        while begin < len(order):
            base = totals[begin - 1] if begin else 0
            end = max(begin + 1, int(np.searchsorted(totals, base + limit, "right")))
            if totals[end - 1] > base:
                places, codes = [], []
                for table, offset, low, high in zip(tables, offsets, lows, highs, strict=True):
                    candidates = begin + np.flatnonzero(high[begin:end] > low[begin:end])
                    place, row = _expand(candidates, low[candidates], high[candidates])
                    same = equal_rows(keys, order[place], table, row)
                    places.append(place[same])
                    codes.append(offset + row[same])
                place, code = np.concatenate(places), np.concatenate(codes)
                if shadowed:
                    place, code = self._newest(place, code)
                visible = self.live(code)
                visible &= self.integers(code, COUNT) > 0
                yield order[place[visible]], code[visible]
            begin = end

    def _newest(self, place: Int64s, code: Int64s) -> tuple[Int64s, Int64s]:
        hashes = self.integers(code, HASH)
        order = np.lexsort((code, hashes, place))
        place, code, hashes = place[order], code[order], hashes[order]
        same = (place[1:] == place[:-1]) & (hashes[1:] == hashes[:-1])
        names = self.layout.identity.names
        keep = keep_newest(same, lambda rows: self.take(code[rows], names)) if len(code) else np.ones(0, np.bool_)
        return place[keep], code[keep]

    def take(self, codes: Int64s, names: list[str]) -> pa.Table:
        """The columns ``names`` of the rows with the given codes, in that order; chunked if it costs less."""
        tables = self._tables()
        if len(tables) == 1:
            return tables[0].select(names).take(codes)
        offsets = _offsets(tables)
        segment = np.searchsorted(offsets, codes, "right") - 1
        order = np.argsort(segment, kind="stable")
        bounds = np.searchsorted(segment[order], np.arange(len(tables) + 1))
        pieces = []
        for index, table in enumerate(tables):
            part = order[bounds[index] : bounds[index + 1]]
            if part.size:
                pieces.append(table.select(names).take(codes[part] - offsets[index]))
        if not pieces:
            return pa.schema([self.layout.schema.field(name) for name in names]).empty_table()
        if (segment[1:] >= segment[:-1]).all():
            return pa.concat_tables(pieces)
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        return pa.concat_tables(pieces).combine_chunks().take(back)

    def integers(self, codes: Int64s, name: str) -> Int64s:
        """One of the int64 columns (hash, count, write time, associations) of the rows with the given codes."""
        tables = self._tables()
        if len(tables) == 1:
            return _int64(tables[0], name)[codes]
        offsets = _offsets(tables)
        segment = np.searchsorted(offsets, codes, "right") - 1
        result = np.empty(len(codes), np.int64)
        for index, table in enumerate(tables):
            part = np.flatnonzero(segment == index)
            if part.size:
                result[part] = _int64(table, name)[codes[part] - offsets[index]]
        return result

    # --- writing ------------------------------------------------------------------------------------------------------

    def put(self, rows: pa.Table, present: Mask) -> None:
        """Store new versions of ``rows`` (in the layout's schema, identities distinct) as written now.

        ``__count`` 0 deletes. ``present`` says which of them :meth:`find` found, expired or not.
        """
        counts = _int64(rows, COUNT)
        useful = (counts > 0) | present
        if not useful.all():
            rows = rows.filter(pa.array(useful))
            counts, present = counts[useful], present[useful]
        if not rows.num_rows:
            return
        self._rows += int((counts > 0).sum()) - int(present.sum())
        hashes = _int64(rows, HASH)
        if (hashes[1:] < hashes[:-1]).any():
            rows = rows.take(np.argsort(hashes, kind="stable"))
        self._added.append((rows.combine_chunks(), bool(present.any())))

    def commit(self) -> StateTable:
        """Write what changed, merge where due, drop what expired, and return the table for the manifest."""
        if self._added:
            shadows = any(flag for _, flag in self._added)
            added = [table for table, _ in self._added]
            merged = added[0] if len(added) == 1 else self._merge(added, oldest=not self._entries)
            self._tables()
            self._append(merged, shadows)
            self._added = []
        if self.purge_due(self._now):
            self._purge()
        else:
            self._compact()
        return StateTable(fingerprint=self.layout.fingerprint, rows=self._rows, segments=tuple(self._entries))

    def next_purge(self) -> int | None:
        """When expired rows are next to be dropped, in ms; None if nothing will expire."""
        if not self._ttl or not self._entries:
            return None
        # A quarter of the TTL late: a steady stream is then rewritten at most four times per TTL.
        return min(entry.first_write for entry in self._entries) + self._ttl + max(self._ttl // 4, 1)

    def purge_due(self, now: int) -> bool:
        due = self.next_purge()
        return due is not None and due <= now

    def _append(self, table: pa.Table, shadows: bool) -> None:
        writes = _int64(table, WRITE)
        self._last_number += 1
        entry_id = f"{self.layout.name}/{self._last_number}"
        size = self._store.write(entry_id, table)
        entry = SegmentEntry(entry_id, table.num_rows, size, int(writes.min()), int(writes.max()), shadows)
        self._entries.append(entry)
        if self._stored is not None:
            self._stored.append(table)

    def _compact(self) -> None:
        while True:
            begin = len(self._entries) - 1
            if begin < 0:
                return
            tier = _tier(self._entries[-1].rows)
            while begin > 0 and _tier(self._entries[begin - 1].rows) <= tier:
                begin -= 1
            run = self._entries[begin:]
            if len(run) < _FANOUT or sum(entry.size for entry in run) > _LARGEST_MERGE:
                return
            self._replace(begin)

    def _replace(self, begin: int) -> None:
        tables = self._tables()[begin:]
        run = self._entries[begin:]
        merged = self._merge(tables, oldest=begin == 0)
        del self._entries[begin:]
        self._stored = self._tables()[:begin]
        for entry in run:
            self._store.delete(entry.id)
        if merged.num_rows:
            self._append(merged, begin > 0 and any(entry.shadows for entry in run))
        if begin == 0:
            self._rows = merged.num_rows

    def _purge(self) -> None:
        kept = 0
        while kept < len(self._entries) and self._entries[kept].last_write + self._ttl <= self._now:
            kept += 1
        # The oldest segments have expired as a whole: they need not be read, nor can they uncover anything.
        for entry in self._entries[:kept]:
            self._store.delete(entry.id)
        del self._entries[:kept]
        if self._stored is not None:
            del self._stored[:kept]
        if self._entries:
            self._replace(0)
        else:
            self._rows = 0

    def _merge(self, tables: list[pa.Table], *, oldest: bool) -> pa.Table:
        rows = pa.concat_tables(tables)
        hashes = _int64(rows, HASH)
        order = np.argsort(hashes, kind="stable")
        hashes = hashes[order]
        if len(order) > 1:
            identity = rows.select(self.layout.identity.names)
            order = order[keep_newest(hashes[1:] == hashes[:-1], lambda places: identity.take(order[places]))]
        if oldest:
            alive = _int64(rows, COUNT)[order] > 0
            if self._ttl:
                alive &= _int64(rows, WRITE)[order] + self._ttl > self._now
            order = order[alive]
        # Column by column, so that beside the result only one column is ever held in memory as a whole.
        return pa.table([column.combine_chunks().take(order) for column in rows.columns], schema=rows.schema)


def _tier(rows: int) -> int:
    return int(math.log(max(rows, _SMALLEST_TIER), _FANOUT))


def _offsets(tables: list[pa.Table]) -> Int64s:
    return np.cumsum([0, *(table.num_rows for table in tables)])[:-1]


def _int64(table: pa.Table, name: str) -> Int64s:
    column = table[name]
    values: Int64s = column.chunk(0).to_numpy() if column.num_chunks == 1 else column.to_numpy()
    return values


def _expand(places: Int64s, low: Int64s, high: Int64s) -> tuple[Int64s, Int64s]:
    """Pair each place with every row from its ``low`` to before its ``high``."""
    counts = high - low
    if len(counts) and int(counts.max()) == 1 and int(counts.min()) == 1:
        return places, low
    place = np.repeat(places, counts)
    starts = np.cumsum(counts) - counts
    row = np.arange(len(place), dtype=np.int64) - np.repeat(starts - low, counts)
    return place, row
