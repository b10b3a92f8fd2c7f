"""Frames over rows that are sorted by key: each is a range of places, and its fold is computed for all frames at once.

The rows of a key are a segment: some rows that were kept from earlier batches, then the rows of the batch. A fold over
any range adds up parts of 1, 2, 4 rows and so on, from left to right. So it takes nothing away again, and a result does
not depend on the rows outside its frame.

>>> segments = Segments.of(kept=np.array([1, 0]), fresh=np.array([1, 2]))
>>> segments.starts.tolist(), segments.places.tolist(), segments.order.tolist()
([0, 2], [1, 2, 3], [0, 1, 2, 3])
>>> frames = Frames(begins=np.array([0, 0, 1]), ends=np.array([1, 3, 4]))
>>> folded([np.array([1, 2, 4, 8])], frames, lambda a, b: [a[0] + b[0]], [0])[0].tolist()
[1, 7, 14]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.runtime.state.identity import encode_groups
from hintplan.runtime.state.layout import Int64s

Numbers = npt.NDArray[Any]
Parts = Sequence[Numbers]
"""The columns of the parts that are folded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frames:
    """The range of places of each row of a batch. Both bounds ascend from row to row."""

    begins: Int64s
    ends: Int64s


@dataclass(frozen=True, slots=True, kw_only=True)
class Segments:
    """The rows of each key: ``starts`` and ``ends`` of its segment, and the ``places`` of the rows of the batch.

    ``group`` is the key of each row of the batch. ``order`` sorts all kept rows, and after them all rows of the batch,
    into segments; both are sorted by key.
    """

    starts: Int64s
    ends: Int64s
    group: Int64s
    places: Int64s
    order: Int64s

    @staticmethod
    def of(*, kept: Int64s, fresh: Int64s) -> Segments:
        """Return the segments of keys with as many ``kept`` rows, and as many ``fresh`` rows of the batch."""
        ends = np.cumsum(kept + fresh)
        starts = ends - kept - fresh
        places = spread_from(starts + kept, fresh)
        order = np.empty(int(ends[-1]) if len(ends) else 0, np.int64)
        number = int(kept.sum())
        order[spread_from(starts, kept)] = np.arange(number)
        order[places] = number + np.arange(len(places))
        group = np.repeat(np.arange(len(fresh)), fresh)
        return Segments(starts=starts, ends=ends, group=group, places=places, order=order)


def spread_from(starts: Int64s, counts: Int64s) -> Int64s:
    """Return ``counts[i]`` consecutive places from each of ``starts``.

    >>> spread_from(np.array([5, 9]), np.array([2, 1])).tolist()
    [5, 6, 9]
    """
    places: Int64s = np.arange(int(counts.sum())) + np.repeat(starts - (np.cumsum(counts) - counts), counts)
    return places


def packed(groups: Int64s, times: Int64s, first: int, last: int) -> Int64s | None:
    """Return a number for each group and time that ascends by group, then by time from ``first`` to ``last``.

    Return None if there are too many groups for such numbers.

    >>> packed(np.array([0, 0, 1]), np.array([5, 9, 5]), 5, 9).tolist()
    [0, 4, 5]
    """
    span = last - first + 1
    if (int(groups.max(initial=0)) + 1) * span >= 1 << 62:
        return None
    numbers: Int64s = groups * span + (times - first)
    return numbers


def order_by(groups: Int64s, times: Int64s, arrivals: Int64s) -> Int64s:
    """Return the places that sort rows by group, then by time, then by arrival."""
    numbers = packed(groups, times, int(times.min(initial=0)), int(times.max(initial=0)))
    if numbers is None:
        return np.lexsort((arrivals, times, groups))
    order = np.argsort(numbers)
    numbers = numbers[order]
    again = numbers[1:] == numbers[:-1]
    if again.any():
        order = order[np.lexsort((arrivals[order], numbers))]
    return order


def folded(
    parts: Parts, frames: Frames, combine: Callable[[Parts, Parts], Parts], empty: Sequence[float]
) -> list[Numbers]:
    """Fold the ``parts`` of each frame from left to right.

    ``combine`` is associative, and ``empty`` is neutral.
    """
    result = [np.full(len(frames.begins), value, part.dtype) for part, value in zip(parts, empty, strict=True)]
    lengths, at = frames.ends - frames.begins, frames.begins.copy()
    longest, width = int(lengths.max(initial=0)), 1
    while width <= longest:
        rows = np.flatnonzero(lengths & width)
        if rows.size:
            added = combine([each[rows] for each in result], [part[at[rows]] for part in parts])
            for each, new in zip(result, added, strict=True):
                each[rows] = new
            at[rows] += width
        if 2 * width <= longest:
            parts = combine([part[:-width] for part in parts], [part[width:] for part in parts])
        width *= 2
    return result


