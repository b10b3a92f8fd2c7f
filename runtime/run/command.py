"""``hintplan run``: options, signals and exit codes around :func:`runtime.run.execute.execute`.

The first SIGINT or SIGTERM ends the run after the batch in progress, the second one at once; a batch plan ends at the
first, since an unfinished job leaves nothing behind. The exit codes are the shell's, 130 and 143. Rows of print sinks
are the only thing on stdout, unless ``--json`` asks for records there.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from typing import Any

import click
from click.exceptions import Exit

from plans.checkpoint.continuation import continuation, refuse
from plans.checkpoint.record import absolute, is_local_path
from plans.commands.options import allow_fact_edits_option, read_plan
from plans.commands.run_options import (
    allow_state_drop_option,
    conf_option,
    debug_option,
    master_option,
    policy_options,
    remote_option,
    trigger_option,
)
from plans.connectors.policy import Policy, refuse_reach
from plans.connectors.table import spark_packages
from plans.errors import PlanError, RunError
from plans.extras import require
from plans.files.codec import fingerprint
from plans.model.plan import Plan
from plans.text.terminal import say
from runtime.run.spark_options import SparkOptions, with_spark_options
from runtime.spark.quiet import SparkLog

STOPS_AFTER_BATCH = "stopping after this batch; once more to stop now"
STOPS_NOW = "stopping now"
STOPS_WHEN_STARTED = "stopping as soon as Spark has started; once more to stop now"


@dataclass(slots=True)
class Stop:
    """Signals received so far; ``answer`` is said to the first one."""

    answer: str = STOPS_AFTER_BATCH
    received: int = 0
    number: int = 0

    def __call__(self, number: int, frame: Any) -> None:
        self.received += 1
        self.number = number
        if self.received == 1:
            say(self.answer)


@click.command("run")
@click.argument("path", metavar="PLAN")
@click.option("--once", is_flag=True, help="Take what is there, then stop.")
@trigger_option("Time between two batches (default 1 s).")
@click.option("--checkpoint", metavar="DIR", help="Where state is kept between runs; without it, it is forgotten.")
@click.option("--expect", metavar="DIGEST", help="Refuse any plan but the one with this digest, as validate prints it.")
@click.option("--take-over", is_flag=True, help="Use a checkpoint though a run on another machine may still use it.")
@master_option
@remote_option
@conf_option
@click.option("--json", "as_json", is_flag=True, help="Print a JSON record per batch or job; print sinks go to stderr.")
@policy_options
@allow_state_drop_option
@allow_fact_edits_option
@debug_option
@with_spark_options
def run_command(**given: Any) -> int:
    """Run a plan on Spark, until it is stopped or, with --once, until its input is read."""
    return _run(RunOptions(**given))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of ``hintplan run``; ``path`` is its argument."""

    path: str
    once: bool
    trigger: str | None
    checkpoint: str | None
    expect: str | None
    take_over: bool
    spark: SparkOptions
    as_json: bool
    policy: Policy
    allow_state_drop: bool
    allow_fact_edits: bool


def _run(options: RunOptions) -> int:
    if options.once and options.trigger:
        raise click.UsageError("--once takes what is there and stops; it has no --trigger")
    require("spark")
    plan = read_plan(options.path, allow_fact_edits=options.allow_fact_edits)
    _tell_digest(plan, options.path, options.expect)
    if plan.mode == "batch":
        _refuse_streaming_options(plan, options)
    refuse_reach(plan.tables, options.policy, options.checkpoint)
    if options.checkpoint is not None and options.spark.remote is None:
        _refuse_checkpoint(plan, options.checkpoint, options)
    if sys.stderr.isatty():
        say(f"connecting to {options.spark.remote}" if options.spark.remote else "starting Spark")
    with opened_session(with_spark_packages(options.spark, plan)) as spark:
        from runtime.run.execute import execute

        def start() -> Any:
            return execute(
                plan,
                spark,
                checkpoint=None if options.checkpoint is None else absolute(options.checkpoint),
                once=options.once and plan.mode != "batch",
                trigger=options.trigger,
                take_over=options.take_over,
                policy=options.policy,
                allow_state_drop=options.allow_state_drop,
            )

        return run_plan(plan, start, as_json=options.as_json)


