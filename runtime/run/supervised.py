"""Runs a plan to its end: reports its batches, stops it on request, and restarts it after failures that may pass."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from hintplan.plans.errors import HintplanError
from hintplan.plans.model.plan import Plan
from hintplan.plans.text.counts import human_duration
from hintplan.plans.text.notice import notice
from hintplan.plans.text.terminal import print_message
from hintplan.runtime.batch.execution import BatchExecution
from hintplan.runtime.checkpoint.lease import Waited, Waiting
from hintplan.runtime.operator import FOREVER
from hintplan.runtime.progress import (
    BatchProgress,
    EventTimeProgress,
    FunctionProgress,
    JobProgress,
    LookupProgress,
    total_functions,
    total_lookups,
)
from hintplan.runtime.run.execution import Execution
from hintplan.runtime.run.report import RunReport, open_report
from hintplan.runtime.run.watch import Watch
from hintplan.runtime.running import Restart, RunningBatch
from hintplan.runtime.spark.explanation import failure_of_spark
from hintplan.runtime.spark.failure import is_transient
from hintplan.runtime.supervision.clock import WallClock
from hintplan.runtime.supervision.health import RESTARTING, RUNNING, STARTING, STOPPING, WAITING, Health
from hintplan.runtime.supervision.jvm_shutdown import asked_before_the_jvm_ends
from hintplan.runtime.supervision.restarts import NEVER, Restarts, Strategy
from hintplan.runtime.supervision.stop import Stop, Stopped

_POLL_SECONDS = 0.2

_CLOCK = (
    "the clock of this machine was set back by {}: Spark starts the next batch when the clock has caught up; restart "
    "the run to continue at once"
)


Start = Callable[[Waiting], Execution | BatchExecution]
"""Starts a run; it waits for the lease of another run as configured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Supervision:
    """The control of a run: ``stop`` requests, the restart ``strategy``, and its ``health``.

    A run restarts only while ``can_restart`` returns true. With ``once``, it processes the available input and ends.
    """

    stop: Stop
    strategy: Strategy = NEVER
    can_restart: Callable[[], bool] = lambda: True
    health: Health = field(default_factory=lambda: Health(plan="", digest=""))
    once: bool = False


@dataclass(slots=True)
class Totals:
    """The totals of a run so far; ``started`` is true once the run has started.

    ``reached`` has the last watermark of each operator before the end of event time.
    """

    counts: dict[str, int]
    lookups: dict[str, dict[str, LookupProgress]] = field(default_factory=dict)
    functions: dict[str, dict[str, FunctionProgress]] = field(default_factory=dict)
    event_time: dict[str, EventTimeProgress] = field(default_factory=dict)
    reached: dict[str, int] = field(default_factory=dict)
    started: bool = False

    def add(self, ended: BatchProgress | JobProgress) -> None:
        """Add a batch or a job that has ended."""
        sums = self.lookups.setdefault(ended.sink, {}) if ended.lookups else {}
        for name, metrics in ended.lookups.items():
            sums[name] = total_lookups(sums.get(name, {}), metrics)
        called = self.functions.setdefault(ended.sink, {}) if ended.functions else {}
        for name, metrics in ended.functions.items():
            called[name] = total_functions(called.get(name, {}), metrics)
        self.counts["rows_out"] += ended.rows_out
        if isinstance(ended, JobProgress):
            self.counts["jobs"] += 1
        else:
            times = {name: time for name, state in ended.operators.items() if (time := state.event_time)}
            self.event_time |= times
            marks = {name: time.watermark for name, time in times.items()}
            self.reached |= {name: mark for name, mark in marks.items() if mark is not None and mark != FOREVER}
            self.counts["batches"] += 1
            self.counts["rows_in"] += ended.rows_in


def run_plan(
    plan: Plan,
    start: Start,
    supervision: Supervision,
    *,
    as_json: bool,
    requests: bool = False,
    spark_start_ms: int | None = None,
) -> int:
    """Run ``plan``, which ``start`` starts, to its end and report its batches; return 0, or the exit code of a signal.

    With ``requests``, the report includes the file operations of state. ``spark_start_ms`` is the time that the session
    took to start for this run.
    """
    stop, health = supervision.stop, supervision.health
    totals = Totals({"jobs": 0, "rows_out": 0} if plan.mode == "batch" else {"batches": 0, "rows_in": 0, "rows_out": 0})
    began, status, failure = time.monotonic(), "failed", {}
    listening, hook = stop.listening(), asked_before_the_jvm_ends(stop.asked_by_jvm)
    with listening, hook, open_report(as_json=as_json, requests=requests, once=supervision.once) as report:
        try:
            status = _run(start, supervision, report, totals)
        except Stopped:
            status = "stopped"
        except Exception as error:
            health.failure = str(error)
            if isinstance(error, HintplanError):
                failure = {"error": str(error)}
            raise
        finally:
            elapsed = int((time.monotonic() - began) * 1000)
            start_ms = {} if spark_start_ms is None else {"spark_start_ms": spark_start_ms}
            counted = {**start_ms, "lookups": totals.lookups, "functions": totals.functions, **failure}
            if totals.event_time:
                counted["event_time"] = {
                    name: {**time.as_dict(), "reached": totals.reached.get(name)}
                    for name, time in totals.event_time.items()
                }
            if totals.started or as_json or status == "stopped":
                report.end(status, {"plan": plan.name, **totals.counts, "duration_ms": elapsed, **counted})
    return stop.exit_code if status == "stopped" else 0


