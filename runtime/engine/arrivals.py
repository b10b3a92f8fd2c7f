"""Restores the order of arrival of a source whose rows Spark reads in pieces, with all rows of a key in one task.

It serves changes that reach a sink without a stateful operator in between, which would sort them. Rows are packed into
blobs by key, as for a stateful operator, and their values are not changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame

from hintplan.runtime.engine.blobs import row_chunks
from hintplan.runtime.engine.buckets import bucket_ids
from hintplan.runtime.engine.pack import PACKED_DDL, Packing, as_it_is
from hintplan.runtime.engine.row_order import ROW_ORDER, in_row_order
from hintplan.runtime.engine.rows import ArrowRows, Report
from hintplan.runtime.engine.shared import unpacked
from hintplan.runtime.spark.map_in_arrow import map_in_arrow
from hintplan.runtime.spark.names import named_function, quoted
from hintplan.runtime.worker.metered import METRICS_COLUMN


def as_arrived(rows: DataFrame, schema: pa.Schema, key: Sequence[str], partitions: int, name: str) -> ArrowRows:
    """Return the ``rows`` of the scan ``name`` with ``schema``, sorted by their columns of ``ROW_ORDER``.

    These columns are dropped, unless ``schema`` has them. Rows with equal values in ``key`` are in one of the
    ``partitions``.
    """
    packed_schema = pa.schema([*(field for field in schema if field not in ROW_ORDER), *ROW_ORDER])
    packing = Packing(
        side=0,
        schema=packed_schema,
        route=tuple(key),
        buckets=bucket_ids(partitions),
        tables=as_it_is,
        as_they_are=True,
    )
    packed = map_in_arrow(rows.select(*map(quoted, packed_schema.names)), named_function(packing, name), PACKED_DDL)
    frame = packed.where("side >= 0").drop(METRICS_COLUMN).repartition(partitions, "bucket")
    return ArrowRows(frame=frame, read=_Arrived(schema=schema), schema=schema)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Arrived:
    """Reads the packed rows of a task in order of arrival."""

    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch], report: Report) -> Iterator[pa.Table]:
        tables = list(unpacked(batches, report))
        if tables:
            rows = in_row_order(pa.concat_tables(tables), keep=True)
            yield from row_chunks(rows.select(self.schema.names))
