"""A stateful operator as a step between rows: pack, exchange, and run where its output is read.

This is the only module of the engine that builds the DataFrames of stateful operators. To Spark they are stateless.
Works the same on classic Spark and Spark Connect.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hintplan.runtime.engine.buckets import bucket_ids
from hintplan.runtime.engine.marks import MARK_COLUMNS, Marks
from hintplan.runtime.engine.pack import PACKED_DDL, Packing, Ticking, as_it_is, with_their_marks
from hintplan.runtime.engine.process import METRICS, NOW, TIME_METRICS, USES, Process
from hintplan.runtime.engine.row_order import ROW_ORDER
from hintplan.runtime.engine.rows import Aggregate, ArrowRows, PackedFor
from hintplan.runtime.engine.watermarks import EventTime
from hintplan.runtime.operator import KIND, InputSpec, StatefulOperator, TimeOperator
from hintplan.runtime.spark.map_in_arrow import map_in_arrow
from hintplan.runtime.spark.names import named_function, quoted
from hintplan.runtime.storage.place import Place
from hintplan.runtime.worker.metered import METRICS_COLUMN


def apply_operator(
    operator: StatefulOperator | TimeOperator,
    inputs: Sequence[DataFrame | ArrowRows],
    place: Place,
    *,
    row_order: Collection[int] = (),
    metrics: Sequence[tuple[str, Aggregate]] = (),
    calling: Sequence[tuple[DataFrame, Marks]] = (),
    event_time: EventTime | None = None,
    marked: Collection[int] = (),
) -> ArrowRows:
    """Return the output of ``operator`` over streaming ``inputs``, which have at least the columns of its ``inputs``.

    - ``place`` is the place of its state, and names the operator under which its metrics are observed.
    - ``row_order`` are the numbers of the inputs that have the columns of ``ROW_ORDER`` and are sorted by them.
    - ``metrics`` are the names of the values in ``Result.metrics``, and their aggregation over partitions.
    - ``calling`` are streams without rows, in whose batches all partitions are called, and the marks that they get.
    - ``event_time`` is given for a TimeOperator; its output carries the marks of the operator. The output of another
      operator carries the marks of its inputs.
    - ``marked`` are the numbers of the inputs that carry marks. Their rows have ``MARK_COLUMNS`` if they are Spark's.
    """
    buckets = bucket_ids(place.partitions)
    packed = [
        _pack_input(place.operator, rows, spec, side, buckets, row_order=side in row_order, marks=side in marked)
        for side, (rows, spec) in enumerate(zip(inputs, operator.inputs, strict=True))
    ]
    for waking, marks in calling:
        ticking = named_function(Ticking(buckets, marks), f"for {place.operator}")
        packed.append(map_in_arrow(waking, ticking, PACKED_DDL).drop(METRICS_COLUMN))
    # Spark would write the time into its generated code and compile that code in each batch. For the sort of an array
    # it generates no code.
    time = F.array_sort(F.array(F.current_timestamp()))[0]
    now = F.unix_millis(time).cast("string").alias(NOW)
    exchanged = reduce(DataFrame.unionAll, packed).select("*", now).repartition(place.partitions, "bucket")
    return ArrowRows(
        frame=exchanged,
        read=Process(operator=operator, place=place, buckets=buckets, event_time=event_time),
        schema=operator.output,
        metrics=(*METRICS, *(() if event_time is None else TIME_METRICS), *metrics, USES),
        observed_as=place.operator,
        marks=event_time is not None or bool(marked),
    )


def _pack_input(
    name: str,
    rows: DataFrame | ArrowRows,
    spec: InputSpec,
    side: int,
    buckets: Sequence[int],
    *,
    row_order: bool,
    marks: bool,
) -> DataFrame:
    if isinstance(rows, ArrowRows) and rows.packed == PackedFor(operator=name, side=side):
        return rows.frame
    extra = [*([pa.field(KIND, pa.int8())] if spec.changelog else []), *(ROW_ORDER if row_order else [])]
    schema = pa.schema([*spec.columns, *extra])
    if not isinstance(rows, ArrowRows):
        chosen = rows.select(*map(quoted, (*schema.names, *(MARK_COLUMNS.names if marks else ()))))
        rows = ArrowRows(frame=chosen, read=with_their_marks if marks else as_it_is, schema=schema)
    packing = Packing(
        side=side,
        schema=schema,
        route=spec.hashes[0],
        buckets=buckets,
        presum=None if row_order else spec.presum,  # sums have no order
        tables=rows.tables(),
        marks=marks,
    )
    packed = map_in_arrow(rows.frame, named_function(packing, f"for {name}"), PACKED_DDL)
    return rows.observe(packed, f"{name}/{side}").drop(METRICS_COLUMN)
