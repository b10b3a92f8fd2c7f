"""A micro-batch that is at work: how long, and how far its tasks are, as far as Spark tells before it has ended.

>>> stage = RunningStage(stage=7, operators=("join_o_c",), tasks=4, done=1, waiting=(), failed=0, rows_read=90)
>>> batch = RunningBatch(sinks=("sink_r",), batch=12, running_ms=35_000, stages=(stage,))
>>> batch.tasks, batch.done, batch.rows_read
(4, 1, 90)

Knows neither Spark nor terminals.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningTask:
    """A task that has begun and not ended: on which machine, and for how long in ms."""

    host: str
    running_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningStage:
    """A stage of a batch, by Spark's number of it; ``operators`` are those of the plan that run in it.

    ``waiting`` has the tasks at work, those that began first, and ``failed`` counts attempts, which Spark makes again.
    ``rows_read`` are those of its sources; None if not Spark but its tasks read them.
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
    """The batch that the query of ``sinks`` works on; its number is None until the run knows it.

    ``stages`` are those begun so far, for Spark plans one after the other; None where Spark does not tell, which is on
    Spark Connect. ``last_failure`` says why an attempt of a task failed, ``page`` where Spark shows the stage at work.
    """

    sinks: tuple[str, ...]
    batch: int | None
    running_ms: int
    stages: tuple[RunningStage, ...] | None = None
    last_failure: str | None = None
    page: str | None = None

    @property
    def tasks(self) -> int | None:
        """The tasks known so far."""
        return None if self.stages is None else sum(stage.tasks for stage in self.stages)

    @property
    def done(self) -> int | None:
        """The tasks that have ended well."""
        return None if self.stages is None else sum(stage.done for stage in self.stages)

    @property
    def failed(self) -> int | None:
        """The attempts of tasks that have failed."""
        return None if self.stages is None else sum(stage.failed for stage in self.stages)

    @property
    def rows_read(self) -> int | None:
        """The rows that were read of sources so far; None if they are not known of all stages."""
        if self.stages is None or any(stage.rows_read is None for stage in self.stages):
            return None
        return sum(stage.rows_read or 0 for stage in self.stages)


@dataclass(frozen=True, slots=True, kw_only=True)
class StuckBatch:
    """A batch that takes much longer than those before, which took ``usual_ms``, half of them less; None for a first.

    ``quiet_ms`` is how long no task has ended; None where Spark does not tell of tasks.
    """

    batch: RunningBatch
    usual_ms: int | None
    quiet_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """A run that has failed with ``error`` and starts again in ``delay_ms``, for the ``attempt``-th time in a row.

    There are ``attempts`` of them at most; None for any number.
    """

    attempt: int
    attempts: int | None
    delay_ms: int
    error: str
