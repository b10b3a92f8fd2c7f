"""Which micro-batch a task is of, and which of its stage's tasks it is, as Spark tells it."""

from __future__ import annotations

from typing import NamedTuple

from plans.errors import RunError

_BATCH = "streaming.sql.batchId"


class ThisTask(NamedTuple):
    """The number of the micro-batch, and that of the task, which all attempts of it have."""

    batch: int
    number: int


def this_task() -> ThisTask:
    """The task that runs in this thread."""
    from pyspark import TaskContext  # kernels are bound without Spark, too

    task = TaskContext.get()
    batch = None if task is None else task.getLocalProperty(_BATCH)
    if task is None or batch is None:
        raise RunError("Spark does not say which micro-batch this task is of")
    return ThisTask(int(batch), task.partitionId())
