"""Runs Python code over Arrow batches between two DataFrames, and observes the metrics of its tasks.

:mod:`hintplan.runtime.worker.metered` is the worker's side. Works the same on classic Spark and Spark Connect.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from hintplan.runtime.engine.marks import Marks, give_marks, mark_rows, take_marks
from hintplan.runtime.engine.rows import Aggregate, aggregated, with_marks
from hintplan.runtime.spark.between_tasks import MapBatches
from hintplan.runtime.spark.map_in_arrow import map_in_arrow
from hintplan.runtime.spark.names import named_function
from hintplan.runtime.worker.metered import METRICS_COLUMN, data, with_metrics


def map_batches(
    frame: DataFrame,
    run: MapBatches,
    output: pa.Schema,
    name: str | Observation,
    metrics: Sequence[tuple[str, Aggregate]],
    *,
    marks: bool = False,
) -> DataFrame:
    """Return the rows, with schema ``output``, that ``run`` makes from ``frame``.

    The ``metrics`` of its tasks are observed under ``name``, which is an Observation in batch mode. With ``marks``, the
    rows of ``frame`` have ``MARK_COLUMNS``, and so has the result; ``run`` gets the rows that count without them.
    """
    if marks:
        run, output = named_function(partial(_around_marks, run=run, output=output), str(name)), with_marks(output)
    mapped = map_in_arrow(frame, run, from_arrow_schema(with_metrics(output), prefer_timestamp_ntz=True))
    columns = (aggregated(METRICS_COLUMN, index, *metric) for index, metric in enumerate(metrics))
    observed = mapped.observe(name, *columns)
    return observed.where(F.col(METRICS_COLUMN).isNull()).drop(METRICS_COLUMN)


def _around_marks(batches: Iterable[pa.RecordBatch], *, run: MapBatches, output: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Apply ``run`` to the rows that count, and pass the marks of all rows on at the end."""
    marks: Marks = {}
    counting = (take_marks(pa.Table.from_batches([batch]), marks) for batch in batches)
    for batch in run(batch for table in counting for batch in table.to_batches()):
        rows = pa.Table.from_batches([batch])
        marked = give_marks(rows.drop_columns(METRICS_COLUMN)).append_column(
            rows.schema.field(METRICS_COLUMN), rows[METRICS_COLUMN]
        )
        yield from marked.to_batches()
    if marks:
        yield from data([mark_rows(marks, output)], with_marks(output))