def _refuse_checkpoint(plan: Plan, checkpoint: str, options: RunOptions) -> None:
    """Refuse now what would be refused when Spark is up."""
    from runtime.checkpoint.parts import undamaged_record
    from runtime.checkpoint.run_lock import refuse_held

    refuse_held(checkpoint, take_over=options.take_over)
    if is_local_path(checkpoint):
        found = continuation(undamaged_record(absolute(checkpoint), options.spark.conf), plan)
        refuse(found, checkpoint, allow_drop=options.allow_state_drop)


def _tell_digest(plan: Plan, path: str, expect: str | None) -> None:
    """Say which plan runs; PlanError if it is not the expected one."""
    digest = fingerprint(plan)
    if expect is not None and expect != digest:
        raise PlanError(
            f"the plan has the digest {digest}, not {expect}: it is not the plan that was reviewed",
            file=path,
            hint="run the reviewed plan, or have this one reviewed; hintplan diff shows what is different",
        )
    say(f"{plan.name}: digest {digest}")


def _refuse_streaming_options(plan: Plan, options: RunOptions) -> None:
    """A batch plan always takes what is there and ends: --once says nothing new, the others cannot be meant."""
    if options.trigger is not None:
        raise click.UsageError(f"{plan.name} is a batch plan: it runs once, so it has no --trigger")
    if options.checkpoint is not None:
        raise click.UsageError(f"{plan.name} is a batch plan: it keeps no state, so it has no --checkpoint")
    if options.once:
        say(f"{plan.name} is a batch plan: it takes what is there and stops, with or without --once")


def with_spark_packages(options: SparkOptions, plan: Plan) -> SparkOptions:
    """``options`` for a Spark that has what the tables of ``plan`` need of it; says what it will fetch."""
    packages = spark_packages(plan.tables.values())
    if not packages or options.remote is not None:
        return options
    from runtime.spark.packages import with_packages

    conf, notes = with_packages(options.conf, packages)
    for note in notes:
        say(note)
    return replace(options, conf=conf)


@contextmanager
def opened_session(options: SparkOptions) -> Iterator[Any]:
    """A Spark session for the time of the block; what Spark says goes to a file that an error names.

    NotInstalled if there is no PySpark.
    """
    require("spark")
    from py4j.protocol import Py4JError, Py4JNetworkError
    from pyspark.errors import PySparkException

    from runtime.spark.explanation import failed
    from runtime.spark.session import refuse_managed, start_session, stop_session, without_effect

    refuse_managed(options.conf)
    log = None if options.debug else SparkLog()
    try:
        with _signals_kept(STOPS_WHEN_STARTED, log) as received, log.captured() if log else nullcontext():
            spark = start_session(options.master, options.conf, remote=options.remote)
        if log and options.remote is None:
            log.mute_loss(spark)
        for note in without_effect(spark):
            say(note)
        try:
            if received:
                raise KeyboardInterrupt if received[0] == signal.SIGINT else Exit(128 + received[0])
            yield spark
        except Exit:
            raise
        except Exception as error:
            # Whatever fails when the JVM is gone fails because of that.
            if not _is_gone(spark) and not isinstance(error, (Py4JNetworkError, ConnectionError)):
                if isinstance(error, (Py4JError, PySparkException)):
                    raise failed("Spark failed", error, lambda file: None) from error
                raise
            raise RunError(
                "Spark's JVM on this machine has ended, killed or out of memory",
                hint="run again: with a checkpoint, the run goes on where it was. "
                "--conf spark.driver.memory=4g gives the JVM more memory",
            ) from error
        finally:
            # It may be ending at this moment; and it is what a signal asks for.
            with _signals_kept("", None), suppress(Py4JNetworkError, ConnectionError):
                if not _is_gone(spark):
                    stop_session(spark)
    except RunError:
        if log and log.path.stat().st_size:
            say(f"Spark's log: {log.path}")
            log = None
        raise
    finally:
        if log:
            log.discard()