def running_sums(values: npt.NDArray[np.float64], segments: Segments) -> npt.NDArray[np.float64]:
    """Add up the values of each segment one after the other, because each addition of two DOUBLEs rounds."""
    result = values.copy()
    lengths = segments.ends - segments.starts
    is_long = lengths > _LONG
    for start, end in zip(segments.starts[is_long].tolist(), segments.ends[is_long].tolist(), strict=True):
        np.cumsum(values[start:end], out=result[start:end])
    starts, lengths = segments.starts[~is_long], lengths[~is_long]
    for number in range(1, int(lengths.max(initial=0))):
        rows = starts[lengths > number] + number
        result[rows] += result[rows - 1]
    return result


_LONG = 64
"""The most rows of a segment that is added up together with other segments, a row of each at a time."""


def extremes(values: pa.Array, frames: Frames, *, largest: bool) -> Int64s:
    """Return the place of the smallest or ``largest`` of the ``values`` of each frame; -1 if all are NULL."""
    in_order, ranks = _ranked(values, largest=largest)
    (best,) = folded([ranks], frames, lambda a, b: [np.minimum(a[0], b[0])], [len(values)])
    return _found(in_order, best)


def running_extremes(values: pa.Array, segments: Segments, *, largest: bool) -> Int64s:
    """Return the place of the smallest or ``largest`` value of each segment up to each row of the batch; or -1."""
    in_order, ranks = _ranked(values, largest=largest)
    size = len(values) + 1
    of_segment = np.repeat(np.arange(len(segments.starts)), segments.ends - segments.starts)
    above = (of_segment + 1) * size  # numbers fall from segment to segment, so that no minimum comes from another
    best = np.minimum.accumulate(ranks - above) + above
    return _found(in_order, best[segments.places])


def _ranked(values: pa.Array, *, largest: bool) -> tuple[Int64s, Int64s]:
    """Return the places of ``values``, best first, and the rank of each place; NULL has the rank behind all."""
    order = "descending" if largest else "ascending"
    in_order = np.asarray(pc.array_sort_indices(values, order=order, null_placement="at_end")).astype(np.int64)
    if largest and pa.types.is_floating(values.type):  # NaN is larger than all numbers
        is_nan = np.asarray(pc.fill_null(pc.is_nan(values), False))[in_order]
        in_order = np.concatenate((in_order[is_nan], in_order[~is_nan]))
    ranks = np.empty(len(values), np.int64)
    ranks[in_order] = np.arange(len(values))
    if values.null_count:
        ranks[~np.asarray(values.is_valid())] = len(values)
    return in_order, ranks


def _found(in_order: Int64s, ranks: Int64s) -> Int64s:
    """Return the place with each of ``ranks``; -1 for the rank behind all."""
    return np.append(in_order, -1)[ranks]


def first_valid(values: pa.Array, frames: Frames) -> Int64s:
    """Return the place of the first value of each frame that is not NULL, or -1."""
    places = np.where(np.asarray(values.is_valid()), np.arange(len(values)), len(values))
    following = np.append(np.minimum.accumulate(places[::-1])[::-1], len(values))
    first = following[frames.begins]
    return np.where(first < frames.ends, first, -1)


def last_valid(values: pa.Array, frames: Frames) -> Int64s:
    """Return the place of the last value of each frame that is not NULL, or -1."""
    places = np.where(np.asarray(values.is_valid()), np.arange(len(values)), -1)
    preceding = np.append(np.maximum.accumulate(places), -1)
    last = preceding[frames.ends - 1]
    return np.where((last >= frames.begins) & (frames.ends > frames.begins), last, -1)


def sums_of_distinct(values: pa.Array, amounts: Int64s, segments: Segments, frames: Frames) -> Int64s:
    """Return the sum of the ``amounts`` of the distinct ``values`` of each frame. NULL has the amount 0.

    A value counts at its first place in a frame: in all frames that begin after the place before, and contain it. They
    follow each other.
    """
    of_segment = np.repeat(np.arange(len(segments.starts)), segments.ends - segments.starts)
    codes, _ = encode_groups([pa.array(of_segment), values])
    order = np.argsort(codes, kind="stable")
    before = np.full(len(order), -1, np.int64)
    again = codes[order[1:]] == codes[order[:-1]]
    before[order[1:][again]] = order[:-1][again]
    place = np.arange(len(order))
    first = np.maximum(np.searchsorted(frames.begins, before, "right"), np.searchsorted(frames.ends, place, "right"))
    last = np.maximum(first, np.searchsorted(frames.begins, place, "right"))
    changes = np.zeros(len(frames.begins) + 1, np.int64)
    np.add.at(changes, first, amounts)
    np.add.at(changes, last, -amounts)
    return np.cumsum(changes)[:-1]
