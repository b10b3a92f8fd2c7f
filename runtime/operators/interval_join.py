"""The kernel of an interval join: rows with equal keys meet if their times are close, and time removes them.

The left time minus the right time is within ``bounds``. A row *reaches* as far beyond its own time as the last time of
its possible matches. It is kept until the watermark has passed its time and its reach.

- Pairs are emitted as soon as their second row comes.
- A late row is not dropped: it meets the rows that are still kept. It counts as late if it comes too late to be kept
  itself. Two rows of one batch meet if one of them can be kept.
- A row without a match is padded as soon as the watermark allows it: at once, if it cannot be kept.
- NULL keys never match. A NULL time fails the run.
- If ``bounds`` allow no pair, every row is padded at once.
- By processing time, the time of a row is the time of its micro-batch, and no row is late. A row is kept until the
  clock has passed its last possible match. If it may be padded, it is due one ms later. A bucket whose rows have all
  met others is due when the clock has passed all of them, and dropped then.

State layout, format 1: tables ``left@end`` and ``right@end`` (hash of key, time and row; all columns; time in ms; of a
side that is padded, how many of the equal rows have met another; count; last write). A row is in the table of the time
bucket of its own time. A bucket that the watermark has passed is dropped, and its rows are read only if they may be
padded. Passed rows of another bucket stay, and are ignored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.plans.declarations.computations import JoinType
from hintplan.plans.errors import RunError
from hintplan.plans.text.nulls import rowtime_hint, rowtime_message
from hintplan.runtime.kernels.lateness import lateness
from hintplan.runtime.kernels.near_rows import near_rows, partner_times
from hintplan.runtime.kernels.pairs import JoinCondition
from hintplan.runtime.kernels.windows import milliseconds
from hintplan.runtime.operator import FOREVER, NEVER, Inheritance, InputSpec, Result, SegmentStore, Watermarks
from hintplan.runtime.operator import hash_column as hash_name
from hintplan.runtime.operators.open_windows import commit_buckets
from hintplan.runtime.state.identity import Mask
from hintplan.runtime.state.inherit import inherit_tables
from hintplan.runtime.state.keyed import KeyedState
from hintplan.runtime.state.layout import COUNT, SUFFIX_MASK, Int64s, StateLayout, int64s, prefixed_hash
from hintplan.runtime.state.manifest import read_manifest
from hintplan.runtime.state.runs import hash_order
from hintplan.runtime.state.tables import rows_in
from hintplan.runtime.state.time_buckets import TimeBuckets
from hintplan.runtime.state.under_keys import add_copies, write_again

TIME, MET = "__time", "__met"
_PORTION = 1 << 21
"""Pairs of rows on which the condition is evaluated at a time."""
_BUCKETS = 8
"""The number of buckets of an interval."""
_NARROWEST = 1000
"""The width in ms of buckets of short intervals: many rows may come out of order by more than the interval."""
_ROW_BITS = np.int64((1 << 8) - 1)
_UNITS = 1 << 16
"""The number of parts of a bucket that sort hashes distinguish."""
_PADDED: dict[JoinType, tuple[bool, bool]] = {
    "inner": (False, False),
    "left": (True, False),
    "right": (False, True),
    "full": (True, True),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalJoinOperator:
    """An interval join bound to the columns of its inputs. ``columns`` are the output's (name, side, column).

    ``bounds`` are the least and the greatest difference of the left time minus the right time, in ms. ``times`` are the
    rowtimes of both inputs, or None by processing time.
    """

    operator: str
    kind: JoinType
    left: pa.Schema
    right: pa.Schema
    left_keys: tuple[str, ...]
    right_keys: tuple[str, ...]
    times: tuple[str, str] | None
    bounds: tuple[int, int]
    condition: JoinCondition | None
    columns: tuple[tuple[str, str, str], ...]

    @property
    def sides(self) -> tuple[pa.Schema, pa.Schema]:
        return self.left, self.right

    @property
    def keys(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return self.left_keys, self.right_keys

    @property
    def pads(self) -> tuple[bool, bool]:
        """True for the sides whose rows are emitted without a match."""
        return _PADDED[self.kind]

    @property
    def reaches(self) -> tuple[int, int]:
        """The time in ms by which a match of a row of each side may be later than the row."""
        lower, upper = self.bounds
        return -lower, upper

    @property
    def width(self) -> int:
        """The width of buckets in ms."""
        lower, upper = self.bounds
        return max(_NARROWEST, -((lower - upper) // _BUCKETS))

    def suffixes(self, times: Int64s, end: int) -> Int64s:
        """Return the last bits of the sort hash of rows with these times in the bucket that ends at ``end``.

        So the rows of a key are in order of time. The lowest bits, ``_ROW_BITS``, are of the hash of the row.
        """
        unit = -(-self.width // _UNITS)
        return ((times - (end - self.width)) // unit) * (_ROW_BITS + 1)

    @property
    def layouts(self) -> tuple[StateLayout, StateLayout]:
        left, right = (
            StateLayout(
                name=name,
                identity=columns,
                payload=pa.schema([(TIME, pa.int64()), *([(MET, pa.int64())] if pads else [])]),
                key=keys,
                by_time=True,
            )
            for name, columns, keys, pads in zip(("left", "right"), self.sides, self.keys, self.pads, strict=True)
        )
        return left, right

    @property
    def inputs(self) -> tuple[InputSpec, ...]:
        return tuple(
            InputSpec(columns=columns, hashes=(keys, tuple(columns.names)), changelog=False)
            for columns, keys in zip(self.sides, self.keys, strict=True)
        )

    @property
    def output(self) -> pa.Schema:
        return pa.schema(
            [pa.field(name, self.sides[side == "right"].field(column).type) for name, side, column in self.columns]
        )

    def process(
        self,
        deltas: Sequence[pa.Table | None],
        manifest: bytes | None,
        store: SegmentStore,
        now: int,
        watermarks: Watermarks,
    ) -> Result:
        tables = read_manifest(manifest, self.layouts)
        left, right = (
            _Side(self, side, rows, TimeBuckets(layout, tables, store, now=now), watermarks, now)
            for side, (rows, layout) in enumerate(zip(deltas, self.layouts, strict=True))
        )
        pieces = [self.output.empty_table()]
        lower, upper = self.bounds
        if lower <= upper:
            pieces += _met_in_state(self, left, right)
            pieces += _met_in_state(self, right, left)
            pieces += _met_in_batch(self, left, right)
        for side in (left, right):
            pieces += side.passed()
            pieces += side.kept()
        dues = [due for side in (left, right) if (due := side.due()) is not None] if self.times is None else []
        return commit_buckets(
            {side.buckets.layout.name: side.buckets for side in (left, right)},
            pa.concat_tables(pieces),
            rows_in=rows_in(deltas),
            late_rows=int(left.is_late.sum() + right.is_late.sum()),
            late_places=(np.flatnonzero(left.is_late), np.flatnonzero(right.is_late)),
            lateness=(left.lateness, right.lateness),
            due=min(dues, default=None),
        )

    def inherit(self, store: Inheritance) -> bytes | None:
        return inherit_tables(store, self.layouts)


class _Side:
    """One side during a micro-batch: the rows of the batch, with their times, and the buckets of state."""

    def __init__(
        self,
        operator: IntervalJoinOperator,
        side: int,
        batch: pa.Table | None,
        buckets: TimeBuckets,
        watermarks: Watermarks,
        now: int,
    ) -> None:
        """Raise RunError if a row has no time."""
        self.side, self.buckets = side, buckets
        self.keys = operator.keys[side]
        self.pads = operator.pads[side]
        self._operator = operator
        self._now = now
        reach = operator.reaches[side]
        by_clock = operator.times is None
        # By the clock, the watermark of a batch is its time less 1 ms, and another batch may have the same time.
        self._first_kept = _clipped(watermarks.before + by_clock - reach)
        """The first time of rows that are kept before the batch."""
        self._first_kept_after = _clipped(watermarks.after + by_clock - reach)
        if batch is None:
            batch = pa.schema([*operator.sides[side], *((hash_name(i), pa.int64()) for i in (0, 1))]).empty_table()
        batch = batch.combine_chunks()
        self.rows = batch.select(operator.sides[side].names)
        if operator.times is None:
            self.times = np.full(batch.num_rows, watermarks.processing_time(now), np.int64)
        else:
            self.times = _rowtimes(operator.operator, batch, operator.times[side])
        self.key_hashes = int64s(batch, hash_name(0)) & ~SUFFIX_MASK
        self._row_hashes = int64s(batch, hash_name(1))
        self.can_match = np.ones(batch.num_rows, np.bool_)
        for key in self.keys:
            if batch[key].null_count:
                self.can_match &= np.asarray(pc.is_valid(batch[key]))
        self.has_met = np.zeros(batch.num_rows, np.bool_)
        lower, upper = operator.bounds
        self.can_be_kept = ((self.times > self._first_kept) | by_clock) & (lower <= upper)
        last = max(0, reach)
        self.is_late = (self.times <= _clipped(watermarks.before - last)) & (lower <= upper) & (not by_clock)
        self.lateness = lateness(self.times[self.is_late] + last, watermarks.before)

    def is_kept(self, times: Int64s) -> Mask:
        """Return True for times of rows that were kept before the batch."""
        return times >= self._first_kept

    def bucket_ends(self) -> Iterator[tuple[int, int]]:
        """Yield the first time and the end of each bucket that had rows before the batch."""
        for end in self.buckets.ends():
            yield end - self._operator.width, end

    def meet(self, bucket: KeyedState, codes: Int64s) -> None:
        """Note that the rows of ``bucket`` with these codes have met a row, unless they had met one before."""
        if not self.pads or not len(codes):
            return
        codes = np.unique(codes)
        counts = bucket.integers(codes, COUNT)
        are_new = bucket.integers(codes, MET) < counts
        write_again(bucket, codes[are_new], self._now, changed={MET: counts[are_new]})

    def passed(self) -> Iterator[pa.Table]:
        """Drop the buckets that the watermark has passed, and yield the rows without a match, padded."""
        first, last = self._first_kept, self._first_kept_after - 1
        for begin, end in list(self.bucket_ends()):
            if self.pads and begin <= last and end > first:
                bucket = self.buckets.at(end)
                codes = bucket.up_to(TIME, last, lowest=first)
                missing = bucket.integers(codes, COUNT) - bucket.integers(codes, MET)
                codes = np.repeat(codes, missing)
                yield self._padded(bucket.take(codes, self._operator.sides[self.side].names))
            if end - 1 <= last:
                self.buckets.drop(end)

    def kept(self) -> Iterator[pa.Table]:
        """Store the rows of the batch that may still meet rows, and yield the others without a match, padded."""
        stays = self.can_be_kept & (self.times >= self._first_kept_after)
        if self.pads:
            yield self._padded(self.rows.filter(pa.array(~stays & ~self.has_met)))
        else:
            stays &= self.can_match
        places = np.flatnonzero(stays)
        width = self._operator.width
        ends = (self.times[places] // width + 1) * width
        for end in np.unique(ends).tolist():
            some = places[ends == end]
            suffixes = self._operator.suffixes(self.times[some], end) | (self._row_hashes[some] & _ROW_BITS)
            hashes = prefixed_hash(self.key_hashes[some], suffixes)
            rows, times = self.rows.take(pa.array(some)), {TIME: self.times[some]}
            met = {MET: self.has_met[some].astype(np.int64)} if self.pads else {}
            add_copies(self.buckets.at(end), rows, hashes, times, self._now, met)

    def due(self) -> int | None:
        """Return the time at which the clock passes the next row without a match, or the whole first bucket.

        Return None if rows of this side are not padded, or if no row is kept.
        """
        ends = self.buckets.ends() if self.pads else []
        if not ends:
            return None
        bucket = self.buckets.at(ends[0])
        codes = bucket.up_to(TIME, ends[0] - 1, lowest=self._first_kept_after)
        times = bucket.integers(codes[bucket.integers(codes, MET) < bucket.integers(codes, COUNT)], TIME)
        return int(times.min(initial=ends[0] - 1)) + self._operator.reaches[self.side] + 1

    def _padded(self, rows: pa.Table) -> pa.Table:
        left, right = (rows, None) if self.side == 0 else (None, rows)
        return _output(self._operator, left, right, rows.num_rows)


def _rowtimes(operator: str, batch: pa.Table, column: str) -> Int64s:
    """Return the times of rows in ms; raise RunError if one is NULL."""
    if batch[column].null_count:
        raise RunError(rowtime_message(operator, column), hint=rowtime_hint(column))
    return milliseconds(batch[column])


def _clipped(time: int) -> int:
    return max(NEVER, min(FOREVER, time))


def _met_in_state(operator: IntervalJoinOperator, mine: _Side, theirs: _Side) -> Iterator[pa.Table]:
    """Yield the pairs of rows of the batch on one side and stored rows on the other side."""
    if not mine.rows.num_rows:
        return
    places = np.flatnonzero(mine.can_match)
    places = places[hash_order(mine.key_hashes[places])]
    keys = mine.rows.select(list(mine.keys)).rename_columns(list(theirs.keys))
    first, last = (each[places] for each in partner_times(mine.times, mine.side, operator.bounds))
    for begin, end in list(theirs.bucket_ends()):
        overlaps = (first < end) & (last >= begin)
        near = places[overlaps]
        if not near.size:
            continue
        bucket = theirs.buckets.at(end)
        suffixes = (
            operator.suffixes(np.maximum(first[overlaps], begin), end),
            operator.suffixes(np.minimum(last[overlaps], end - 1), end) | _ROW_BITS,
        )
        met = [np.empty(0, np.int64)]
        for key, codes in bucket.scan(keys.take(pa.array(near)), mine.key_hashes[near], suffixes=suffixes):
            rows = near[key]
            times = bucket.integers(codes, TIME)
            fits = _within(operator.bounds, mine.times[rows], times, mine.side) & theirs.is_kept(times)
            rows, codes = rows[fits], codes[fits]
            if operator.condition is not None:
                holds = _holds(operator, operator.condition, mine, rows, bucket, codes)
                rows, codes = rows[holds], codes[holds]
            if not rows.size:
                continue
            mine.has_met[rows] = True
            met.append(codes)
            copies = bucket.integers(codes, COUNT)
            if int(copies.max()) > 1:
                rows, codes = np.repeat(rows, copies), np.repeat(codes, copies)
            shown = [_shown(operator, side) for side in (mine.side, theirs.side)]
            own, other = mine.rows.select(shown[0]).take(pa.array(rows)), bucket.take(codes, shown[1])
            left, right = (own, other) if mine.side == 0 else (other, own)
            yield _output(operator, left, right, len(rows))
        theirs.meet(bucket, np.concatenate(met))


def _within(bounds: tuple[int, int], mine: Int64s, theirs: Int64s, side: int) -> Mask:
    first, last = partner_times(mine, side, bounds)
    result: Mask = (theirs >= first) & (theirs <= last)
    return result


def _holds(
    operator: IntervalJoinOperator,
    condition: JoinCondition,
    mine: _Side,
    rows: Int64s,
    bucket: KeyedState,
    codes: Int64s,
) -> Mask:
    needed = (condition.left, condition.right) if mine.side == 0 else (condition.right, condition.left)
    own = mine.rows.select(list(needed[0])).take(pa.array(rows))
    other = bucket.take(codes, list(needed[1]))
    return condition.holds(*((own, other) if mine.side == 0 else (other, own)), len(rows))


def _met_in_batch(operator: IntervalJoinOperator, left: _Side, right: _Side) -> Iterator[pa.Table]:
    """Yield the pairs of rows of the batch."""
    if not left.rows.num_rows or not right.rows.num_rows:
        return
    hashes, times = (left.key_hashes, right.key_hashes), (left.times, right.times)
    near = near_rows(left.rows, right.rows, operator.keys, hashes, times, operator.bounds)
    for of_left, of_right in near.pairs(_PORTION):
        one_is_kept = left.can_be_kept[of_left] | right.can_be_kept[of_right]
        of_left, of_right = of_left[one_is_kept], of_right[one_is_kept]
        if operator.condition is not None:
            condition = operator.condition
            rows = left.rows.select(list(condition.left)), right.rows.select(list(condition.right))
            holds = condition.holds(rows[0].take(pa.array(of_left)), rows[1].take(pa.array(of_right)), len(of_left))
            of_left, of_right = of_left[holds], of_right[holds]
        left.has_met[of_left] = True
        right.has_met[of_right] = True
        shown = left.rows.select(_shown(operator, 0)), right.rows.select(_shown(operator, 1))
        yield _output(operator, shown[0].take(pa.array(of_left)), shown[1].take(pa.array(of_right)), len(of_left))


def _shown(operator: IntervalJoinOperator, side: int) -> list[str]:
    """Return the columns of ``side`` that are in the output, each once."""
    names = ("left", "right")
    return list(dict.fromkeys(column for _, of, column in operator.columns if of == names[side]))


def _output(operator: IntervalJoinOperator, left: pa.Table | None, right: pa.Table | None, size: int) -> pa.Table:
    """Return output rows; a side that is None is NULL."""
    columns = []
    for (_, side, column), output in zip(operator.columns, operator.output, strict=True):
        source = right if side == "right" else left
        columns.append(pa.nulls(size, output.type) if source is None else source[column])
    return pa.table(columns, schema=operator.output)
