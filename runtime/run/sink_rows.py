"""The rows of a micro-batch for one sink: rows that Spark has cached, or a table that was collected to the driver.

Both pass through the calcs that only this sink has, and end with the same columns and types.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce

import pyarrow as pa
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from hintplan.plans.operators import Operator
from hintplan.runtime.builders.edges import Edges
from hintplan.runtime.builders.stream import apply_operators
from hintplan.runtime.connectors.micro_batch import MicroBatch
from hintplan.runtime.engine.row_order import ROW_ORDER
from hintplan.runtime.engine.rows import ROWS, ArrowRows, EdgeRows
from hintplan.runtime.engine.shared import of_branch


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkRows:
    """A recipe for the rows of ``sink``: ``calcs`` applied to the rows of ``top``, in a branch of the cached rows.

    Without a ``branch``, the cached rows are the rows of ``top``. ``schema`` is the schema of the sink's rows.
    ``in_arrow`` computes them from a table, if Arrow can.
    """

    sink: str
    top: str
    branch: int | None
    calcs: Sequence[Operator]
    edges: Edges
    schema: StructType
    in_arrow: ArrowRows | None

    def of_kept(self, kept: DataFrame) -> MicroBatch:
        """Return the rows of the batch that Spark has cached in ``kept``."""
        return self._of_rows(_made(kept, self.top, self.branch, self.calcs, self.edges))

    def of_table(self, table: pa.Table) -> MicroBatch:
        """Return the rows of a batch whose rows of ``top`` are ``table``."""
        spark, made = self.edges.spark, self.in_arrow
        if made is None:
            schema = from_arrow_schema(table.schema, prefer_timestamp_ntz=True)
            frame = _in_one_task(spark.createDataFrame(table, schema=schema))
            return self._of_rows(apply_operators(self.calcs, EdgeRows(lambda: frame), edges=self.edges))
        computed = reduce(lambda rows, step: step(rows), made.transformations, table).cast(made.schema)
        computed = computed.select(self.schema.fieldNames())
        return MicroBatch(
            spark=spark,
            in_spark=lambda: _in_one_task(spark.createDataFrame(computed, schema=self.schema)),
            on_driver=lambda: computed,
            counted=lambda: int(computed.num_rows),
            is_on_driver=True,
        )

    def _of_rows(self, rows: EdgeRows) -> MicroBatch:
        return MicroBatch(
            spark=self.edges.spark,
            in_spark=partial(_data, rows),
            on_driver=lambda: _data(rows).toArrow(),
            counted=partial(_counted, rows, self.sink),
            in_arrow=rows.in_arrow,
        )


def sink_rows(
    stream: DataFrame, *, sink: str, top: str, branch: int | None, calcs: Sequence[Operator], edges: Edges
) -> SinkRows:
    """Return the rows of ``sink`` in the batches of ``stream``; RunError if they cannot be computed."""
    rows = _made(stream, top, branch, calcs, edges)
    return SinkRows(
        sink=sink, top=top, branch=branch, calcs=calcs, edges=edges, schema=_data(rows).schema, in_arrow=rows.in_arrow
    )


def _made(frame: DataFrame, top: str, branch: int | None, calcs: Sequence[Operator], edges: Edges) -> EdgeRows:
    """Return the rows of a sink in a micro-batch or in the stream of its query."""
    if branch is None:
        rows = EdgeRows(lambda: frame)
    else:
        arrow_rows = of_branch(frame, branch, edges.schema(top))
        rows = EdgeRows(partial(arrow_rows.in_spark, top), arrow_rows)
    return apply_operators(calcs, rows, edges=edges)


def _in_one_task(few: DataFrame) -> DataFrame:
    """Keep rows of the driver in one task: Spark would split them, and separate the changes of a key."""
    return few.coalesce(1)


def _data(rows: EdgeRows) -> DataFrame:
    """Return the rows as a DataFrame without the columns that only order them."""
    return rows.frame.drop(*ROW_ORDER.names)


def _counted(rows: EdgeRows, sink: str) -> int:
    """Return the number of rows; compute all of them, and drop them."""
    if rows.in_arrow is not None:
        (counted,) = rows.in_arrow.counted(sink).agg(F.sum(ROWS)).collect()
        return int(counted[0] or 0)
    seen = Observation()
    rows.frame.observe(seen, F.count(F.lit(1)).alias(ROWS)).write.format("noop").mode("overwrite").save()
    return int(seen.get[ROWS])