def _run(
    start: Start,
    supervision: Supervision,
    report: RunReport,
    totals: Totals,
) -> str:
    """Run the plan, and restart it after each failure that may pass; return ``finished`` or ``stopped``."""
    stop, health, restarts = supervision.stop, supervision.health, Restarts(supervision.strategy)
    while True:
        try:
            return _run_once(start, supervision, report, totals)
        except Stopped:
            raise
        except Exception as error:
            may_heal = is_transient(error) and not stop.received and supervision.can_restart()
            pause = restarts.delay(time.monotonic()) if may_heal else None
            if pause is None:
                raise
            reported = error if isinstance(error, HintplanError) else failure_of_spark("Spark failed", error)
        health.restarts += 1
        health.enter(RESTARTING)
        report.restart(
            Restart(
                attempt=restarts.attempt,
                attempts=restarts.strategy.attempts,
                delay_ms=int(pause * 1000),
                error=str(reported),
            )
        )
        stop.sleep(pause)


def _run_once(
    start: Start,
    supervision: Supervision,
    report: RunReport,
    totals: Totals,
) -> str:
    stop, health = supervision.stop, supervision.health
    health.enter(STARTING)
    with notice("planning") as end_notice:

        def waits(waited: Waited) -> None:
            end_notice()
            health.enter(WAITING)
            report.waiting(waited)

        execution = start(Waiting(tell=waits, sleep=stop.sleep))
    if not totals.started:
        if execution.temporary:
            print_message("no --checkpoint: state is kept in a temporary directory and forgotten at the end")
        for note in execution.notes:
            print_message(note)
    totals.started = True
    stream = None if isinstance(execution, BatchExecution) else execution
    health.lease = lambda: None if stream is None else stream.lease()
    health.enter(RUNNING)
    watch = None if stream is None else Watch(stream, report.pace)
    clock = None if stream is None or supervision.once else WallClock()

    def tell() -> None:
        for ended in execution.new_batches():
            totals.add(ended)
            if isinstance(ended, JobProgress):
                report.job(ended)
                continue
            report.batch(ended)
            health.batch(ended.sink, ended.batch)
            if watch is not None:
                watch.ended(ended)
            if clock is not None:
                clock.forget()
        for edit in stream.edits.news() if stream is not None and stream.edits is not None else ():
            report.edit(edit)
            health.digest = edit.digest
        for news in watch.news(time.monotonic()) if watch is not None else ():
            if isinstance(news, RunningBatch):
                report.running(news)
                health.running(news.sinks[0], news.done)
            else:
                report.stuck(news)
                health.stuck(news.batch.sinks[0], news.batch.running_ms, news.batch.done)
        if clock is not None:
            behind = clock.behind()
            if behind and not health.clock_behind:
                print_message(_CLOCK.format(human_duration(int(behind * 1000))))
            health.clock_behind = behind
        health.planned = health.planned or stream is None or stream.has_planned
        health.seen()
        if stop.received and health.phase == RUNNING:
            health.enter(STOPPING)

    status = "failed"
    try:
        status = follow(execution, stop, tell)
    finally:
        if status != "failed" or stream is None:
            tell()
    return status


def follow(execution: Execution | BatchExecution, stop: Stop, tell: Callable[[], None]) -> str:
    """Wait for the end of a run, and call ``tell`` repeatedly; return ``finished`` or ``stopped``.

    RunError if the run fails.
    """
    while True:
        if stop.received and isinstance(execution, Execution) and execution.waits_to_start and not execution.is_running:
            execution.stop()
            return "stopped"
        tell()
        execution.raise_failure()
        if not execution.active:
            execution.await_termination()
            return "finished"
        if stop.received > 1 or stop.is_overdue:
            if stop.received == 1:
                print_message("the batch has not ended in time and is stopped; it runs again at the next start")
            execution.stop()
            return "stopped"
        if stop.received and execution.stop_between_batches():
            return "stopped"
        execution.wait(_POLL_SECONDS)
