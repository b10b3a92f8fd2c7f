"""Texts and JSON events about batches in progress, and about runs that wait or restart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from hintplan.plans.text.counts import human_duration
from hintplan.runtime.checkpoint.lease import Waited
from hintplan.runtime.running import Restart, RunningBatch, RunningStage, StuckBatch


def running_text(batch: RunningBatch) -> str:
    """Return the progress of a batch as text.

    >>> from hintplan.runtime.running import RunningStage
    >>> first = RunningStage(stage=3, operators=("correlate_a",), tasks=2, done=2, failed=0, rows_read=50, waiting=())
    >>> second = RunningStage(stage=5, operators=("join_a",), tasks=4, done=1, failed=1, rows_read=0, waiting=())
    >>> running_text(RunningBatch(sinks=("r",), batch=12, running_ms=35_000, stages=(first, second),
    ...     last_failure="OSError"))
    'r batch 12 at work for 35.0 s: 3 of 6 tasks so far · join_a 1 of 4 · 50 rows read · 1 attempt failed: OSError'
    >>> running_text(RunningBatch(sinks=("sink_r",), batch=None, running_ms=5_000, stages=()))
    'sink_r first batch at work for 5.0 s: Spark plans it'
    """
    head = f"{_named(batch)} at work for {human_duration(batch.running_ms)}"
    parts = list(_parts(batch))
    return f"{head}: {' · '.join(parts)}" if parts else head


def _named(batch: RunningBatch) -> str:
    number = "first batch" if batch.batch is None else f"batch {batch.batch}"
    return f"{' and '.join(batch.sinks)} {number}"


def _parts(batch: RunningBatch) -> Iterator[str]:
    if batch.stages is None:
        return
    if not batch.stages:
        yield "Spark plans it"
        return
    yield f"{batch.done:,} of {batch.tasks:,} tasks so far"
    for operators, stages in _by_operators(batch.stages).items():
        done, tasks = sum(stage.done for stage in stages), sum(stage.tasks for stage in stages)
        yield f"{', '.join(operators)} {done:,} of {tasks:,}"
    if batch.rows_read:
        yield f"{batch.rows_read:,} row{'' if batch.rows_read == 1 else 's'} read"
    if batch.failed:
        yield failures_text(batch)


def _by_operators(stages: Iterable[RunningStage]) -> dict[tuple[str, ...], list[RunningStage]]:
    """Group the unfinished stages by the operators of the plan that they run, without stages of no operator."""
    grouped: dict[tuple[str, ...], list[RunningStage]] = {}
    for stage in stages:
        if stage.operators and stage.done < stage.tasks:
            grouped.setdefault(stage.operators, []).append(stage)
    return grouped


def stuck_text(stuck: StuckBatch) -> Iterable[str]:
    """Yield lines with the reason why a batch seems to be stuck, its unfinished stages, and where to look."""
    batch = stuck.batch
    usual = "" if stuck.usual_ms is None else f", batches before took {human_duration(stuck.usual_ms)}"
    yield f"{_named(batch)} seems to be stuck: at work for {human_duration(batch.running_ms)}{usual}"
    if stuck.quiet_ms is not None:
        yield f"  no task has ended for {human_duration(stuck.quiet_ms)}"
    for stage in batch.stages or ():
        if stage.waiting:
            yield f"  {stage_text(stage)}"
    if batch.failed:
        yield f"  {failures_text(batch)}"
    if batch.page is not None:
        yield f"  look at {batch.page}: Thread Dump of the executor shows why a task waits"
    elif batch.stages:
        yield "  look at Spark's pages, which --conf spark.ui.enabled=true has for a local run"


def stage_text(stage: RunningStage) -> str:
    """Return the unfinished tasks of a stage as text.

    >>> from hintplan.runtime.running import RunningTask
    >>> tasks = (RunningTask(host="worker-2", running_ms=90_000), RunningTask(host="worker-1", running_ms=80_000))
    >>> stage_text(RunningStage(stage=5, operators=("join_a",), tasks=4, done=1, failed=0, rows_read=0, waiting=tasks))
    'join_a waits: 3 of 4 tasks in stage 5, at work on worker-1 and worker-2, the oldest for 1 min 30 s'
    """
    operators = ", ".join(stage.operators) or "a step of Spark's own"
    hosts = " and ".join(sorted({task.host for task in stage.waiting}))
    oldest = human_duration(max(task.running_ms for task in stage.waiting))
    left = f"{stage.tasks - stage.done:,} of {stage.tasks:,} tasks in stage {stage.stage}"
    return f"{operators} waits: {left}, at work on {hosts}, the oldest for {oldest}"


def failures_text(batch: RunningBatch) -> str:
    """Return the failed attempts as text; Spark retries them silently."""
    attempts = "1 attempt" if batch.failed == 1 else f"{batch.failed:,} attempts"
    return f"{attempts} failed{'' if batch.last_failure is None else f': {batch.last_failure}'}"


_WITHOUT_END = 2**31 - 1
"""Flink users write this number for unlimited attempts."""


def restart_text(restart: Restart) -> Iterable[str]:
    """Yield lines with the reason why a run has failed, and the time of its restart.

    >>> restart = Restart(attempt=2, attempts=5, delay_ms=1500, error="the query of r failed: no answer")
    >>> list(restart_text(restart))
    ['the query of r failed: no answer', 'restart 2 of 5 in 1.5 s']
    >>> list(restart_text(Restart(attempt=2, attempts=2**31 - 1, delay_ms=1500, error="no answer")))
    ['no answer', 'restart 2 in 1.5 s']
    """
    yield from restart.error.splitlines()
    most = "" if restart.attempts is None or restart.attempts >= _WITHOUT_END else f" of {restart.attempts:,}"
    yield f"restart {restart.attempt}{most} in {human_duration(restart.delay_ms)}"


def waiting_json(waited: Waited) -> dict[str, Any]:
    """Return the fields of a waiting event. Unknown values are null, and so is the lease if there is none."""
    holder = waited.owner
    owner = None if holder is None else {"host": holder.host, "pid": holder.pid, "since": holder.since}
    lease_ms = None if waited.seconds is None else int(waited.seconds * 1000)
    return {"message": waited.text, "owner": owner, "epoch": waited.epoch, "lease_ms": lease_ms}


def running_json(batch: RunningBatch) -> dict[str, Any]:
    """Return the fields of a running event. Values that Spark does not provide are null."""
    stages = batch.stages
    return {
        "sinks": list(batch.sinks),
        "batch": batch.batch,
        "running_ms": batch.running_ms,
        "tasks": batch.tasks,
        "tasks_done": batch.done,
        "attempts_failed": batch.failed,
        "rows_read": batch.rows_read,
        "last_failure": batch.last_failure,
        "stages": None if stages is None else [_stage_json(stage) for stage in stages],
    }


def stuck_json(stuck: StuckBatch) -> dict[str, Any]:
    """Return the fields of a stuck event: the fields of a running event, and the reason."""
    page = {"page": stuck.batch.page}
    return {**running_json(stuck.batch), "usual_ms": stuck.usual_ms, "quiet_ms": stuck.quiet_ms, **page}


def _stage_json(stage: RunningStage) -> dict[str, Any]:
    waiting = [{"host": task.host, "running_ms": task.running_ms} for task in stage.waiting]
    return {
        "stage": stage.stage,
        "operators": list(stage.operators),
        "tasks": stage.tasks,
        "tasks_done": stage.done,
        "attempts_failed": stage.failed,
        "waiting": waiting,
    }
