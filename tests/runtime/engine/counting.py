"""A stateful operator for tests of the engine: keeps all rows in one segment and puts out what came in, with a count.

Nothing of the product's kernels is used, so the tests of the engine stand on their own.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from runtime.operator import KIND, InputSpec, Result, SegmentStore

__all__ = ["CountingOperator", "counting"]


@dataclass(frozen=True)
class CountingOperator:
    """Puts out each data row with ``side``, ``total`` (rows the partition has ever seen) and ``now``.

    With ``log``, each call adds a byte to that file.
    """

    inputs: tuple[InputSpec, ...]
    output: pa.Schema
    log: str | None = None

    def process(
        self, deltas: Sequence[pa.Table | None], manifest: bytes | None, store: SegmentStore, now: int
    ) -> Result:
        if self.log is not None:
            with open(self.log, "ab", buffering=0) as log:
                log.write(b"x")
        generation = json.loads(manifest)["generation"] if manifest else 0
        data = self.inputs[0].columns.names
        came = [
            delta.select(data).append_column("side", pa.array([side] * delta.num_rows, pa.int32()))
            for side, delta in enumerate(deltas)
            if delta is not None
        ]
        kept = [store.read(f"s{generation}")] if generation else []
        if not came:
            return Result(
                output=self.output.empty_table(),
                manifest=manifest,
                rows_in=0,
                state_rows=sum(table.num_rows for table in kept),
                state_bytes=sum(table.nbytes for table in kept),
                oldest_write=None,
            )
        every = pa.concat_tables([*kept, *came])
        if kept:
            store.delete(f"s{generation}")
        size = store.write(f"s{generation + 1}", every)
        fresh = pa.concat_tables(came)
        total = pa.array([every.num_rows] * fresh.num_rows, pa.int64())
        fresh = fresh.append_column("total", total).append_column("now", pa.array([now] * fresh.num_rows, pa.int64()))
        return Result(
            output=fresh.cast(self.output),
            manifest=json.dumps({"generation": generation + 1}).encode(),
            rows_in=fresh.num_rows,
            state_rows=every.num_rows,
            state_bytes=size,
            oldest_write=now,
        )


def counting(columns: pa.Schema, key: tuple[str, ...], *, sides: int = 1, log: str | None = None) -> CountingOperator:
    """A counting operator over ``sides`` insert-only inputs with ``columns``, routed by ``key``."""
    spec = InputSpec(columns=columns, hashes=(key,), changelog=False)
    output = pa.schema([*columns, ("side", pa.int32()), ("total", pa.int64()), ("now", pa.int64())])
    assert KIND not in output.names
    return CountingOperator(inputs=(spec,) * sides, output=output, log=log)
