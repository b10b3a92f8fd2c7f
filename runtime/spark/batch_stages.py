"""The stages of a streaming query's current batch, from the status store of Spark's own pages.

A query runs its jobs in the job group of its run, and their description contains the batch number. Reading a stage
takes a few milliseconds and changes nothing. Only for classic Spark: a Spark Connect client has no access.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError
from pyspark import SparkContext

from hintplan.runtime.running import RunningStage, RunningTask
from hintplan.runtime.spark.failure import root_cause
from hintplan.runtime.spark.stage_operators import StageContent, content_of

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject, JVMView
    from pyspark.sql.streaming.query import StreamingQuery

_BATCH = re.compile(r"^batch = (\d+)$", re.MULTILINE)
_MOST_TASKS = 8
Contents = dict[int, StageContent]
"""The content of stages by number, which is cached because it takes long to compute and never changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchStages:
    """Spark's view of a batch. ``batch`` is None before its first job; for the other fields, see RunningBatch."""

    batch: int | None
    stages: tuple[RunningStage, ...]
    last_failure: str | None
    page: str | None


def stages_of(query: StreamingQuery, ended: int, contents: Contents) -> BatchStages | None:
    """Return the batch after ``ended``, the last ended batch of ``query``; None if Spark provides no status.

    ``contents`` caches the content of its stages.
    """
    context = SparkContext._active_spark_context
    if context is None or not hasattr(query, "_jsq"):
        return None
    try:
        return _stages(context, query, ended, contents)
    except Py4JError:
        # Spark may have removed the data in the meantime, or another version may store it differently. This is no
        # reason to fail.
        return None


def _stages(context: SparkContext, query: StreamingQuery, ended: int, contents: Contents) -> BatchStages:
    store = context._jsc.sc().statusStore()
    session = query._jsq.sparkSession()
    stages: dict[int, RunningStage] = {}
    made: set[str] = set()
    failure, number, at_work = None, None, None
    for job in reversed(_jobs(context, store, str(query.runId), ended)):
        number = _number(job)
        for stage in _sorted_ints(job.stageIds()):
            data = store.lastStageAttempt(stage)
            status, made_of = data.status().toString(), data.rddIds().mkString(",")
            if status == "SKIPPED" or stage in stages or (status == "PENDING" and made_of in made):
                continue  # an earlier job computed it
            if status == "COMPLETE":
                made.add(made_of)
            if stage not in contents:
                contents[stage] = content_of(session, store, job.jobId(), stage)
            content = contents[stage]
            attempt = data.attemptId()
            if data.numFailedTasks():
                failure = _failure(_tasks(context, store, stage, attempt, "FAILED", 1)) or failure
            waiting: tuple[RunningTask, ...] = ()
            if status == "ACTIVE":
                at_work = stage, attempt
                waiting = _running(_tasks(context, store, stage, attempt, "RUNNING", _MOST_TASKS))
            stages[stage] = RunningStage(
                stage=stage,
                operators=content.operators,
                tasks=data.numTasks(),
                done=data.numCompleteTasks(),
                failed=data.numFailedTasks(),
                rows_read=None if content.files_only else data.inputRecords(),
                waiting=waiting,
            )
    page = None if at_work is None or not context.uiWebUrl else _page(context.uiWebUrl, *at_work)
    return BatchStages(batch=number, stages=tuple(stages.values()), last_failure=failure, page=page)


def _jobs(context: SparkContext, store: JavaObject, run: str, ended: int) -> list[JavaObject]:
    """Return the jobs of the newest batch, unless the batch has ended; the newest job comes first."""
    jobs: list[JavaObject] = []
    for number in sorted(context.statusTracker().getJobIdsForGroup(run), reverse=True):
        job = store.job(number)
        batch = _number(job)
        if batch is None or batch <= ended or (jobs and batch != _number(jobs[0])):
            break
        jobs.append(job)
    return jobs


def _number(job: JavaObject) -> int | None:
    match = _BATCH.search(_optional(job.description()) or "")
    return int(match[1]) if match else None


def _tasks(
    context: SparkContext, store: JavaObject, stage: int, attempt: int, status: str, most: int
) -> list[JavaObject]:
    """Return the tasks with a status, in order of their start."""
    jvm: JVMView = context._jvm
    statuses = jvm.java.util.ArrayList()
    statuses.add(getattr(jvm.org.apache.spark.status.api.v1.TaskStatus, status))
    tasks = store.taskList(stage, attempt, 0, most, jvm.scala.Option.empty(), True, statuses)
    return [tasks.apply(index) for index in range(tasks.size())]


def _running(tasks: Iterable[JavaObject]) -> tuple[RunningTask, ...]:
    now = int(time.time() * 1000)
    return tuple(RunningTask(host=task.host(), running_ms=max(0, now - task.launchTime().getTime())) for task in tasks)


def _failure(tasks: Iterable[JavaObject]) -> str | None:
    for task in tasks:
        message = _optional(task.errorMessage())
        if message:
            return f"{root_cause(RuntimeError(message)).splitlines()[0]} (on {task.host()})"
    return None


def _page(url: str, stage: int, attempt: int) -> str:
    return f"{url}/stages/stage/?id={stage}&attempt={attempt}"


def _optional(option: JavaObject) -> str | None:
    return str(option.get()) if option.isDefined() else None


def _sorted_ints(sequence: JavaObject) -> list[int]:
    return sorted(int(text) for text in sequence.mkString(",").split(",") if text)