@contextmanager
def _signals_kept(answer: str, log: SparkLog | None) -> Iterator[list[int]]:
    """SIGINT and SIGTERM wait for the end of the block, which gives the numbers of those that came.

    An interrupted PySpark leaves the JVM that it was starting behind, for ever. ``answer`` is said at the first signal;
    at the second this process ends, and the JVM with it.
    """
    received: list[int] = []

    def keep(number: int, frame: Any) -> None:
        received.append(number)
        if len(received) > 1:
            os._exit(128 + number)
        if answer:
            os.write(log.terminal if log else 2, f"{answer}\n".encode())

    if threading.current_thread() is not threading.main_thread():
        yield received  # which gets no signals
        return
    previous = {number: signal.signal(number, keep) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _is_gone(spark: Any) -> bool:
    """Whether the JVM that this process has started for Spark has ended."""
    gateway = getattr(getattr(spark, "_sc", None), "_gateway", None)
    process = getattr(gateway, "proc", None)
    return process is not None and process.poll() is not None


def run_plan(plan: Plan, start: Callable[[], Any], *, as_json: bool) -> int:
    """Run ``plan``, as ``start`` starts it, to its end and tell of its batches; 0, or the code of a signal's exit."""
    from runtime.progress import FunctionProgress, JobProgress, LookupProgress, total_functions, total_lookups
    from runtime.run.report import open_report
    from runtime.run.watch import Watch
    from runtime.running import RunningBatch

    batch_plan = plan.mode == "batch"
    stop = Stop(STOPS_NOW if batch_plan else STOPS_AFTER_BATCH)
    previous = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    started = time.monotonic()
    try:
        execution = start()
        if execution.temporary:
            say("no --checkpoint: state is kept in a temporary directory and forgotten at the end")
        for note in execution.notes:
            say(note)
        totals = {"jobs": 0, "rows_out": 0} if batch_plan else {"batches": 0, "rows_in": 0, "rows_out": 0}
        lookups: dict[str, dict[str, LookupProgress]] = {}
        functions: dict[str, dict[str, FunctionProgress]] = {}
        behind_url = not batch_plan and not is_local_path(execution.checkpoint)
        with open_report(as_json=as_json, requests=behind_url) as report:
            watch = None if batch_plan else Watch(execution, report.pace)

            def tell() -> None:
                for ended in execution.new_batches():
                    totals["rows_out"] += ended.rows_out
                    sums = lookups.setdefault(ended.sink, {}) if ended.lookups else {}
                    for name, found in ended.lookups.items():
                        sums[name] = total_lookups(sums.get(name, {}), found)
                    called = functions.setdefault(ended.sink, {}) if ended.functions else {}
                    for name, found in ended.functions.items():
                        called[name] = total_functions(called.get(name, {}), found)
                    if isinstance(ended, JobProgress):
                        totals["jobs"] += 1
                        report.job(ended)
                    else:
                        totals["batches"] += 1
                        totals["rows_in"] += ended.rows_in
                        report.batch(ended)
                        if watch is not None:
                            watch.ended(ended)
                for one in watch.news(time.monotonic()) if watch is not None else ():
                    if isinstance(one, RunningBatch):
                        report.running(one)
                    else:
                        report.stuck(one)

            status = "failed"
            try:
                status = follow(execution, stop, tell)
            finally:
                if status != "failed" or batch_plan:
                    tell()
                elapsed = int((time.monotonic() - started) * 1000)
                counted = {"lookups": lookups, "functions": functions}
                report.end(status, {"plan": plan.name, **totals, "duration_ms": elapsed, **counted})
        return 128 + stop.number if status == "stopped" else 0
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def follow(execution: Any, stop: Stop, tell: Callable[[], None]) -> str:
    """Wait for the end of a run, telling as it goes; ``finished`` or ``stopped``. RunError if it fails."""
    while True:
        tell()
        execution.raise_failure()
        if not execution.active:
            execution.await_termination()
            return "finished"
        if stop.received > 1:
            execution.stop()
            return "stopped"
        if stop.received and execution.stop_between_batches():
            return "stopped"
        execution.wait(0.2)
