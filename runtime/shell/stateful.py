"""A stateful operator as a step between DataFrames: hash, pack, shuffle, process, observe, unpack.

The only module of the shell that builds DataFrames. Works the same on Spark classic and Spark Connect.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial, reduce
from typing import Literal

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from runtime.arrival import ARRIVAL
from runtime.operator import KIND, InputSpec, StatefulOperator, hash_column
from runtime.shell.buckets import bucket_ids
from runtime.shell.pack import PACKED_DDL, pack
from runtime.shell.process import METRICS, OUTPUT_DDL, PartitionProcessor
from runtime.shell.unpack import unpack

__all__ = ["aggregated", "apply_operator"]


def apply_operator(
    name: str,
    operator: StatefulOperator,
    inputs: Sequence[DataFrame],
    partitions: int,
    *,
    lineage: str | None = None,
    told: Collection[int] = (),
    metrics: Sequence[tuple[str, Literal["sum", "max"]]] = (),
) -> DataFrame:
    """The output of ``operator`` over streaming ``inputs``, which have at least the columns their ``InputSpec`` names.

    ``partitions`` must be the session's ``spark.sql.shuffle.partitions``. Metrics are observed under ``name``;
    ``told`` are the numbers of the inputs whose rows have the columns of ``ARRIVAL``, and are put in that order;
    ``lineage`` says whose state it is (:mod:`plans.carryover`): what is stored under another is dropped.
    ``metrics`` names those in ``Result.metrics``, and how they are aggregated over the partitions.
    """
    buckets = bucket_ids(partitions)
    packed = [
        _pack_input(frame, spec, side, buckets, told=side in told)
        for side, (frame, spec) in enumerate(zip(inputs, operator.inputs, strict=True))
    ]
    processed = (
        reduce(DataFrame.unionAll, packed)
        .groupBy("bucket")
        .transformWithState(
            statefulProcessor=PartitionProcessor(name, operator, lineage),
            outputStructType=OUTPUT_DDL,
            outputMode="Append",
            timeMode="ProcessingTime",
        )
    )
    every = [F.sum(metric).alias(metric) for metric in METRICS]
    own = [aggregated("own_metrics", index, *metric) for index, metric in enumerate(metrics)]
    observed = processed.observe(name, *every, *own)
    return observed.select("blob").mapInArrow(
        partial(unpack, schema=operator.output), from_arrow_schema(operator.output, prefer_timestamp_ntz=True)
    )


def aggregated(column: str, index: int, name: str, how: Literal["sum", "max"]) -> Column:
    """The metric that stands at ``index`` of the arrays in ``column``, over all rows that have one."""
    value = F.get(column, F.lit(index))
    return (F.sum(value) if how == "sum" else F.max(value)).alias(name)


def _pack_input(frame: DataFrame, spec: InputSpec, side: int, buckets: Sequence[int], *, told: bool) -> DataFrame:
    extra = [*([pa.field(KIND, pa.int8())] if spec.changelog else []), *(ARRIVAL if told else [])]
    names = [*spec.columns.names, *(field.name for field in extra)]
    data = [F.col(_quoted(name)) for name in names]
    hashes = [_hash(columns).alias(hash_column(index)) for index, columns in enumerate(spec.hashes)]
    fields = [*spec.columns, *extra]
    fields += [pa.field(hash_column(index), pa.int64()) for index in range(len(hashes))]
    presum = None if told else spec.presum  # sums have no order
    return frame.select(*data, *hashes).mapInArrow(
        partial(pack, side=side, schema=pa.schema(fields), buckets=buckets, presum=presum), PACKED_DDL
    )


def _hash(columns: Sequence[str]) -> Column:
    return F.xxhash64(*[F.col(_quoted(c)) for c in columns]) if columns else F.lit(42).cast("bigint")


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
