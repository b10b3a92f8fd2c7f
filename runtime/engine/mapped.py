"""Runs Python code over Arrow batches between two DataFrames, and observes what its tasks counted.

The code is the worker's side, :mod:`hintplan.runtime.worker.metered`. Works the same on Spark classic and Spark
Connect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from hintplan.runtime.engine.arrow_rows import Aggregate, aggregated
from hintplan.runtime.spark.map_in_arrow import map_in_arrow
from hintplan.runtime.worker.metered import METRICS_COLUMN, with_metrics


def map_batches(
    frame: DataFrame,
    run: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    output: pa.Schema,
    name: Any,
    metrics: Sequence[tuple[str, Aggregate]],
) -> DataFrame:
    """The rows in ``output`` that ``run`` makes of ``frame``; ``metrics`` of its tasks are observed under ``name``,
    which is an Observation in batch mode.
    """
    mapped = map_in_arrow(frame, run, from_arrow_schema(with_metrics(output), prefer_timestamp_ntz=True))
    columns = (aggregated(METRICS_COLUMN, index, *metric) for index, metric in enumerate(metrics))
    observed = mapped.observe(name, *columns)
    return observed.where(F.col(METRICS_COLUMN).isNull()).drop(METRICS_COLUMN)
