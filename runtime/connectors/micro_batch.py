"""The rows of a micro-batch for one of several sinks, and the id of the query that writes them.

A connector requests the rows in the form that it needs; the other form is not computed. A small batch is already on the
driver.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.utils import is_remote

from hintplan.plans.errors import RunError
from hintplan.runtime.engine.rows import ArrowRows

_QUERY_ID = "sql.streaming.queryId"


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroBatch:
    """The rows of a sink, whose last column may be the row kind: in Spark, on the driver, or only their number.

    ``is_on_driver`` is true if the rows are already on the driver, so that Spark has nothing to do for ``on_driver``.
    ``in_arrow`` are the rows in the tasks that hold them, if they are in Arrow there.
    """

    spark: SparkSession
    in_spark: Callable[[], DataFrame]
    on_driver: Callable[[], pa.Table]
    counted: Callable[[], int]
    is_on_driver: bool = False
    in_arrow: ArrowRows | None = None


def query_id(spark: SparkSession, checkpoint: str | None) -> str:
    """Return the id of the query whose micro-batch is being written; a query keeps its id across restarts."""
    if not is_remote():
        return spark.sparkContext.getLocalProperty(_QUERY_ID) or ""
    if checkpoint is None:
        raise RunError(
            "on Spark Connect, a sink that remembers its batches needs a checkpoint, to recognise replayed batches",
            hint="run with --checkpoint",
        )
    metadata = spark.read.text(f"{checkpoint.rstrip('/')}/metadata", wholetext=True).collect()
    return str(json.loads(metadata[0][0])["id"])
