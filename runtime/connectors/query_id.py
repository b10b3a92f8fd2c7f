"""The name under which a sink knows the query that writes to it: the id that Spark gave it with its new checkpoint."""

from __future__ import annotations

import json

from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from hintplan.plans.errors import RunError

_QUERY_ID = "sql.streaming.queryId"


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
