"""A keyed state table: found by identity or by key, changed by appending segments, expired by last write time.

It is a small log-structured merge tree. Each micro-batch appends one segment with the rows that it changed, and the
newest version of a row wins. Segments of similar size are merged, so each row is rewritten a logarithmic number of
times. A row with ``last write + ttl <= now`` is invisible at once. It is dropped when the oldest segment is next merged
or purged; dropping it earlier could uncover an older version. With TTL 0, rows never expire. Knows no joins, no
aggregates and no Spark.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from hintplan.plans.evidence.uses import Uses
from hintplan.runtime.operator import SegmentStore
from hintplan.runtime.state.identity import Mask, equal_rows, keep_newest
from hintplan.runtime.state.layout import COUNT, HASH, SUFFIX_MASK, WRITE, Int64s, StateLayout, int64s
from hintplan.runtime.state.manifest import SegmentEntry, StateTable
from hintplan.runtime.state.merge import gathered, hash_ranges, newest_versions, taken
from hintplan.runtime.state.observation import Observation
from hintplan.runtime.state.runs import hash_order, matching_ranges, newest_in, spread

_FANOUT = 4
_SMALLEST_TIER = 4096
_PIECE = 1 << 27
"""Bytes to merge at a time. A worker needs as much again for the result, and half as much to sort and copy."""
_LARGEST_MERGE = 1 << 29
"""Bytes. Larger segments are merged only if they may hold several versions of a row, which would pile up for ever.

Rows with a single version cost the same in any number of segments.
"""


class _Runs(NamedTuple):
    """All rows as runs, from old to new, with each run's first code; ``shadows`` marks runs that replace older rows."""

    tables: tuple[pa.Table, ...]
    offsets: Int64s
    shadows: tuple[bool, ...]


