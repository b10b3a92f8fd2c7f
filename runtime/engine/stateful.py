"""A stateful operator as a step between rows: pack, shuffle, process, observe.

The only module of the engine that builds DataFrames. Works the same on Spark classic and Spark Connect.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import reduce
from typing import Literal

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from runtime.engine.arrow_rows import ArrowRows
from runtime.engine.blobs import rows_of_blobs
from runtime.engine.buckets import bucket_ids
from runtime.engine.pack import PACKED_DDL, UNCOUNTED, Packing, as_it_is
from runtime.engine.process import METRICS, OUTPUT_DDL, PartitionProcessor, deferred
from runtime.engine.row_order import ROW_ORDER
from runtime.operator import KIND, InputSpec, StatefulOperator
from runtime.spark.shipping import with_code


def apply_operator(
    name: str,
    operator: StatefulOperator,
    inputs: Sequence[DataFrame | ArrowRows],
    partitions: int,
    *,
    lineage: str | None = None,
    row_order: Collection[int] = (),
    metrics: Sequence[tuple[str, Literal["sum", "max"]]] = (),
) -> ArrowRows:
    """The output of ``operator`` over streaming ``inputs``, which have at least the columns their ``InputSpec`` names.

    ``partitions`` must be the session's ``spark.sql.shuffle.partitions``. Metrics are observed under ``name``;
    ``row_order`` are the numbers of the inputs whose rows have the columns of ``ROW_ORDER``, and are put in that order;
    ``lineage`` says whose state it is (:mod:`plans.compare.carryover`): what is stored under another is dropped.
    ``metrics`` names those in ``Result.metrics``, and how they are aggregated over the partitions.
    """
    buckets = bucket_ids(partitions)
    packed = [
        _pack_input(name, rows, spec, side, buckets, row_order=side in row_order)
        for side, (rows, spec) in enumerate(zip(inputs, operator.inputs, strict=True))
    ]
    processed = (
        reduce(DataFrame.unionAll, packed)
        .groupBy("bucket")
        .transformWithState(
            statefulProcessor=deferred(with_code(PartitionProcessor(name, operator, lineage), packed[0])),
            outputStructType=OUTPUT_DDL,
            outputMode="Append",
            timeMode="ProcessingTime",
        )
    )
    every = [F.sum(metric).alias(metric) for metric in METRICS]
    own = [aggregated("own_metrics", index, *metric) for index, metric in enumerate(metrics)]
    observed = processed.observe(name, *every, *own)
    return ArrowRows(frame=observed.select("blob"), read=rows_of_blobs, schema=operator.output)


def aggregated(column: str, index: int, name: str, how: Literal["sum", "max"]) -> Column:
    """The metric that stands at ``index`` of the arrays in ``column``, over all rows that have one."""
    value = F.get(column, F.lit(index))
    return (F.sum(value) if how == "sum" else F.max(value)).alias(name)


def _pack_input(
    name: str, rows: DataFrame | ArrowRows, spec: InputSpec, side: int, buckets: Sequence[int], *, row_order: bool
) -> DataFrame:
    extra = [*([pa.field(KIND, pa.int8())] if spec.changelog else []), *(ROW_ORDER if row_order else [])]
    schema = pa.schema([*spec.columns, *extra])
    if not isinstance(rows, ArrowRows):
        rows = ArrowRows(frame=rows.select(*map(_quoted, schema.names)), read=as_it_is, schema=schema)
    packing = Packing(
        side=side,
        schema=schema,
        route=spec.hashes[0],
        buckets=buckets,
        presum=None if row_order else spec.presum,  # sums have no order
        read=rows.read,
        steps=rows.steps,
    )
    packed = rows.frame.mapInArrow(with_code(packing, rows.frame), PACKED_DDL)
    if rows.uncounted:
        packed = packed.observe(f"{name}/{side}", F.sum(UNCOUNTED).alias(UNCOUNTED))
    return packed.drop(UNCOUNTED)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
