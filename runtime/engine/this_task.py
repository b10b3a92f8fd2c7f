"""The micro-batch of the current task, and the number of the task in its stage, as Spark reports them.

Spark passes the number of the batch to tasks that the thread of the query starts. On Spark Connect, other threads start
the tasks of ``foreachBatch``, and these tasks do not receive the number. There the function passes the number itself,
in the configuration of its session, which Spark sends to all tasks. Queries share the session, so each uses its own
key.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from hintplan.plans.errors import RunError

_BATCH = "streaming.sql.batchId"


class ThisTask(NamedTuple):
    """The number of the micro-batch, and the number of the task, which is the same in all attempts."""

    batch: int
    number: int


def batch_key(logs: str) -> str:
    """Return the key under which the query with these ``logs``, a path or a URL, sets its batch number."""
    return f"spark.hintplan.batch.{hashlib.sha256(logs.encode()).hexdigest()[:16]}"


def this_task(key: str) -> ThisTask:
    """Return the task that runs in this thread; ``key`` has the batch number if Spark does not pass it."""
    from pyspark import TaskContext  # kernels are also bound without Spark

    task = TaskContext.get()
    batch = None if task is None else task.getLocalProperty(_BATCH) or task.getLocalProperty(key)
    if task is None or batch is None:
        raise RunError("Spark does not provide the micro-batch of this task")
    return ThisTask(int(batch), task.partitionId())
