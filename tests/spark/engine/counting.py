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

    ``idle`` ms after a call without a newer one, the partition drops its rows and puts out one row of nulls with
    ``total`` = -(rows dropped).
    """

    inputs: tuple[InputSpec, ...]
    output: pa.Schema
    idle: int | None = None

    def process(
        self, deltas: Sequence[pa.Table | None], manifest: bytes | None, store: SegmentStore, now: int
    ) -> Result:
        saved = json.loads(manifest) if manifest else {"generation": 0, "touched": now}
        data = self.inputs[0].columns.names
        came = [
            delta.select(data).append_column("side", pa.array([side] * delta.num_rows, pa.int32()))
            for side, delta in enumerate(deltas)
            if delta is not None
        ]
        kept = store.read(f"s{saved['generation']}") if saved["generation"] else None
        rows_in = sum(table.num_rows for table in came)
        if not came:
            if kept is not None and self.idle is not None and now >= saved["touched"] + self.idle:
                store.delete(f"s{saved['generation']}")
                nulls = [pa.nulls(1, f.type) for f in self.output if f.name not in ("total", "now")]
                nulls += [pa.array([-kept.num_rows], pa.int64()), pa.array([now], pa.int64())]
                return Result(
                    output=pa.Table.from_arrays(nulls, schema=self.output),
                    manifest=None, timer=None, rows_in=0, state_rows=0, state_bytes=0,
                )  # fmt: skip
            timer = saved["touched"] + self.idle if kept is not None and self.idle is not None else None
            rows = kept.num_rows if kept is not None else 0
            size = kept.nbytes if kept is not None else 0
            return Result(
                output=self.output.empty_table(),
                manifest=manifest, timer=timer, rows_in=0, state_rows=rows, state_bytes=size,
            )  # fmt: skip
        every = pa.concat_tables([*([kept] if kept is not None else []), *came])
        generation = saved["generation"] + 1
        if kept is not None:
            store.delete(f"s{saved['generation']}")
        size = store.write(f"s{generation}", every)
        fresh = pa.concat_tables(came)
        total = pa.array([every.num_rows] * fresh.num_rows, pa.int64())
        fresh = fresh.append_column("total", total).append_column("now", pa.array([now] * fresh.num_rows, pa.int64()))
        return Result(
            output=fresh.cast(self.output),
            manifest=json.dumps({"generation": generation, "touched": now}).encode(),
            timer=None if self.idle is None else now + self.idle,
            rows_in=rows_in,
            state_rows=every.num_rows,
            state_bytes=size,
        )


def counting(columns: pa.Schema, key: tuple[str, ...], *, sides: int = 1, idle: int | None = None) -> CountingOperator:
    """A counting operator over ``sides`` insert-only inputs with ``columns``, routed by ``key``."""
    spec = InputSpec(columns=columns, hashes=(key,), changelog=False)
    output = pa.schema([*columns, ("side", pa.int32()), ("total", pa.int64()), ("now", pa.int64())])
    assert KIND not in output.names
    return CountingOperator(inputs=(spec,) * sides, output=output, idle=idle)
