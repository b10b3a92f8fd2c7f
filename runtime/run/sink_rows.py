"""What a micro-batch has for a sink: rows of the query that Spark keeps, or a table that has come to the driver.

Both go through the calcs that are the sink's alone, and end with the same columns and types.
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
from hintplan.runtime.build.edges import Edges
from hintplan.runtime.build.stream import apply_operators
from hintplan.runtime.connectors.micro_batch import MicroBatch
from hintplan.runtime.engine.arrow_rows import ROWS, ArrowRows
from hintplan.runtime.engine.row_order import ROW_ORDER
from hintplan.runtime.engine.rows import Rows
from hintplan.runtime.engine.shared import of_branch


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkRows:
    """How the rows of ``sink`` are made of those of ``top``: of a branch of what the query keeps, by ``calcs``.

    Without a ``branch``, what is kept are the rows of ``top`` as Spark has them. ``schema`` is that of the rows that
    the sink gets, ``in_arrow`` what makes them of a table if Arrow can.
    """

    sink: str
    top: str
    branch: int | None
    calcs: Sequence[Operator]
    edges: Edges
    schema: StructType
    in_arrow: ArrowRows | None

    def of_kept(self, kept: DataFrame) -> MicroBatch:
        """The rows of the batch that Spark has in ``kept``."""
        return self._of_rows(_made(kept, self.top, self.branch, self.calcs, self.edges))

    def of_table(self, table: pa.Table) -> MicroBatch:
        """The rows of the batch of which those of the top are ``table``."""
        spark, made = self.edges.spark, self.in_arrow
        if made is None:
            schema = from_arrow_schema(table.schema, prefer_timestamp_ntz=True)
            frame = _in_one_task(spark.createDataFrame(table, schema=schema))
            return self._of_rows(apply_operators(self.calcs, Rows(lambda: frame), edges=self.edges))
        found = reduce(lambda rows, step: step(rows), made.steps, table).cast(made.schema)
        found = found.select(self.schema.fieldNames())
        return MicroBatch(
            spark=spark,
            in_spark=lambda: _in_one_task(spark.createDataFrame(found, schema=self.schema)),
            on_driver=lambda: found,
            counted=lambda: int(found.num_rows),
            is_on_driver=True,
        )

    def _of_rows(self, rows: Rows) -> MicroBatch:
        return MicroBatch(
            spark=self.edges.spark,
            in_spark=partial(_data, rows),
            on_driver=lambda: _data(rows).toArrow(),
            counted=partial(_counted, rows, self.sink),
        )


def sink_rows(
    stream: DataFrame, *, sink: str, top: str, branch: int | None, calcs: Sequence[Operator], edges: Edges
) -> SinkRows:
    """The rows of ``sink`` in the batches of ``stream``; RunError if they cannot be made."""
    rows = _made(stream, top, branch, calcs, edges)
    return SinkRows(
        sink=sink, top=top, branch=branch, calcs=calcs, edges=edges, schema=_data(rows).schema, in_arrow=rows.in_arrow
    )


def _made(frame: DataFrame, top: str, branch: int | None, calcs: Sequence[Operator], edges: Edges) -> Rows:
    """The rows of a sink in a micro-batch, or in the stream, of its query."""
    if branch is None:
        rows = Rows(lambda: frame)
    else:
        found = of_branch(frame, branch, edges.schema(top))
        rows = Rows(partial(found.in_spark, top), found)
    return apply_operators(calcs, rows, edges=edges)


def _in_one_task(few: DataFrame) -> DataFrame:
    """Keep rows of the driver together: Spark would cut them into equal parts, and the changes of a key with them."""
    return few.coalesce(1)


def _data(rows: Rows) -> DataFrame:
    """The rows as Spark has them, without what only orders them."""
    return rows.frame.drop(*ROW_ORDER.names)


def _counted(rows: Rows, sink: str) -> int:
    """How many rows there are; all are made, and dropped."""
    if rows.in_arrow is not None:
        (counted,) = rows.in_arrow.counted(sink).agg(F.sum(ROWS)).collect()
        return int(counted[0] or 0)
    seen = Observation()
    rows.frame.observe(seen, F.count(F.lit(1)).alias(ROWS)).write.format("noop").mode("overwrite").save()
    return int(seen.get[ROWS])
