"""A micro-batch in progress: its duration, and the progress of its tasks, if Spark reports it before the batch ends.

>>> stage = RunningStage(stage=7, operators=("join_o_c",), tasks=4, done=1, waiting=(), failed=0, rows_read=90)
>>> batch = RunningBatch(sinks=("sink_r",), batch=12, running_ms=35_000, stages=(stage,))
>>> batch.tasks, batch.done, batch.rows_read
(4, 1, 90)

This module knows neither Spark nor terminals.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hintplan.plans.text.counts import joined_with_and


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningTask:
    """A task in progress: its machine, and its duration in ms."""

    host: str
    running_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningStage:
    """A stage of a batch, by Spark's number; ``operators`` are the plan's operators that run in it.

    ``waiting`` has the tasks in progress that started first. ``failed`` counts failed attempts, which Spark repeats.
    ``rows_read`` is the number of rows read from sources; None if tasks read them without Spark.
    """

    stage: int
    operators: tuple[str, ...]
    tasks: int
    done: int
    failed: int
    rows_read: int | None
    waiting: tuple[RunningTask, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningBatch:
    """The current batch of the query of ``sinks``; its number is None until the run knows it.

    ``stages`` are the stages so far, since Spark plans them one after the other; None if Spark does not report them, as
    on Spark Connect. ``last_failure`` is the reason of the last failed attempt of a task. ``page`` is the URL of
    Spark's page of the active stage.
    """

    sinks: tuple[str, ...]
    batch: int | None
    running_ms: int
    stages: tuple[RunningStage, ...] | None = None
    last_failure: str | None = None
    page: str | None = None

    @property
    def tasks(self) -> int | None:
        """The number of tasks known so far."""
        return None if self.stages is None else sum(stage.tasks for stage in self.stages)

    @property
    def done(self) -> int | None:
        """The number of tasks that have succeeded."""
        return None if self.stages is None else sum(stage.done for stage in self.stages)

    @property
    def failed(self) -> int | None:
        """The number of failed attempts of tasks."""
        return None if self.stages is None else sum(stage.failed for stage in self.stages)

    @property
    def rows_read(self) -> int | None:
        """The number of rows read from sources so far; None if it is unknown for a stage."""
        if self.stages is None or any(stage.rows_read is None for stage in self.stages):
            return None
        return sum(stage.rows_read or 0 for stage in self.stages)


@dataclass(frozen=True, slots=True, kw_only=True)
class StuckBatch:
    """A batch that takes much longer than earlier ones, whose median is ``usual_ms``; None for a first batch.

    ``quiet_ms`` is the time since the last task ended; None if Spark does not report tasks.
    """

    batch: RunningBatch
    usual_ms: int | None
    quiet_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """A run that has failed with ``error`` and restarts in ``delay_ms``, for the ``attempt``-th time in a row.

    ``attempts`` is the maximum number of restarts, or None for no limit.
    """

    attempt: int
    attempts: int | None
    delay_ms: int
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanEdit:
    """An edit of the plan ``file`` of a running job, or its refusal; ``digest`` is the digest of the plan in force.

    ``changes`` has the path and the values of each change. ``batches`` has the first batch of each query with the
    edited plan. If the edit is refused, ``refusal`` is the reason. Without changes and refusal, the file has the plan
    in force again after an edit that was refused.
    """

    file: str
    digest: str
    changes: tuple[str, ...] = ()
    batches: Mapping[str, int] = field(default_factory=dict)
    refusal: str | None = None

    @property
    def text(self) -> str:
        """The edit in a line; below a refusal, the reason and the plan that stays in force."""
        if self.refusal is not None:
            return f"{self.file} is not applied: {self.refusal}\nthe run continues with digest {self.digest}"
        if not self.changes:
            return f"{self.file} has the plan of the run again, digest {self.digest}"
        return f"{self.file} changed: {'; '.join(self.changes)}, {batches_text(self.batches)}, digest {self.digest}"


def batches_text(batches: Mapping[str, int]) -> str:
    """Return the first batches of a plan by query.

    >>> batches_text({"paid": 42, "late": 42}), batches_text({"paid": 42, "late": 7})
    ('from batch 42', 'from batch 42 of paid and 7 of late')
    """
    if len(set(batches.values())) == 1:
        return f"from batch {min(batches.values())}"
    return "from batch " + joined_with_and([f"{number} of {query}" for query, number in batches.items()])
