"""How many numbers a group has, their mean and their squared distances from it, for variances and deviations.

As Welford's algorithm has them, in Flink, too, so that nothing is lost of numbers that differ little from each other. A
column of moments is a struct, of which NULL has no numbers. What rows do may also take numbers away: then a struct has
these as moments of their own. Source of the formulas: Chan, Golub, LeVeque, Updating Formulae and a Pairwise Algorithm
for Computing Sample Variances (1979).

>>> both = folded(np.array([0, 0, 0]), each(pa.array([1.0, 2.0, 6.0]), None), 1)
>>> both.to_pylist()
[{'count': 3, 'mean': 3.0, 'squares': 14.0}]
>>> one_less = folded(np.array([0]), each(pa.array([2.0]), np.array([-1])), 1)
>>> combined(both, one_less).to_pylist()
[{'count': 2, 'mean': 3.5, 'squares': 12.5}]
>>> variance(combined(both, one_less), 1).to_pylist()
[12.5]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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

    def take(self, rows: Any) -> _Moments:
        return _Moments(counts=self.counts[rows], means=self.means[rows], squares=self.squares[rows])

    def columns(self) -> list[pa.Array]:
        return [pa.array(self.counts), pa.array(self.means), pa.array(self.squares)]


def each(numbers: pa.Array, weights: Int64s | None) -> pa.StructArray:
    """What each of ``numbers`` adds, or takes where its weight is -1; NULL adds nothing."""
    counts = np.asarray(numbers.is_valid()).astype(np.int64)
    if weights is not None:
        counts = counts * weights
    means = np.asarray(pc.fill_null(numbers, 0.0))
    return _column(_Moments(counts=counts, means=means, squares=np.zeros(len(counts))))


def folded(groups: Int64s, parts: pa.StructArray, size: int) -> pa.StructArray:
    """The ``parts`` of each of ``size`` groups as one."""
    rows = _Moments.of(parts)
    added = _sum(groups, rows, size)
    less = np.flatnonzero(rows.counts < 0)
    if not less.size:
        return _column(added)
    gone = rows.take(less)
    taken = _sum(groups[less], _Moments(counts=-gone.counts, means=gone.means, squares=gone.squares), size)
    return pa.StructArray.from_arrays([*added.columns(), *taken.columns()], [*_names(), *_TAKEN])


def combined(old: pa.StructArray, change: pa.StructArray) -> pa.StructArray:
    """``old`` moments with what a batch added and took."""
    size = len(old)
    both = pa.concat_arrays([_column(_Moments.of(old)), _column(_Moments.of(change))])
    whole = _sum(np.tile(np.arange(size), 2), _Moments.of(both), size)
    if change.type.num_fields > len(TYPE):
        whole = _without(whole, _Moments.of(change, len(TYPE)))
    return _column(whole)


def variance(column: pa.StructArray, less: int) -> pa.Array:
    """Squares by count, of which as many are ``less`` as a sample has no part in; NULL of no more numbers than that."""
    found = _Moments.of(column)
    divisor = found.counts - less
    with np.errstate(invalid="ignore", over="ignore"):
        return pa.array(found.squares / np.maximum(divisor, 1), mask=divisor <= 0)


def _sum(groups: Int64s, parts: _Moments, size: int) -> _Moments:
    """The sum of those that add something."""
    rows = np.flatnonzero(parts.counts > 0)
    group, part = groups[rows], parts.take(rows)
    counts = np.zeros(size, np.int64)
    np.add.at(counts, group, part.counts)
    some = np.maximum(counts, 1)
    pivot = np.zeros(size)
    pivot[group[::-1]] = part.means[::-1]  # that of the first row, so that equal numbers have no distance at all
    with np.errstate(invalid="ignore", over="ignore"):
        distance = part.means - pivot[group]
        shift = np.bincount(group, part.counts * distance, size) / some
        rest = distance - shift[group]
        squares = np.bincount(group, part.squares + part.counts * rest * rest, size)
        return _Moments(counts=counts, means=pivot + shift, squares=squares.astype(np.float64))


def _without(whole: _Moments, gone: _Moments) -> _Moments:
    """``whole`` less what is ``gone``; nothing if that is as much."""
    counts = np.maximum(whole.counts - gone.counts, 0)
    some = np.maximum(counts, 1)
    with np.errstate(invalid="ignore", over="ignore"):
        distance = gone.means - whole.means
        means = np.where(gone.counts > 0, whole.means - distance * (gone.counts / some), whole.means)
        between = distance * distance * whole.counts * (gone.counts / some)
        squares = np.maximum(np.where(gone.counts > 0, whole.squares - gone.squares - between, whole.squares), 0)
    means[counts == 0] = 0
    squares[(counts == 0) | ((counts == 1) & np.isfinite(means))] = 0
    return _Moments(counts=counts, means=means, squares=squares)


def _names() -> list[str]:
    return [field.name for field in TYPE]


def _column(moments: _Moments) -> pa.StructArray:
    return pa.StructArray.from_arrays(moments.columns(), _names())
