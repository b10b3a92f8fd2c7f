"""An operator that keeps the last value of each key, and what its state and output must be, as a dictionary says it.

It writes, replaces and deletes segments as the tables of state do, and reads all it has at each batch that has rows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pyarrow as pa

from hintplan.runtime.operator import SegmentStore
from hintplan.runtime.storage.partition import PartitionStore

Row = tuple[int, int | None]
"""A key and its value; None takes the key away."""
Output = tuple[tuple[int, int | None, int | None], ...]
"""Each key with the value that it had and the one that it has."""

_MOST = 3
_SCHEMA = pa.schema([("key", pa.int64()), ("value", pa.int64())])


def expected(before: Mapping[int, int], rows: Sequence[Row]) -> tuple[dict[int, int], Output]:
    """The state after ``rows``, and what is put out."""
    state, output = dict(before), []
    for key, value in rows:
        output.append((key, state.get(key), value))
        if value is None:
            state.pop(key, None)
        else:
            state[key] = value
    return state, tuple(output)


def process(rows: Sequence[Row], tables: bytes | None, store: SegmentStore) -> tuple[Output, bytes | None, int, int]:
    """What is put out, the operator's manifest, and the rows and bytes of its state."""
    segments: list[tuple[str, int]] = [] if tables is None else [(name, size) for name, size in json.loads(tables)]
    if not rows:
        return (), tables, sum(size for _, size in segments), 0
    last = max((int(name) for name, _ in segments), default=0)
    state = read_state(tables, store)
    after, output = expected(state, rows)
    if not after:
        for name, _ in segments:
            store.delete(name)
        return output, None, 0, 0
    changed = {key: after.get(key, -1) for key, _ in rows}
    if len(segments) < _MOST:
        store.write(str(last + 1), _table(changed))
        segments = [*segments, (str(last + 1), len(changed))]
    elif len(after) % 2:
        store.write(str(last + 1), _table(after))
        for name, _ in segments:
            store.delete(name)
        segments = [(str(last + 1), len(after))]
    else:
        pieces = [dict([item]) for item in sorted(after.items())]
        store.write_pieces(str(last + 1), map(_table, pieces))
        store.write(str(last + 2), _table({}))
        store.delete(str(last + 2))
        for name, _ in segments:
            store.delete(name)
        segments = [(str(last + 1), len(after))]
    return output, json.dumps(segments).encode(), sum(size for _, size in segments), 0


def compact(store: PartitionStore, path: str) -> tuple[bytes | None, int, int]:
    """All segments in one, unless there is only one: the operator's manifest, and the rows and bytes of its state."""
    segments = [] if store.tables is None else json.loads(store.tables)
    if not any(store.is_stored_with_others(segment, but=path) for segment, _ in segments) and len(segments) < 2:
        return store.tables, sum(size for _, size in segments), 0
    state = read_state(store.tables, store)
    name = str(max(int(name) for name, _ in segments) + 1)
    for old, _ in segments:
        store.delete(old)
    store.write(name, _table(state))
    return json.dumps([(name, len(state))]).encode(), len(state), 0


def read_state(tables: bytes | None, store: SegmentStore) -> dict[int, int]:
    """The value of each key."""
    state: dict[int, int] = {}
    for name, _ in [] if tables is None else json.loads(tables):
        segment = store.read(name)
        for key, value in zip(*(column.to_numpy().tolist() for column in segment.columns), strict=True):
            state.pop(key, None)
            if value >= 0:
                state[key] = value
    return state


def _table(values: Mapping[int, int]) -> pa.Table:
    columns = [pa.array(list(values), pa.int64()), pa.array(list(values.values()), pa.int64())]
    return pa.Table.from_arrays(columns, schema=_SCHEMA)
