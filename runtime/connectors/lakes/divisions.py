"""The partition values of rows in a data lake table: a column's value, or a transform of it.

The transforms follow Iceberg's specification ("Partition Transforms"), and return NULL for NULL. Needs no library of a
lake, so workers need only pyarrow.

>>> at = pa.array([-1, 90_000_000_000], pa.timestamp("us"))
>>> Division(name="day", column="at", transform="day").values(at).to_pylist()
[datetime.date(1969, 12, 31), datetime.date(1970, 1, 2)]
>>> Division(name="part", column="id", transform="bucket[16]").values(pa.array([34, None])).to_pylist()
[3, None]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.runtime.connectors.lakes.bucket_hash import bucket_hash, unscaled
from hintplan.runtime.state.identity import without_chunks

_LARGE = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}
_MICROS = {"hour": 3_600_000_000, "day": 86_400_000_000}


@dataclass(frozen=True, slots=True, kw_only=True)
class Division:
    """The partition field ``name``: the ``transform``, in Iceberg's notation, of a column."""

    name: str
    column: str
    transform: str = "identity"

    def values(self, rows: pa.Array | pa.ChunkedArray) -> pa.Array:
        """Return the partition value of each row; years, months and hours count from 1970, days are DATE."""
        column = without_chunks(rows)
        if column.type in _LARGE:
            column = column.cast(_LARGE[column.type])
        kind, size = _parsed(self.transform)
        return _KNOWN[kind](column, kind, size)


def is_known(transform: str) -> bool:
    """Return true if this module can compute the transform."""
    return _parsed(transform)[0] in _KNOWN


def _parsed(transform: str) -> tuple[str, int]:
    kind, _, size = transform.removesuffix("]").partition("[")
    return kind, int(size or 0)


def _identity(column: pa.Array, kind: str, size: int) -> pa.Array:
    return column


def _void(column: pa.Array, kind: str, size: int) -> pa.Array:
    return pa.nulls(len(column), column.type)


def _time(column: pa.Array, kind: str, size: int) -> pa.Array:
    moments = _numbers(column.cast(pa.timestamp("us") if pa.types.is_date(column.type) else column.type))
    if kind in _MICROS:
        counted = _made(np.floor_divide(moments, _MICROS[kind]), column)
        return counted.cast(pa.date32()) if kind == "day" else counted
    return _made(moments.view("datetime64[us]").astype(f"datetime64[{kind[0].upper()}]").astype(np.int64), column)


def _truncate(column: pa.Array, kind: str, size: int) -> pa.Array:
    if pa.types.is_string(column.type):
        return pc.utf8_slice_codeunits(column, 0, size)
    if pa.types.is_binary(column.type):
        return pc.binary_slice(column, 0, size)
    if pa.types.is_decimal(column.type):
        return pa.array([_truncated(value, size) for value in column.to_pylist()], column.type)
    numbers = _numbers(column)
    # A result below the minimum of the type wraps around, as in Java.
    return pa.array(numbers - numbers % size, mask=_nulls(column)).cast(column.type, safe=False)


def _truncated(value: Decimal | None, size: int) -> Decimal | None:
    if value is None:
        return None
    number, digits = unscaled(value), value.as_tuple().exponent
    return Decimal((int(number < 0), (), 0)) + Decimal(number - number % size).scaleb(int(digits))


def _bucket(column: pa.Array, kind: str, size: int) -> pa.Array:
    return _made((bucket_hash(column) & 0x7FFFFFFF) % size, column)


_KNOWN: Mapping[str, Callable[[pa.Array, str, int], pa.Array]] = {
    "identity": _identity, "void": _void, "truncate": _truncate, "bucket": _bucket,
    "year": _time, "month": _time, "day": _time, "hour": _time,
}  # fmt: skip


def _numbers(column: pa.Array) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.asarray(column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False))


def _nulls(column: pa.Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
    return np.asarray(column.is_null().to_numpy(zero_copy_only=False))


def _made(numbers: np.ndarray[Any, Any], column: pa.Array) -> pa.Array:
    return pa.array(numbers.astype(np.int32), mask=_nulls(column))
