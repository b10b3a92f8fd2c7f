"""The moments of a group's numbers, for variances and deviations: count, mean, and squared distances from the mean.

Welford's algorithm, which Flink uses too, computes them; it loses no precision for numbers that differ little from each
other. A column of moments is a struct; NULL means no numbers. A change may also take numbers away: then its struct has
further fields with the moments of these numbers. Source of the formulas: Chan, Golub, LeVeque, Updating Formulae and a
Pairwise Algorithm for Computing Sample Variances (1979).

>>> both = folded_moments(np.array([0, 0, 0]), each(pa.array([1.0, 2.0, 6.0]), None), 1)
>>> both.to_pylist()
[{'count': 3, 'mean': 3.0, 'squares': 14.0}]
>>> one_less = folded_moments(np.array([0]), each(pa.array([2.0]), np.array([-1])), 1)
>>> combined(both, one_less).to_pylist()
[{'count': 2, 'mean': 3.5, 'squares': 12.5}]
>>> variance(combined(both, one_less), 1).to_pylist()
[12.5]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.runtime.state.layout import Int64s

Doubles = npt.NDArray[np.float64]
TYPE = pa.struct([("count", pa.int64()), ("mean", pa.float64()), ("squares", pa.float64())])
_TAKEN = ("taken", "taken mean", "taken squares")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Moments:
    counts: Int64s
    means: Doubles
    squares: Doubles

    @staticmethod
    def of(column: pa.StructArray, first: int = 0) -> _Moments:
        counts, means, squares = (pc.fill_null(pc.struct_field(column, [first + i]), 0) for i in range(3))
        return _Moments(counts=np.asarray(counts), means=np.asarray(means), squares=np.asarray(squares))

    def take(self, rows: Int64s | slice) -> _Moments:
        return _Moments(counts=self.counts[rows], means=self.means[rows], squares=self.squares[rows])

    def columns(self) -> list[pa.Array]:
        return [pa.array(self.counts), pa.array(self.means), pa.array(self.squares)]


def each(numbers: pa.Array, weights: Int64s | None) -> pa.StructArray:
    """Return the moments that each of ``numbers`` adds, or takes away if its weight is -1; NULL adds nothing."""
    counts = np.asarray(numbers.is_valid()).astype(np.int64)
    if weights is not None:
        counts = counts * weights
    means = np.asarray(pc.fill_null(numbers, 0.0))
    return _column(_Moments(counts=counts, means=means, squares=np.zeros(len(counts))))


def folded_moments(groups: Int64s, parts: pa.StructArray, size: int) -> pa.StructArray:
    """Fold the ``parts`` of each of ``size`` groups."""
    rows = _Moments.of(parts)
    added = _sum(groups, rows, size)
    less = np.flatnonzero(rows.counts < 0)
    if not less.size:
        return _column(added)
    gone = rows.take(less)
    taken = _sum(groups[less], _Moments(counts=-gone.counts, means=gone.means, squares=gone.squares), size)
    return pa.StructArray.from_arrays([*added.columns(), *taken.columns()], [*_names(), *_TAKEN])


def combined(old: pa.StructArray, change: pa.StructArray) -> pa.StructArray:
    """Combine ``old`` moments with the moments that a batch added and took away."""
    size = len(old)
    both = pa.concat_arrays([_column(_Moments.of(old)), _column(_Moments.of(change))])
    whole = _sum(np.tile(np.arange(size), 2), _Moments.of(both), size)
    if change.type.num_fields > len(TYPE):
        whole = _without(whole, _Moments.of(change, len(TYPE)))
    return _column(whole)


def variance(column: pa.StructArray, less: int) -> pa.Array:
    """Return squares / (count - ``less``); NULL unless the count is larger than ``less``.

    ``less`` is 0 for a population and 1 for a sample.
    """
    parts = _Moments.of(column)
    divisor = parts.counts - less
    with np.errstate(invalid="ignore", over="ignore"):
        return pa.array(parts.squares / np.maximum(divisor, 1), mask=divisor <= 0)


def _sum(groups: Int64s, parts: _Moments, size: int) -> _Moments:
    """Return the sum, per group, of the parts with a positive count."""
    rows = np.flatnonzero(parts.counts > 0)
    group, part = groups[rows], parts.take(rows)
    counts = np.zeros(size, np.int64)
    np.add.at(counts, group, part.counts)
    divisor = np.maximum(counts, 1)
    pivot = np.zeros(size)
    pivot[group[::-1]] = part.means[::-1]  # the mean of the group's first row, so that equal numbers have distance 0
    with np.errstate(invalid="ignore", over="ignore"):
        distance = part.means - pivot[group]
        shift = np.bincount(group, part.counts * distance, size) / divisor
        residual = distance - shift[group]
        squares = np.bincount(group, part.squares + part.counts * residual * residual, size)
        return _Moments(counts=counts, means=pivot + shift, squares=squares.astype(np.float64))


def _without(whole: _Moments, gone: _Moments) -> _Moments:
    """Remove the moments ``gone`` from ``whole``; no numbers are left if the counts are equal."""
    counts = np.maximum(whole.counts - gone.counts, 0)
    divisor = np.maximum(counts, 1)
    with np.errstate(invalid="ignore", over="ignore"):
        distance = gone.means - whole.means
        means = np.where(gone.counts > 0, whole.means - distance * (gone.counts / divisor), whole.means)
        between = distance * distance * whole.counts * (gone.counts / divisor)
        squares = np.maximum(np.where(gone.counts > 0, whole.squares - gone.squares - between, whole.squares), 0)
    means[counts == 0] = 0
    squares[(counts == 0) | ((counts == 1) & np.isfinite(means))] = 0
    return _Moments(counts=counts, means=means, squares=squares)


def _names() -> list[str]:
    return [field.name for field in TYPE]


def _column(moments: _Moments) -> pa.StructArray:
    return pa.StructArray.from_arrays(moments.columns(), _names())
