"""Sums of DOUBLE and DECIMAL as Flink has them, one row after the other, however rows are cut into micro-batches.

Each addition of two DOUBLEs rounds, and a sum that has become infinite stays so; a DECIMAL of more than 38 digits is
lost, whatever is taken away later. Were the rows of a micro-batch summed up first, all this would depend on the cut.
So DOUBLEs are added row by row to the sum that there was, and so are the DECIMALs of a group that might have more than
38 digits on the way, which hardly any has.

Rows that are summed up before they are shuffled count as one row here: rounding may differ. Rows that could leave the
range of their type are not summed up before: those whose amounts are not far below its limits.
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
"""Amounts are added up as DOUBLE, which has 15 digits."""
_LARGE = {True: 1e32, False: 1e300}
"""From which amounts on rows are left alone, of decimals in units of their last digit."""


def has_range(accumulator: Accumulator) -> bool:
    """Whether it is a sum that depends on the order of additions."""
    kind = accumulator.type
    return accumulator.is_linear and (pa.types.is_decimal(kind) or pa.types.is_floating(kind))


def added_in_steps(accumulator: Accumulator, groups: Int64s, part: pa.Array, old: pa.Array) -> pa.Array:
    """The sums ``old`` of all groups with the ``part`` of each row, one row after the other."""
    size = len(old)
    if pa.types.is_floating(accumulator.type):
        places = np.concatenate((np.arange(size), groups))
        numbers = np.concatenate([np.asarray(pc.fill_null(each, 0.0)) for each in (old, part)])
        return pa.array(np.bincount(places, numbers, size))  # adds in the order of the rows
    (change,) = summed(groups, [accumulator], [part], size)
    new, amounts, before = combine(accumulator, old, change), _amounts(accumulator, part), _amounts(accumulator, old)
    if amounts.max(initial=0) * len(amounts) + before.max(initial=0) < _DOUBTFUL:
        return new
    doubtful = before + np.bincount(groups, amounts, size) >= _DOUBTFUL
    which, rows = np.flatnonzero(doubtful), np.flatnonzero(doubtful[groups])
    totals = dict(zip(which.tolist(), old.take(pa.array(which)).to_pylist(), strict=True))
    for group, value in zip(groups[rows].tolist(), part.take(pa.array(rows)).to_pylist(), strict=True):
        totals[group] = _added(totals[group], value, accumulator.type)
    place = np.full(size, -1, np.int64)
    place[which] = np.arange(len(which))
    found = pa.array(list(totals.values()), accumulator.type).take(pa.array(place, mask=place < 0))
    return pc.if_else(pa.array(doubtful), found, new)


def are_large(accumulators: Sequence[Accumulator], groups: Int64s, parts: Sequence[pa.Array], size: int) -> Mask:
    """Which groups have rows whose sums may leave the range, beside what was added before."""
    found = np.zeros(size, np.bool_)
    for accumulator, part in zip(accumulators, parts, strict=True):
        amounts, large = _amounts(accumulator, part), _LARGE[pa.types.is_decimal(accumulator.type)]
        with np.errstate(over="ignore"):
            if amounts.max(initial=0) * len(amounts) >= large:
                found |= np.bincount(groups, amounts, size) >= large
    return found


def _amounts(accumulator: Accumulator, numbers: pa.Array) -> Doubles:
    """The amounts of ``numbers`` without their signs; 0 of none, and of those that are not finite."""
    found: Doubles = np.abs(np.asarray(pc.fill_null(pc.cast(numbers, pa.float64()), 0.0)))
    if pa.types.is_decimal(accumulator.type):
        found *= 10.0**accumulator.type.scale
        return found
    found[~np.isfinite(found)] = 0.0
    return found


def _added(total: Decimal | None, value: Decimal | None, kind: pa.DataType) -> Decimal | None:
    if total is None or value is None:
        return None
    found = _EXACT.add(total, value)
    return found if found.copy_abs() < 10 ** (_DIGITS - kind.scale) else None
