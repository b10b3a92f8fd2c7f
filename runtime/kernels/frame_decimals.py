"""Sums of DECIMAL over ranges of rows, exact, on four numbers of 32 bits each, which are added up separately.

>>> from decimal import Decimal
>>> numbers = pa.array([Decimal("0.5"), Decimal("-2.5"), Decimal("4")], pa.decimal128(38, 1))
>>> sums = prefix_sums(numbers)
>>> as_decimals([limb[[1, 2, 3]] - limb[[0, 0, 1]] for limb in sums], numbers.type).to_pylist()
[Decimal('0.5'), Decimal('-2.0'), Decimal('1.5')]
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.runtime.state.layout import Int64s

_LOW = np.int64(0xFFFFFFFF)
_MOST = 10**38
_MOST_HIGH, _MOST_LOW = np.uint64(_MOST >> 64), np.uint64(_MOST & ((1 << 64) - 1))


def prefix_sums(numbers: pa.Array) -> list[Int64s]:
    """Return the sums of all numbers before each place, and of all, from the lowest 32 bits to the highest.

    NULL adds nothing.
    """
    numbers = pc.fill_null(numbers, pa.scalar(0, pa.int64()).cast(numbers.type))
    words = np.frombuffer(numbers.buffers()[1], np.int64)[2 * numbers.offset : 2 * (numbers.offset + len(numbers))]
    low, high = words[0::2], words[1::2]
    limbs = (low & _LOW, (low >> 32) & _LOW, high & _LOW, high >> 32)
    return [np.concatenate((np.zeros(1, np.int64), np.cumsum(limb))) for limb in limbs]


def as_decimals(limbs: Sequence[Int64s], kind: pa.DataType) -> pa.Array:
    """Return the sums as decimals of type ``kind``; NULL for a sum of more than 38 digits."""
    first, second, third, fourth = limbs
    second = second + (first >> 32)
    third = third + (second >> 32)
    fourth = fourth + (third >> 32)
    low = ((second & _LOW) << 32) | (first & _LOW)
    high = (fourth << 32) | (third & _LOW)
    fits = (fourth >= -(1 << 31)) & (fourth < 1 << 31)
    is_negative = high < 0
    size_low = np.where(is_negative, -low, low).view(np.uint64)
    size_high = np.where(is_negative, ~high + (low == 0), high).view(np.uint64)
    fits &= (size_high < _MOST_HIGH) | ((size_high == _MOST_HIGH) & (size_low < _MOST_LOW))
    words = np.empty(2 * len(low), np.int64)
    words[0::2], words[1::2] = low, high
    validity = pa.array(fits).buffers()[1]
    return pa.Array.from_buffers(kind, len(low), [validity, pa.py_buffer(words)])
