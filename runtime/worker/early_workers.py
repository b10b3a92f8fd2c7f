"""Starts the Python workers of a local session before the first batch needs them.

Their daemon takes a second to start and to import the modules of tasks. Spark plans the first batch in the meantime.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress

import pyarrow as pa
from pyspark.sql import SparkSession

from hintplan.runtime.spark.map_in_arrow import map_in_arrow

JOB = "start of the Python workers"
"""The description of the job on Spark's web pages."""

_MOST = 4
"""The maximum number of workers to start early; others start when there are tasks for them."""


def start_workers(spark: SparkSession) -> threading.Thread:
    """Let ``spark`` start a worker for each of its cores, at most four, in a background thread."""
    thread = threading.Thread(target=_run_a_job, args=(spark,), name="hintplan-early-workers", daemon=True)
    thread.start()
    return thread


def _run_a_job(spark: SparkSession) -> None:
    """Run a job of one task per core. If it fails, the first batch fails for the same reason, and reports it.

    A run and its session may end before the job has started. The exception that PySpark raises then depends on the
    moment.
    """
    with suppress(Exception):
        spark.sparkContext.setJobDescription(JOB)  # applies to this thread's jobs
        tasks = min(spark.sparkContext.defaultParallelism, _MOST)
        map_in_arrow(spark.range(0, tasks, 1, tasks), _nothing, "id BIGINT").collect()


def _nothing(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch.slice(0, 0)
