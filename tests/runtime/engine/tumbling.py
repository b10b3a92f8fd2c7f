"""An operator that counts the rows of a key in windows, and a model of few lines that puts out the same."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hintplan.runtime.operator import (
    NEVER,
    Inheritance,
    InputSpec,
    Result,
    SegmentStore,
    Watermarks,
    hash_column,
)

ROWS = pa.schema([("k", pa.int64()), ("ts", pa.int64())])
"""A key, and a time in ms."""
COUNTS = pa.schema([("k", pa.int64()), ("ts", pa.int64()), ("n", pa.int64())])
"""A key, the last ms of a window, and the number of rows."""
_STORED = pa.schema([("hash", pa.int64()), *COUNTS])


@dataclass(frozen=True, slots=True, kw_only=True)
class TumblingCount:
    """Counts the rows of each key in windows of ``size`` ms, of one or more inputs together."""

    size: int
    sides: int = 1

    @property
    def inputs(self) -> tuple[InputSpec, ...]:
        return (InputSpec(columns=ROWS, hashes=(("k",),), changelog=False),) * self.sides

    @property
    def output(self) -> pa.Schema:
        return COUNTS

    def process(
        self,
        deltas: Sequence[pa.Table | None],
        manifest: bytes | None,
        store: SegmentStore,
        now: int,
        watermarks: Watermarks,
    ) -> Result:
        counts: Counter[tuple[int, int, int]] = Counter()
        for name in _segments(manifest):
            for hashed, key, last, number in _tuples(store.read(name)):
                counts[hashed, key, last] += number
            store.delete(name)
        late = rows_in = 0
        for delta in deltas:
            if delta is None:
                continue
            for hashed, key, time in _tuples(delta.select([hash_column(0), *ROWS.names])):
                last = time // self.size * self.size + self.size - 1
                rows_in += 1
                if last <= watermarks.before:
                    late += 1
                else:
                    counts[hashed, key, last] += 1
        closed = sorted((key, last, n) for (_, key, last), n in counts.items() if last <= watermarks.after)
        kept = sorted((*place, n) for place, n in counts.items() if place[2] > watermarks.after)
        name = str(max(map(int, _segments(manifest)), default=0) + 1)
        if kept:
            store.write(name, _table(kept, _STORED))
        return Result(
            output=_table(closed, COUNTS),
            manifest=json.dumps([name]).encode() if kept else None,
            rows_in=rows_in,
            state_rows=len(kept),
            state_bytes=0,
            oldest_write=None,
            late_rows=late,
            waiting_rows=len(kept),
        )

    def inherit(self, store: Inheritance) -> bytes | None:
        names = [
            str(number)
            for number, (part, old) in enumerate(
                [(part, old) for part, manifest in enumerate(store.manifests) for old in _segments(manifest)]
            )
            if store.inherit(str(number), part, old) is not None
        ]
        return json.dumps(names).encode() if names else None


def _segments(manifest: bytes | None) -> list[str]:
    return [] if manifest is None else list(json.loads(manifest))


def _tuples(rows: pa.Table) -> list[tuple[int, ...]]:
    return list(zip(*(column.to_pylist() for column in rows.columns), strict=True))


def _table(rows: Sequence[tuple[int, ...]], schema: pa.Schema) -> pa.Table:
    columns = np.array(rows, np.int64).reshape(len(rows), len(schema)).T
    return pa.Table.from_arrays([pa.array(column) for column in columns], schema=schema)


Row = tuple[int, int]


@dataclass(slots=True)
class Model:
    """One operator over sources whose watermarks are the highest time, less ``delay``."""

    size: int
    delay: int = 0

    def counts(
        self, batches: Sequence[Mapping[str, Sequence[Row]]], sources: Sequence[str]
    ) -> list[list[tuple[int, int, int]]]:
        """The rows that each batch puts out, sorted; a batch has the rows of each source."""
        highest: dict[str, int] = {}
        windows: Counter[tuple[int, int]] = Counter()
        before, output = NEVER, []
        for batch in batches:
            for source in sources:
                times = [time for _, time in batch.get(source, ())]
                if times:
                    highest[source] = max([*times, highest.get(source, NEVER)])
            for source in sources:
                for key, time in batch.get(source, ()):
                    last = time // self.size * self.size + self.size - 1
                    if last > before:
                        windows[key, last] += 1
            if len(highest) == len(sources):
                before = max(before, min(highest.values()) - self.delay)
            closed = sorted((key, last, n) for (key, last), n in windows.items() if last <= before)
            for key, last, _ in closed:
                del windows[key, last]
            output.append(closed)
        return output
