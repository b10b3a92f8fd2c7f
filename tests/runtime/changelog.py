"""Changelogs in tests: rows as tuples with a row kind, deltas as Arrow tables, outputs folded to multisets."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa

from hintplan.runtime.operator import KIND, InputSpec, hash_column

KINDS = ("+I", "-U", "+U", "-D")
Event = tuple[str, tuple]  # row kind, row


def stable_hash(values: tuple) -> int:
    """A stand-in for xxhash64: any stable 64-bit hash will do for the kernels."""
    return int.from_bytes(hashlib.blake2b(repr(values).encode(), digest_size=8).digest(), "big", signed=True)


def colliding_hash(values: tuple) -> int:
    """A hash under which everything collides."""
    return 7


def delta(spec: InputSpec, events: Sequence[Event], hasher: Callable[[tuple], int] = stable_hash) -> pa.Table | None:
    """The events as a delta in the shape that ``spec`` asks for."""
    if not events:
        return None
    names = spec.columns.names
    arrays = [
        pa.array([row[index] for _, row in events], spec.columns.field(index).type) for index in range(len(names))
    ]
    table = pa.table(arrays, schema=spec.columns)
    if spec.changelog:
        table = table.append_column(KIND, pa.array([KINDS.index(kind) for kind, _ in events], pa.int8()))
    else:
        assert all(kind == "+I" for kind, _ in events)
    for index, columns in enumerate(spec.hashes):
        places = [names.index(column) for column in columns]
        hashes = [hasher(tuple(row[place] for place in places)) for _, row in events]
        table = table.append_column(hash_column(index), pa.array(hashes, pa.int64()))
    return table


def events_of(output: pa.Table) -> list[Event]:
    """The rows of an operator's output, in order, with their kinds; NaN is one object, so that rows can be compared."""
    columns = [_values(output[name]) for name in output.column_names if name != KIND]
    rows = list(zip(*columns, strict=True)) if columns else [()] * output.num_rows
    kinds = output[KIND].to_pylist() if KIND in output.column_names else [0] * len(rows)
    return [(KINDS[kind], row) for kind, row in zip(kinds, rows, strict=True)]


def _values(column: pa.ChunkedArray) -> list:
    values = column.to_pylist()
    if pa.types.is_nested(column.type):
        return [hashable(value, column.type) for value in values]  # so that rows can be counted
    return [math.nan if v != v else v for v in values] if pa.types.is_floating(column.type) else values


def hashable(value: Any, kind: pa.DataType) -> Any:
    """A nested value as tuples, and as sets of the entries of a MAP, which have no order."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        return frozenset((hashable(k, kind.key_type), hashable(v, kind.item_type)) for k, v in value)
    if pa.types.is_list(kind):
        return tuple(hashable(each, kind.value_type) for each in value)
    if pa.types.is_struct(kind):
        return tuple(hashable(value[field.name], field.type) for field in kind)
    return value


def fold(events: Iterable[Event], into: Counter | None = None) -> Counter:
    """The multiset that a changelog leaves, on top of ``into``."""
    result = Counter() if into is None else Counter(into)
    for kind, row in events:
        result[row] += 1 if kind in ("+I", "+U") else -1
        if not result[row]:
            del result[row]
    return result


def net(events: Iterable[Event]) -> Counter:
    """The change a changelog makes, negative counts included."""
    return fold(events)
