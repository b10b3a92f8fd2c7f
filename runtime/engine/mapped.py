"""Runs Python code over Arrow batches between two DataFrames, and observes the metrics of its tasks.

:mod:`hintplan.runtime.worker.metered` is the worker's side. Works the same on classic Spark and Spark Connect.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from hintplan.runtime.engine.rows import Aggregate, aggregated
from hintplan.runtime.spark.between_tasks import MapBatches
from hintplan.runtime.spark.map_in_arrow import map_in_arrow
from hintplan.runtime.worker.metered import METRICS_COLUMN, with_metrics


def map_batches(
    frame: DataFrame,
    run: MapBatches,
    output: pa.Schema,
    name: str | Observation,
    metrics: Sequence[tuple[str, Aggregate]],
) -> DataFrame:
    """Return the rows, with schema ``output``, that ``run`` makes from ``frame``.

    The ``metrics`` of its tasks are observed under ``name``, which is an Observation in batch mode.
    """
    mapped = map_in_arrow(frame, run, from_arrow_schema(with_metrics(output), prefer_timestamp_ntz=True))
    columns = (aggregated(METRICS_COLUMN, index, *metric) for index, metric in enumerate(metrics))
    observed = mapped.observe(name, *columns)
    return observed.where(F.col(METRICS_COLUMN).isNull()).drop(METRICS_COLUMN)
