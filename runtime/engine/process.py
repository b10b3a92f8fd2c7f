"""The stateful processor: one call of an operator per partition and micro-batch, on Spark's ``transformWithState``.

It turns blobs into deltas, hands the operator its manifest and segments, stores what comes back, keeps one timer per
partition, and reports metrics as a row of their own. State variables, their names and their schemas are the format of
the checkpoint: they never change; what they hold (:mod:`runtime.engine.saved`) carries a version. Knows no joins and no
aggregates.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle
from pyspark.sql.types import Row

from runtime.engine.blobs import chunks, from_blob, to_blob
from runtime.engine.opened import Opened
from runtime.engine.pack import TICK, hashed
from runtime.engine.row_order import in_order
from runtime.engine.saved import MANIFEST_DDL, Saved, decode, encode
from runtime.engine.segments import Segments, Stored
from runtime.operator import Presum, Result, StatefulOperator
from runtime.spark.by_value import Deferred
from runtime.worker.zip_paths import forget_zip_finders

METRICS = (
    "rows_in",
    "rows_out",
    "state_rows",
    "state_rows_delta",
    "state_bytes",
    "state_bytes_delta",
    "reports",
)
"""Metrics of one call, summed per batch; ``reports`` counts calls, so that totals are known to be whole or partial."""

_opened = Opened()
"""Segments of all partitions that this worker was given; which one it is given next is Spark's choice."""

OUTPUT_DDL = "blob binary, own_metrics array<bigint>, " + ", ".join(f"{name} bigint" for name in METRICS)


class PartitionProcessor:
    """Runs ``operator`` for the one bucket of each partition; ``name`` is the plan's operator id.

    State that was stored under another ``lineage`` is another operator's, and is dropped. To Spark it is in a
    :func:`deferred`.
    """

    def __init__(self, name: str, operator: StatefulOperator, lineage: str | None = None) -> None:
        self._name = name
        self._operator = operator
        self._lineage = lineage

    def open(self, handle: StatefulProcessorHandle, variables: Mapping[str, Any]) -> None:
        forget_zip_finders()
        self._handle = handle
        self._manifest = variables["manifest"]
        self._segments = variables["segments"]

    def handleInputRows(self, key: Any, rows: Iterable[Row], timerValues: Any) -> Iterator[Row]:
        blobs = sorted((row.side, row.task, row.seq, row.blob) for row in rows if row.side != TICK)
        deltas: list[pa.Table | None] = []
        for side, spec in enumerate(self._operator.inputs):
            tables = [from_blob(blob) for found, _, _, blob in blobs if found == side]
            # One hash has come with the rows; the others are made here, as they would only be more to shuffle.
            deltas.append(hashed(in_order(joined(tables, spec.presum)), spec.hashes, 1) if tables else None)
        yield from self._call(deltas, timerValues.getCurrentProcessingTimeInMs(), expired=None)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        deltas = [None] * len(self._operator.inputs)
        expired = expiredTimerInfo.getExpiryTimeInMs()
        yield from self._call(deltas, timerValues.getCurrentProcessingTimeInMs(), expired=expired)

    def _call(self, deltas: Sequence[pa.Table | None], now: int, *, expired: int | None) -> Iterator[Row]:
        before = self._load()
        segments = Segments(before.segments, self._segments, _local_directory(), operator=self._name, opened=_opened)
        manifest = before.manifest
        if before.lineage is not None and before.lineage != self._lineage:
            # Whoever started this run was told, and the checkpoint records that this state begins anew.
            segments.delete_all()
            manifest = None
        result = self._operator.process(deltas, manifest, segments, now)
        # Spark fires what is due in this batch and deletes it afterwards, so the next timer lies in the future.
        timer = None if result.timer is None else max(result.timer, now + 1)
        if timer != before.timer:
            if before.timer is not None and before.timer != expired:
                self._handle.deleteTimer(before.timer)
            if timer is not None:
                self._handle.registerTimer(timer)
        self._save(before, result, timer, segments.commit())
        for chunk in chunks(result.output):
            yield _row(blob=to_blob(chunk))
        yield _row(
            rows_in=result.rows_in,
            rows_out=result.output.num_rows,
            state_rows=result.state_rows,
            state_rows_delta=result.state_rows - before.state_rows,
            state_bytes=result.state_bytes,
            state_bytes_delta=result.state_bytes - before.state_bytes,
            reports=1,
            own_metrics=list(result.metrics),
        )

    def _load(self) -> Saved:
        found = self._manifest.get()
        return self._nothing() if found is None else decode(found, self._name)

    def _nothing(self) -> Saved:
        return Saved(operator=self._name, lineage=self._lineage)

    def _save(self, before: Saved, result: Result, timer: int | None, segments: dict[str, Stored]) -> None:
        after = self._nothing()._replace(
            timer=timer,
            state_rows=result.state_rows,
            state_bytes=result.state_bytes,
            segments=segments,
            manifest=result.manifest,
        )
        if after == before:
            return
        if after == self._nothing():
            self._manifest.clear()
        else:
            self._manifest.update(encode(self._name, after))


def deferred(processor: Any) -> Deferred:
    """A :class:`PartitionProcessor` as Spark gets it, with the state variables of every operator."""
    return Deferred(processor, values={"manifest": MANIFEST_DDL}, maps={"segments": ("id string", "data binary")})


def joined(tables: Sequence[pa.Table], presum: Presum | None) -> pa.Table:
    """One delta in the order of its pieces, some of which may have been summed up."""
    if presum is not None and any(table.schema != tables[0].schema for table in tables):
        summed = presum.schema
        tables = [table if table.schema == summed else presum.lift(table) for table in tables]
    return pa.concat_tables(tables)


def _row(**values: Any) -> Row:
    first = {"blob": values.get("blob"), "own_metrics": values.get("own_metrics")}
    return Row(**first, **{name: values.get(name) for name in METRICS})


def _local_directory() -> Path:
    """Where this worker keeps segments: below the executor's scratch space, which Spark removes with the executor."""
    return Path(os.environ["SPARK_LOCAL_DIRS"].split(",")[0]) / "hintplan-segments"
