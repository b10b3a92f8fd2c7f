"""The accumulators of aggregate functions over frames, or over all rows of a segment up to each row.

They have the meaning and the types of :mod:`hintplan.runtime.kernels.accumulators`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.runtime.kernels.accumulators import Accumulator
from hintplan.runtime.kernels.folds import moments
from hintplan.runtime.kernels.frame_decimals import as_decimals, prefix_sums
from hintplan.runtime.kernels.frames import (
    Frames,
    Numbers,
    Parts,
    Segments,
    extremes,
    first_valid,
    folded,
    last_valid,
    running_extremes,
    running_sums,
    sums_of_distinct,
)
from hintplan.runtime.state.layout import Int64s


def over_frames(accumulator: Accumulator, parts: pa.Array, frames: Frames, segments: Segments) -> pa.Array:
    """Return ``accumulator`` over each frame of the ``parts`` that rows add to it, which are sorted into segments."""
    kind = accumulator.type
    if accumulator.is_extreme:
        return _at(parts, extremes(parts, frames, largest=accumulator.function == "max"))
    if accumulator.is_in_order:
        return _at(parts, (first_valid if accumulator.function == "first" else last_valid)(parts, frames))
    if accumulator.is_moments:
        return _moments(parts, frames)
    if pa.types.is_floating(kind):
        values = np.asarray(pc.fill_null(parts, 0.0))
        (sums,) = folded([values], frames, lambda a, b: [a[0] + b[0]], [0.0])
        return pa.array(sums)
    if pa.types.is_decimal(kind):
        return as_decimals([limb[frames.ends] - limb[frames.begins] for limb in prefix_sums(parts)], kind)
    sums = _prefix_sums(parts)
    return pa.array(sums[frames.ends] - sums[frames.begins])


def over_distinct(
    accumulator: Accumulator, values: pa.Array, parts: pa.Array, frames: Frames, segments: Segments
) -> pa.Array:
    """Return a linear ``accumulator`` of whole numbers over the distinct ``values`` of each frame.

    ``parts`` are what the rows add to it.
    """
    amounts = np.asarray(pc.fill_null(parts, 0))
    return pa.array(sums_of_distinct(values, amounts, segments, frames))


def running(accumulator: Accumulator, parts: pa.Array, segments: Segments) -> pa.Array:
    """Return ``accumulator`` over the ``parts`` of each segment up to each row of the batch.

    A kept row is the accumulator after the rows before.
    """
    kind, places = accumulator.type, segments.places
    whole = Frames(begins=segments.starts[segments.group], ends=places + 1)
    if accumulator.is_extreme:
        return _at(parts, running_extremes(parts, segments, largest=accumulator.function == "max"))
    if accumulator.is_in_order or accumulator.is_moments:
        return over_frames(accumulator, parts, whole, segments)
    if pa.types.is_floating(kind):
        return pa.array(running_sums(np.asarray(pc.fill_null(parts, 0.0)), segments)[places])
    if pa.types.is_decimal(kind):
        return _running_decimals(parts, segments, kind)
    sums = _prefix_sums(parts)
    return pa.array(sums[whole.ends] - sums[whole.begins])


def _running_decimals(parts: pa.Array, segments: Segments, kind: pa.DataType) -> pa.Array:
    """Return running sums; a sum of more than 38 digits is lost, as are all later ones of its segment."""
    begins = np.repeat(segments.starts, segments.ends - segments.starts)
    every = np.arange(len(parts)) + 1
    sums = as_decimals([limb[every] - limb[begins] for limb in prefix_sums(parts)], kind)
    is_lost = ~np.asarray(sums.is_valid()) | ~np.asarray(parts.is_valid())
    if is_lost.any():
        lost = np.concatenate(([0], np.cumsum(is_lost)))
        sums = pc.if_else(pa.array(lost[every] > lost[begins]), pa.scalar(None, kind), sums)
    return sums.take(pa.array(segments.places))


def _prefix_sums(parts: pa.Array) -> Int64s:
    """Return the sums of all parts before each place, and of all; they wrap around."""
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(np.asarray(pc.fill_null(parts, 0)), dtype=np.int64)))


def _at(values: pa.Array, places: Int64s) -> pa.Array:
    """Return the values at ``places``; NULL for -1."""
    return values.take(pa.array(places, mask=places < 0))


def _moments(parts: pa.StructArray, frames: Frames) -> pa.StructArray:
    columns = [np.asarray(pc.fill_null(pc.struct_field(parts, [number]), 0)) for number in range(3)]
    with np.errstate(invalid="ignore", over="ignore"):
        whole = folded(columns, frames, _both_moments, (0, 0.0, 0.0))
    return pa.StructArray.from_arrays([pa.array(column) for column in whole], names=[f.name for f in moments.TYPE])


def _both_moments(left: Parts, right: Parts) -> list[Numbers]:
    """Return count, mean and squared distances of the numbers of both sides."""
    counts = left[0] + right[0]
    distance, share = right[1] - left[1], right[0] / np.maximum(counts, 1)
    means = np.where(left[0] == 0, right[1], np.where(right[0] == 0, left[1], left[1] + distance * share))
    between = np.where((left[0] == 0) | (right[0] == 0), 0.0, distance * distance * left[0] * share)
    return [counts, means, left[2] + right[2] + between]
