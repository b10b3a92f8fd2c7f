"""Sums of DOUBLE and DECIMAL, added row by row as in Flink, so that they do not depend on the cut into micro-batches.

Each addition of two DOUBLEs rounds, and an infinite sum stays infinite. A DECIMAL of more than 38 digits is lost, even
if later rows take it below that again. If the rows of a micro-batch were summed up first, the result would depend on
the cut. So DOUBLEs are added row by row to the previous sum. DECIMALs are too, in the rare group whose sum might exceed
38 digits on the way.

Rows that are summed up before the shuffle count as one row here, so rounding may differ. Rows whose amounts come near
the limits of their type are not summed up before the shuffle.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.runtime.kernels.accumulators import Accumulator, combine, summed
from hintplan.runtime.state.identity import Mask
from hintplan.runtime.state.layout import Int64s

Doubles = npt.NDArray[np.float64]

_DIGITS = 38
_EXACT = Context(prec=2 * _DIGITS)
_DOUBTFUL = 0.999 * 10.0**_DIGITS
"""Less than the limit of 38 digits, because amounts are added up as DOUBLE, which has 15 digits."""
_LARGE = {True: 1e32, False: 1e300}
"""A group whose amounts add up to this is not summed up before the shuffle; for DECIMAL (True) in units of its last
digit.
"""


def has_range(accumulator: Accumulator) -> bool:
    """Return True for a sum that depends on the order of additions."""
    kind = accumulator.type
    return accumulator.is_linear and (pa.types.is_decimal(kind) or pa.types.is_floating(kind))


def added_in_steps(accumulator: Accumulator, groups: Int64s, part: pa.Array, old: pa.Array) -> pa.Array:
    """Add the ``part`` of each row to the sums ``old`` of all groups, one row after the other."""
    size = len(old)
    if pa.types.is_floating(accumulator.type):
        places = np.concatenate((np.arange(size), groups))
        numbers = np.concatenate([np.asarray(pc.fill_null(values, 0.0)) for values in (old, part)])
        return pa.array(np.bincount(places, numbers, size))  # bincount adds in the order of the rows
    (change,) = summed(groups, [accumulator], [part], size)
    new, amounts, before = combine(accumulator, old, change), _amounts(accumulator, part), _amounts(accumulator, old)
    if amounts.max(initial=0) * len(amounts) + before.max(initial=0) < _DOUBTFUL:
        return new
    doubtful = before + np.bincount(groups, amounts, size) >= _DOUBTFUL
    doubtful_groups, rows = np.flatnonzero(doubtful), np.flatnonzero(doubtful[groups])
    totals = dict(zip(doubtful_groups.tolist(), old.take(pa.array(doubtful_groups)).to_pylist(), strict=True))
    for group, value in zip(groups[rows].tolist(), part.take(pa.array(rows)).to_pylist(), strict=True):
        totals[group] = _added(totals[group], value, accumulator.type)
    place = np.full(size, -1, np.int64)
    place[doubtful_groups] = np.arange(len(doubtful_groups))
    stepwise = pa.array(list(totals.values()), accumulator.type).take(pa.array(place, mask=place < 0))
    return pc.if_else(pa.array(doubtful), stepwise, new)


def are_large(accumulators: Sequence[Accumulator], groups: Int64s, parts: Sequence[pa.Array], size: int) -> Mask:
    """Return a mask of the groups whose rows may, together with earlier rows, exceed the range of their type."""
    is_large = np.zeros(size, np.bool_)
    for accumulator, part in zip(accumulators, parts, strict=True):
        amounts, large = _amounts(accumulator, part), _LARGE[pa.types.is_decimal(accumulator.type)]
        with np.errstate(over="ignore"):
            if amounts.max(initial=0) * len(amounts) >= large:
                is_large |= np.bincount(groups, amounts, size) >= large
    return is_large


def _amounts(accumulator: Accumulator, numbers: pa.Array) -> Doubles:
    """Return the absolute values of ``numbers``; 0 for NULL and for DOUBLEs that are not finite."""
    amounts: Doubles = np.abs(np.asarray(pc.fill_null(pc.cast(numbers, pa.float64()), 0.0)))
    if pa.types.is_decimal(accumulator.type):
        amounts *= 10.0**accumulator.type.scale
        return amounts
    amounts[~np.isfinite(amounts)] = 0.0
    return amounts


def _added(total: Decimal | None, value: Decimal | None, kind: pa.DataType) -> Decimal | None:
    if total is None or value is None:
        return None
    new_total = _EXACT.add(total, value)
    return new_total if new_total.copy_abs() < 10 ** (_DIGITS - kind.scale) else None