class KeyedState:
    """A state table during one micro-batch. Rows are addressed by codes, which are valid until :meth:`commit`."""

    def __init__(
        self,
        layout: StateLayout,
        table: StateTable,
        store: SegmentStore,
        *,
        ttl: int,
        now: int,
        observation: Observation | None = None,
    ) -> None:
        """Open ``table``; without an ``observation``, the batch observes nothing, and the table keeps what it has."""
        self.layout = layout
        self._store = store
        self._ttl = ttl
        self._now = now
        self._entries = list(table.segments)
        self._last_number = max((int(entry.id.rpartition("/")[2]) for entry in self._entries), default=0)
        self._rows = table.rows
        self._observed = table.observed
        self._observation = observation
        self._stored: list[tuple[pa.Table, ...] | None] = [None] * len(self._entries)
        self._added: list[tuple[pa.Table, bool]] = []
        self._known: _Runs | None = None

    @property
    def count(self) -> int:
        """The number of stored rows, including expired rows that are not dropped yet."""
        return self._rows

    @property
    def first_write(self) -> int | None:
        """The time of the oldest write of rows that were stored before the batch, in ms; None if there are none.

        Replaced rows count until a merge drops them.
        """
        return min((entry.first_write for entry in self._entries), default=None)

    @property
    def segments(self) -> int:
        """The number of segments after the batch, if it merges none."""
        return len(self._entries) + len(self._added)

    # --- reading ------------------------------------------------------------------------------------------------------

    def _runs(self) -> _Runs:
        if self._known is None:
            stored = [(run, entry.shadows) for i, entry in enumerate(self._entries) for run in self._segment(i)]
            runs = [*stored, *self._added]
            offsets = np.cumsum([0, *(table.num_rows for table, _ in runs)])[:-1]
            self._known = _Runs(tuple(table for table, _ in runs), offsets, tuple(shadows for _, shadows in runs))
        return self._known

    def _segment(self, index: int) -> tuple[pa.Table, ...]:
        """Return the runs of a stored segment: one, or several with ascending hashes if it is large."""
        runs = self._stored[index]
        if runs is None:
            table = self._store.read(self._entries[index].id)
            whole = table.column(0).num_chunks == 1
            runs = (table,) if whole else tuple(pa.Table.from_batches([batch]) for batch in table.to_batches())
            self._stored[index] = runs
        return runs

    def find(self, identity: pa.Table, hashes: Int64s) -> Int64s:
        """Return the code of each row's newest version, -1 if there is none or it was deleted.

        Expired rows are found, too.
        """
        if not len(hashes):
            return np.empty(0, np.int64)
        runs = self._runs()
        run_of, codes = newest_in(runs.tables, identity, hashes)
        for index, (table, shadows) in enumerate(zip(runs.tables, runs.shadows, strict=True)):
            if shadows:  # only a run that replaces rows can delete them
                here = np.flatnonzero(run_of == index)
                run_of[here[int64s(table, COUNT)[codes[here]] == 0]] = -1
        if len(runs.tables) > 1:
            codes += runs.offsets[run_of]
        codes[run_of < 0] = -1
        return codes

    def live(self, codes: Int64s) -> Mask:
        """Return True for each code of a row that has not expired; -1 is no row."""
        result = codes >= 0
        if self._ttl:
            result[result] = self.integers(codes[result], WRITE) + self._ttl > self._now
        return result

    def use(self, codes: Int64s) -> None:
        """Observe the ages of the rows that the batch uses, or would use if they had not expired; -1 is no row."""
        if self._observation is not None:
            codes = codes[codes >= 0]
            self._observation.use(len(codes), lambda some: self.integers(codes[some], WRITE))

    def scan(
        self,
        keys: pa.Table,
        key_hashes: Int64s,
        limit: int = 1 << 21,
        *,
        suffixes: tuple[Int64s, Int64s] | None = None,
        expired: bool = False,
    ) -> Iterator[tuple[Int64s, Int64s]]:
        """Yield all live rows under each key, as pairs (position in ``keys``, code), in portions of about ``limit``.

        With ``expired``, also yield expired rows whose space has not been reclaimed. ``keys`` has the layout's key
        columns, without NULLs, and ``key_hashes`` are their hashes. All rows of a key are in one portion. With
        ``suffixes``, only rows whose sort hash ends with a number from the first to the second are found.
        """
        tables, offsets, shadows = self._runs()
        if not tables or not len(key_hashes):
            return
        order = hash_order(key_hashes)
        prefix = key_hashes[order] & ~SUFFIX_MASK
        first, last = prefix, prefix | SUFFIX_MASK
        if suffixes is not None:
            first, last = (prefix | suffix[order] for suffix in suffixes)
        ranges = [matching_ranges(int64s(table, HASH), first, last) for table in tables]
        totals = np.zeros(len(order), np.int64)
        for places, first, last in ranges:
            totals[places] += last - first
        totals = np.cumsum(totals)
        begin = 0
        while begin < len(order):
            base = totals[begin - 1] if begin else 0
            end = max(begin + 1, int(np.searchsorted(totals, base + limit, "right")))
            if totals[end - 1] > base:
                pieces = []
                for table, offset, (places, first, last) in zip(tables, offsets, ranges, strict=True):
                    part = slice(*np.searchsorted(places, (begin, end)))
                    place, row = spread(places[part], first[part], last[part])
                    same = equal_rows(keys, order[place], table, row)
                    if not same.all():
                        place, row = place[same], row[same]
                    pieces.append((place, offset + row, self._visible(table, row, expired)))
                place, code, visible = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
                if any(shadows[1:]):
                    visible &= self._newest(place, code, [piece[0] for piece in pieces])
                yield order[place[visible]], code[visible]
            begin = end

    def _visible(self, table: pa.Table, rows: Int64s, expired: bool) -> Mask:
        result: Mask = int64s(table, COUNT)[rows] > 0
        if self._ttl and not expired:
            result &= int64s(table, WRITE)[rows] + self._ttl > self._now
        return result

    def _newest(self, place: Int64s, code: Int64s, pieces: Sequence[Int64s]) -> Mask:
        """Return True for pairs that are newest versions. ``pieces`` are the ``place`` of each run."""
        keep = np.ones(len(place), np.bool_)
        if not len(place):
            return keep
        base = int(place.min())
        seen = np.zeros(int(place.max()) - base + 1, np.bool_)
        several = seen.copy()
        for piece in pieces:
            several[piece - base] |= seen[piece - base]
            seen[piece - base] = True
        chosen = np.flatnonzero(several[place - base])
        if not chosen.size:
            return keep
        hashes = self.integers(code[chosen], HASH)
        order = np.lexsort((code[chosen], hashes, place[chosen]))
        chosen, hashes = chosen[order], hashes[order]
        same = (place[chosen[1:]] == place[chosen[:-1]]) & (hashes[1:] == hashes[:-1])
        names = self.layout.identity.names
        keep[chosen] = keep_newest(same, lambda rows: self.take(code[chosen[rows]], names))
        return keep

    def rows(self) -> pa.Table:
        """Return all live rows, in the layout's schema and in order of hash."""
        tables = self._runs().tables
        if not tables:
            return self.layout.schema.empty_table()
        rows, order = newest_versions(self.layout, tables)
        live = int64s(rows, COUNT)[order] > 0
        if self._ttl:
            live &= int64s(rows, WRITE)[order] + self._ttl > self._now
        if len(tables) == 1 and live.all():
            return rows
        return taken(rows, order[live])

    def take(self, codes: Int64s, names: list[str]) -> pa.Table:
        """Return the columns ``names`` of the rows with these codes, in that order; chunked if that costs less."""
        tables, offsets, _ = self._runs()
        if len(tables) == 1:
            return tables[0].select(names).take(codes)
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
        """Return an int64 column (hash, count, write time, associations) of the rows with these codes."""
        tables, offsets, _ = self._runs()
        if len(tables) == 1:
            return int64s(tables[0], name)[codes]
        segment = np.searchsorted(offsets, codes, "right") - 1
        result = np.empty(len(codes), np.int64)
        for index, table in enumerate(tables):
            part = np.flatnonzero(segment == index)
            if part.size:
                result[part] = int64s(table, name)[codes[part] - offsets[index]]
        return result

    def up_to(self, name: str, highest: int, *, lowest: int | None = None) -> Int64s:
        """Return the codes of all live rows whose int64 column ``name`` is from ``lowest`` to ``highest``."""
        tables, offsets, shadows = self._runs()
        pieces = [np.empty(0, np.int64)]
        for table, offset in zip(tables, offsets, strict=True):
            values = int64s(table, name)
            rows = np.flatnonzero(values <= highest if lowest is None else (values <= highest) & (values >= lowest))
            pieces.append(offset + rows[self._visible(table, rows, expired=False)])
        codes = np.concatenate(pieces)
        if any(shadows[1:]) and len(codes):  # some may be older versions
            identity = self.take(codes, self.layout.identity.names)
            codes = codes[self.find(identity, self.integers(codes, HASH)) == codes]
        return codes

    # --- writing ------------------------------------------------------------------------------------------------------

    def put(self, rows: pa.Table, present: Mask) -> None:
        """Store new versions of ``rows`` (in the layout's schema, identities distinct) as written now.

        A ``__count`` of 0 deletes a row. ``present`` is True for rows that :meth:`find` found, expired or not.
        """
        counts = int64s(rows, COUNT)
        useful = (counts > 0) | present
        if not useful.all():
            rows = rows.filter(pa.array(useful))
            counts, present = counts[useful], present[useful]
        if not rows.num_rows:
            return
        written = int((counts > 0).sum())
        self._rows += written - int(present.sum())
        if self._observation is not None:
            self._observation.write(written)
        hashes = int64s(rows, HASH)
        if (hashes[1:] < hashes[:-1]).any():
            rows = rows.take(hash_order(hashes))
        self._added.append((rows.combine_chunks(), bool(present.any())))
        self._known = None

    def clear(self) -> None:
        """Remove all rows without reading them."""
        self._added = []
        self._drop(len(self._entries))
        self._rows = 0

    def replace(self, rows: pa.Table) -> None:
        """Store ``rows``, as for :meth:`put`, instead of all rows of the table, which are not read."""
        self.clear()
        self.put(rows, np.zeros(rows.num_rows, np.bool_))

    def commit(self) -> StateTable:
        """Write the changes, purge expired rows or merge segments if due, and return the table for the manifest."""
        if self._added:
            added = [table for table, _ in self._added]
            shadows = any(flag for _, flag in self._added)
            end = len(self._entries)
            self._added, self._known = [], None
            self._write(
                end, end, iter(added) if len(added) == 1 else self._merged(added, end, bottom=end == 0), shadows
            )
        if not self._purge():
            self._compact()
        return self._table()

    def uses(self) -> Uses:
        """Return the ages at which the batch has used rows."""
        return Uses() if self._observation is None else self._observation.uses()

    def _table(self) -> StateTable:
        return StateTable(
            fingerprint=self.layout.fingerprint,
            rows=self._rows,
            segments=tuple(self._entries),
            observed=self._observed if self._observation is None else self._observation.periods(),
        )

    def compact(self, anew: Callable[[str], bool] = lambda segment: False) -> StateTable:
        """Remove all rows that are deleted, replaced or expired, and return the table for the manifest.

        A segment without such rows is not rewritten, unless ``anew`` is True for it. Large segments with one version
        per row stay separate, so that they expire one after the other.
        """
        for begin, end in self._mergeable():
            run = self._entries[begin:end]
            expires = self._ttl and min(entry.first_write for entry in run) + self._ttl <= self._now
            if len(run) > 1 or run[0].shadows or expires or anew(run[0].id):
                self._replace(begin, end, bottom=True)
        return self._table()

    def _mergeable(self) -> list[tuple[int, int]]:
        """Return ranges of segments to merge into one each, from new to old; no range hides rows of an older one."""
        end = len(self._entries)
        if any(entry.shadows for entry in self._entries[1:]):
            return [(0, end)]
        ranges = []
        size = 0
        for begin in range(end - 1, -1, -1):
            size += self._entries[begin].size
            if size > _LARGEST_MERGE and begin + 1 < end:
                ranges.append((begin + 1, end))
                end, size = begin + 1, self._entries[begin].size
        return [*ranges, (0, end)] if end else []

    def _purge_of(self, entry: SegmentEntry) -> int:
        # A purge is a quarter of the TTL late, so rows of a steady stream are rewritten at most four times per TTL.
        return entry.first_write + self._ttl + max(self._ttl // 4, 1)

    def _write(self, begin: int, end: int, pieces: Iterator[pa.Table], shadows: bool) -> None:
        """Replace the segments from ``begin`` to ``end`` with one of ``pieces``, which have ascending hashes."""
        run = self._entries[begin:end]
        pieces = gathered(pieces, _PIECE // 2)
        first, second = next(pieces, None), next(pieces, None)
        new: list[tuple[SegmentEntry, tuple[pa.Table, ...] | None]] = []
        if first is not None:
            self._last_number += 1
            entry_id = f"{self.layout.name}/{self._last_number}"
            seen: list[tuple[int, int, int]] = []
            kept: tuple[pa.Table, ...] | None = None
            if second is None:
                size = self._store.write(entry_id, next(_noted([first], seen)))
                kept = (first,)
            else:
                every = _noted(chain(iter([first, second]), pieces), seen)
                first = second = None  # frees each piece before the piece after the next one is made
                size = self._store.write_pieces(entry_id, every)
            rows, oldest, newest = zip(*seen, strict=True)
            entry = SegmentEntry(entry_id, sum(rows), size, min(oldest), max(newest), shadows)
            new.append((entry, kept))
        for entry in run:
            self._store.delete(entry.id)
        self._entries[begin:end] = [entry for entry, _ in new]
        self._stored[begin:end] = [tables for _, tables in new]
        self._known = None

    def _replace(self, begin: int, end: int, *, bottom: bool = False) -> None:
        """Merge segments into one; ``bottom`` means that they hide no row of an older segment, as the oldest do not."""
        bottom = bottom or begin == 0
        shadows = not bottom and any(entry.shadows for entry in self._entries[begin:end])
        tables = [run for index in range(begin, end) for run in self._segment(index)]
        self._write(begin, end, self._merged(tables, end, bottom=bottom), shadows)

    def _compact(self) -> None:
        while self._entries:
            begin = end = len(self._entries)
            tier = _tier(self._entries[-1].rows)
            while begin > 0 and _tier(self._entries[begin - 1].rows) <= tier:
                begin -= 1
            run = self._entries[begin:]
            if len(run) < _FANOUT:
                return
            if sum(entry.size for entry in run) > _LARGEST_MERGE and not any(entry.shadows for entry in run[1:]):
                return
            self._replace(begin, end)

    def _purge(self) -> bool:
        """Drop expired rows if a purge is due; return True if a segment was rewritten.

        If time never goes back, at most one segment is rewritten.

        Segments follow each other in time. So the due segments are the oldest, and all due segments except the last
        have expired as a whole.
        """
        due = [index for index, entry in enumerate(self._entries) if self._ttl and self._purge_of(entry) <= self._now]
        if not due:
            return False
        end = due[-1] + 1
        whole = 0
        while whole < len(self._entries) and self._entries[whole].last_write + self._ttl <= self._now:
            whole += 1
        if whole == len(self._entries):
            self._drop(whole)
            self._expire(self._rows)
            return False
        for _ in range(whole):
            if any(entry.shadows for entry in self._entries):
                self._replace(0, 1)  # reads the dropped rows, to find those with a version in a newer segment
            else:
                self._expire(self._entries[0].rows)
                self._drop(1)
        if end <= whole:
            return False
        self._replace(0, end - whole)
        return True

    def _drop(self, count: int) -> None:
        """Remove the ``count`` oldest segments without reading them."""
        self._write(0, count, iter(()), False)

    def _merged(self, tables: Sequence[pa.Table], end: int, *, bottom: bool) -> Iterator[pa.Table]:
        """Yield the newest versions of the rows of ``tables``, which will stand before segment ``end``.

        At the ``bottom``, deleted and expired rows are dropped, because they hide no older rows.
        """
        newer = [run for i in range(end, len(self._entries)) if self._entries[i].shadows for run in self._segment(i)]
        is_large = sum(table.nbytes for table in tables) > _PIECE
        for part in hash_ranges(tables, size=_PIECE):
            if is_large:  # releases memory from reads so far and from the previous range
                self._store.settle()
            rows, order = newest_versions(self.layout, part)
            if bottom:
                order = order[int64s(rows, COUNT)[order] > 0]
                if self._ttl:
                    live = int64s(rows, WRITE)[order] + self._ttl > self._now
                    self._forget(rows, order[~live], newer)
                    order = order[live]
            if len(order):
                yield taken(rows, order)

    def _forget(self, rows: pa.Table, gone: Int64s, newer: Sequence[pa.Table]) -> None:
        """Subtract the rows at the places ``gone`` from the row count, except rows with newer versions."""
        replaced = 0
        if newer and len(gone):
            identity = rows.select(self.layout.identity.names).take(pa.array(gone))
            run_of, _ = newest_in(newer, identity, int64s(rows, HASH)[gone])
            replaced = int((run_of >= 0).sum())
        self._expire(len(gone) - replaced)

    def _expire(self, rows: int) -> None:
        """Subtract expired rows from the row count."""
        self._rows -= rows
        if self._observation is not None:
            self._observation.expire(rows)


def _noted(pieces: Iterable[pa.Table], seen: list[tuple[int, int, int]]) -> Iterator[pa.Table]:
    """Yield the pieces, and append the row count and the first and last write of each to ``seen``."""
    for piece in pieces:
        writes = int64s(piece, WRITE)
        seen.append((piece.num_rows, int(writes.min()), int(writes.max())))
        yield piece


def _tier(rows: int) -> int:
    return int(math.log(max(rows, _SMALLEST_TIER), _FANOUT))
