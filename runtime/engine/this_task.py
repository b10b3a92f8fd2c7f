"""Which micro-batch a task is of, and which of its stage's tasks it is, as Spark tells it.

Spark tells the number of the batch to tasks that the thread of its query starts. On Spark Connect, what
``foreachBatch`` does with a batch is started by other threads, whose tasks nobody tells it. There the function tells it
itself, in the configuration of its session, which Spark hands to all tasks: under a name that no other query has, as
queries share the session.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from hintplan.plans.errors import RunError

_BATCH = "streaming.sql.batchId"


class ThisTask(NamedTuple):
    """The number of the micro-batch, and that of the task, which all attempts of it have."""

    batch: int
    number: int


def batch_key(logs: str) -> str:
    """Under which name the query with these ``logs``, a path or a URL, tells its batch."""
    return f"spark.hintplan.batch.{hashlib.sha256(logs.encode()).hexdigest()[:16]}"


def this_task(key: str) -> ThisTask:
    """The task that runs in this thread; its query tells the batch under ``key`` if Spark does not."""
    from pyspark import TaskContext  # kernels are bound without Spark, too

    task = TaskContext.get()
    batch = None if task is None else task.getLocalProperty(_BATCH) or task.getLocalProperty(key)
    if task is None or batch is None:
        raise RunError("Spark does not say which micro-batch this task is of")
    return ThisTask(int(batch), task.partitionId())
