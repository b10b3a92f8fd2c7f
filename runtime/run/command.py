"""``hintplan run``: its options, and the Spark session in which the plan runs.

:func:`hintplan.runtime.run.execute.execute` runs the plan. Only rows of print sinks go to stdout, unless ``--json``
prints records there.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import reduce, wraps
from typing import TYPE_CHECKING, Any

import click
from click.exceptions import Exit

from hintplan.plans.analysis.by_program import refuse_without_program
from hintplan.plans.analysis.watermarks import time_operators
from hintplan.plans.checkpoint.continuation import continuation, refuse
from hintplan.plans.checkpoint.record import absolute, is_local_path
from hintplan.plans.commands.options import allow_fact_edits_option, read_plan
from hintplan.plans.commands.run_options import (
    allow_missing_files_option,
    allow_older_sink_option,
    allow_state_drop_option,
    conf_option,
    debug_option,
    duration_option,
    keep_state_option,
    master_option,
    policy_options,
    remote_option,
    trigger_option,
)
from hintplan.plans.commands.sections import Section, SectionedCommand
from hintplan.plans.connectors.policy import Policy, refuse_reach
from hintplan.plans.declarations.durations import parse_duration
from hintplan.plans.errors import PlanError, RunError
from hintplan.plans.extras import require
from hintplan.plans.files.codec import fingerprint
from hintplan.plans.model.plan import Plan
from hintplan.plans.settings.restart_strategy import TYPE
from hintplan.plans.text.notice import ERASED, notice
from hintplan.plans.text.terminal import print_message
from hintplan.runtime.checkpoint.lease import Waited, Waiting, lease_seconds
from hintplan.runtime.jvm import class_archive
from hintplan.runtime.jvm.java import java_version, signal_that_ended
from hintplan.runtime.metrics.exporter import destination
from hintplan.runtime.run.in_advance import refuse_in_advance
from hintplan.runtime.run.new_input import may_find_rows
from hintplan.runtime.run.spark_options import SparkOptions, with_spark_options
from hintplan.runtime.spark.quiet import SparkLog
from hintplan.runtime.supervision.health import WAITING, Health, served
from hintplan.runtime.supervision.restarts import NEVER, Strategy, configured
from hintplan.runtime.supervision.stop import GRACE_SECONDS, STOPS_WHEN_STARTED, Stop
from hintplan.runtime.web_server import address

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hintplan.runtime.batch.execution import BatchExecution
    from hintplan.runtime.metrics.metrics import Metrics
    from hintplan.runtime.run.execution import Execution

_RESET_SECONDS = 600.0
"""After this time without a failure, --max-restarts counts from zero again."""
_SIGNAL_SECONDS = 0.3
"""A signal to a group of processes reaches them all within this time."""


def _address(ctx: click.Context, parameter: click.Parameter, value: str | None) -> tuple[str, int] | None:
    try:
        return None if value is None else address(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def _good_destinations(ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    for value in values:
        try:
            destination(value)
        except ValueError as error:
            raise click.BadParameter(str(error)) from error
    return values


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of ``hintplan run``; ``path`` is its argument."""

    path: str
    once: bool
    drain: bool
    watch: bool
    trigger: str | None
    checkpoint: str | None
    expect: str | None
    take_over: bool
    wait: str | None
    lease: str | None
    grace: str | None
    max_restarts: int | None
    restart_delay: str | None
    health: tuple[str, int] | None
    spark: SparkOptions
    as_json: bool
    print_raw: bool
    metrics: tuple[str, ...]
    page: tuple[str, int] | None
    policy: Policy
    allow_state_drop: bool
    keep_state: tuple[str, ...]
    allow_older_sink: bool
    allow_missing_files: bool
    allow_fact_edits: bool


def with_run_options(command: Callable[[RunOptions], Any]) -> Callable[..., Any]:
    """Add the argument and the options of ``hintplan run`` to ``command``, which receives them as one record."""
    options = (
        click.argument("path", metavar="PLAN"),
        click.option("--once", is_flag=True, help="Process the existing rows, then stop."),
        click.option(
            "--drain",
            is_flag=True,
            help="Process the existing rows, close all windows of event time, then stop; the checkpoint ends with it.",
        ),
        click.option(
            "--watch", is_flag=True, help="Apply edits of the plan file between two batches, if they need no new start."
        ),
        trigger_option("Time between two batches (default 1 s)."),
        click.option(
            "--checkpoint",
            metavar="DIR",
            help="The directory for the state between runs; without it, no state is kept.",
        ),
        click.option(
            "--expect",
            metavar="DIGEST",
            help="Refuse any plan except the plan with this digest, which validate prints.",
        ),
        click.option(
            "--take-over", is_flag=True, help="Use a checkpoint even if a run on another machine may still use it."
        ),
        duration_option(
            "--wait", "The longest wait for a run that holds the checkpoint (default: while it may have crashed)."
        ),
        duration_option(
            "--lease", "The time after a crash until a checkpoint that machines share is free (default 60 s)."
        ),
        duration_option("--grace", f"The time that the batch may take after SIGTERM (default {GRACE_SECONDS:g} s)."),
        click.option(
            "--max-restarts",
            type=click.IntRange(min=0),
            metavar="N",
            help="Restart this many times in a row after failures that may pass (default: as in the plan, else 0).",
        ),
        duration_option("--restart-delay", "The first pause before a restart, which grows to a minute (default 1 s)."),
        click.option(
            "--health", callback=_address, metavar="[HOST:]PORT", help="Answer GET /healthz and /readyz there."
        ),
        master_option,
        remote_option,
        conf_option,
        click.option(
            "--json", "as_json", is_flag=True, help="Print a JSON record per batch or job; print sinks write to stderr."
        ),
        click.option(
            "--print-raw", is_flag=True, help="Let print sinks write control characters and line breaks unescaped."
        ),
        click.option(
            "--metrics",
            multiple=True,
            callback=_good_destinations,
            metavar="WHERE",
            help="Metrics for prometheus=[HOST]:PORT or otlp=URL; repeatable.",
        ),
        click.option(
            "--page", callback=_address, metavar="[HOST:]PORT", help="Show the plan and its numbers in a browser there."
        ),
        policy_options,
        allow_state_drop_option,
        keep_state_option,
        allow_older_sink_option,
        allow_missing_files_option,
        allow_fact_edits_option,
        debug_option,
        with_spark_options,
    )

    @wraps(command)
    def given(**values: Any) -> object:
        return command(RunOptions(**values))

    return reduce(lambda wrapped, option: option(wrapped), reversed(options), given)


SECTIONS = {
    "Batches and checkpoint": Section(
        flags=(
            "--once",
            "--drain",
            "--watch",
            "--trigger",
            "--checkpoint",
            "--expect",
            "--take-over",
            "--wait",
            "--lease",
        ),
        example="hintplan run plan.json --checkpoint checkpoint --trigger '10 s'",
    ),
    "Failures and signals": Section(
        flags=("--max-restarts", "--restart-delay", "--grace"),
        example="hintplan run plan.json --checkpoint checkpoint --max-restarts 5",
    ),
    "Spark": Section(
        flags=("--master", "--remote", "--conf"),
        example="hintplan run plan.json --master 'local[4]' --conf spark.driver.memory=4g",
    ),
    "Output": Section(
        flags=("--json", "--print-raw", "--metrics", "--health", "--page"),
        example="hintplan run plan.json --metrics prometheus=:9249 --health 8080",
    ),
    "What the plan may access": Section(
        flags=(
            "--policy",
            "--allow-scheme",
            "--allow-host",
            "--allow-env",
            "--allow-path",
            "--allow-module",
            "--allow-unrestricted-spark",
        ),
        example="hintplan run plan.json --allow-host db.example.com --allow-env DB_PASSWORD",
    ),
    "What a run may continue without": Section(
        flags=(
            "--allow-state-drop",
            "--keep-state",
            "--allow-older-sink",
            "--allow-missing-files",
            "--allow-fact-edits",
        ),
        example="hintplan run plan.json --checkpoint checkpoint --allow-state-drop",
    ),
}
"""The options of ``run``, in the sections of its help."""


@click.command("run", cls=SectionedCommand, sections=SECTIONS)
@with_run_options
def run_command(options: RunOptions) -> int:
    """Run a plan on Spark, until it is stopped or, with --once, until its input is read."""
    refuse_wrong_usage(options)
    require("spark")
    plan = checked_plan(options)
    if options.print_raw:
        from hintplan.runtime.connectors.print_sink import print_raw

        print_raw()
    health = Health(plan=plan.name, digest=fingerprint(plan))
    with served(health, options.health) if options.health is not None else nullcontext() as url:
        if url is not None:
            print_message(f"health: {url}/healthz")
        with _opened_metrics(options.metrics) if options.metrics else nullcontext() as metrics:
            if options.page is None:
                return _run_on_spark(plan, options, health, metrics)
            from hintplan.runtime.page.live_page import open_page

            with open_page(options.page, metrics=metrics, plan=plan, file=options.path, health=health) as page:
                print_message(f"page: {page.url}")
                return _run_on_spark(plan, options, health, page.metrics)


@contextmanager
def _opened_metrics(destinations: tuple[str, ...]) -> Iterator[Metrics]:
    """Export metrics to all destinations, and print the destinations."""
    from hintplan.runtime.metrics.metrics import open_metrics

    with open_metrics(*destinations) as metrics:
        for exporter in metrics.exporters:
            print_message(f"metrics: {exporter.place}")
        yield metrics


def _run_on_spark(plan: Plan, options: RunOptions, health: Health, metrics: Metrics | None) -> int:
    if options.spark.remote is None:
        if options.checkpoint is not None:
            _refuse_checkpoint(plan, options.checkpoint, options, health)
        master = {} if options.spark.master is None else {"spark.master": options.spark.master}
        refuse_in_advance(plan, options.checkpoint, {**options.spark.conf, **master})
    began = time.monotonic()
    with opened_session(options.spark, plan, options.checkpoint) as spark:
        spark_start_ms = int((time.monotonic() - began) * 1000)
        from hintplan.runtime.run.execute import execute
        from hintplan.runtime.run.live_edits import LiveEdits
        from hintplan.runtime.run.supervised import Supervision, run_plan
        from hintplan.runtime.spark.session import shares_machine
        from hintplan.runtime.worker.early_workers import start_workers

        if shares_machine(spark) and (not (options.once or options.drain) or may_find_rows(plan, options.checkpoint)):
            start_workers(spark)

        edits = None
        if options.watch:
            edits = LiveEdits(path=options.path, plan=plan, allow_fact_edits=options.allow_fact_edits)

        def start(waiting: Waiting) -> Execution | BatchExecution:
            return execute(
                plan if edits is None else edits.newest(),
                spark,
                checkpoint=None if options.checkpoint is None else absolute(options.checkpoint),
                once=options.once and plan.mode != "batch",
                drain=options.drain,
                trigger=options.trigger,
                take_over=options.take_over,
                lease=options.lease,
                waiting=replace(waiting, longest=_seconds(options.wait)),
                policy=options.policy,
                allow_state_drop=options.allow_state_drop,
                keep_state=options.keep_state,
                allow_older_sink=options.allow_older_sink,
                allow_missing_files=options.allow_missing_files,
                metrics=metrics,
                watch=edits or False,
            )

        supervision = Supervision(
            stop=_stop(plan, options),
            strategy=_strategy(plan, options),
            can_restart=lambda: not _is_gone(spark),
            health=health,
            once=options.once or options.drain,
        )
        return run_plan(
            plan,
            start,
            supervision,
            as_json=options.as_json,
            requests=_behind_url(options),
            spark_start_ms=spark_start_ms,
        )


def refuse_wrong_usage(options: RunOptions) -> None:
    """Raise a usage error for options that contradict each other, or that have no effect with any plan."""
    if options.drain and options.trigger:
        raise click.UsageError("--drain processes the existing rows and stops; it has no --trigger")
    if options.once and options.trigger:
        raise click.UsageError("--once processes the existing rows and stops; it has no --trigger")
    if options.watch:
        _refuse_unwatchable(options)
    try:
        lease_seconds(options.lease)
    except RunError as error:
        (wrong,) = error.diagnostics
        raise click.UsageError(f"{wrong.message}; {wrong.hint}") from error
    flags = [f"--{name}" for name in ("wait", "lease") if getattr(options, name) is not None]
    if flags and options.checkpoint is None:
        raise click.UsageError(f"{flags[0]} is about a checkpoint that others may hold; give one with --checkpoint")
    if flags and options.spark.remote is not None:
        raise click.UsageError(f"{flags[0]} has no effect with --remote: there the server decides whether a query runs")
    if options.max_restarts and options.checkpoint is None:
        raise click.UsageError("--max-restarts continues from a checkpoint; set one with --checkpoint")
    if options.restart_delay is not None and not options.max_restarts:
        raise click.UsageError("--restart-delay concerns restarts; set their number with --max-restarts")
    if _seconds(options.restart_delay) == 0:
        raise click.UsageError("--restart-delay must not be 0: an unavailable system needs time to recover")


def _refuse_unwatchable(options: RunOptions) -> None:
    """Raise a usage error if a run with --watch could apply no edit."""
    if options.path == "-" or options.path.startswith("git:"):
        raise click.UsageError(f"--watch reads the plan again, and {options.path} is read once; give a file")
    if options.once or options.drain:
        flag = "--once" if options.once else "--drain"
        raise click.UsageError(f"{flag} processes the existing rows and stops; it has no --watch")
    if options.spark.remote is not None:
        raise click.UsageError("--watch applies no edits with --remote; start the run again with the edited plan")
    if options.checkpoint is None:
        raise click.UsageError("--watch records in the checkpoint which plan ran; set one with --checkpoint")
    if options.expect is not None:
        raise click.UsageError("--expect allows one plan only, so --watch could apply no edit; leave out one of them")


def checked_plan(options: RunOptions) -> Plan:
    """Read the plan of ``options`` and print its digest; raise an error if the plan and the options do not fit."""
    plan = read_plan(options.path, allow_fact_edits=options.allow_fact_edits)
    _tell_digest(plan, options.path, options.expect)
    if plan.mode == "batch":
        _refuse_streaming_options(plan, options)
    if options.drain and not time_operators(plan):
        print_message(f"--drain has no effect: no operator of {plan.name} goes by event time")
    refuse_without_program(plan)
    refuse_reach(plan.tables, options.policy, options.checkpoint)
    return plan


def _strategy(plan: Plan, options: RunOptions) -> Strategy:
    """Return the restart strategy of the options, otherwise of the plan.

    The plan's strategy has no effect without a checkpoint to continue from.
    """
    if options.max_restarts is None:
        strategy = configured(plan.config)
        if strategy == NEVER or options.checkpoint is not None:
            return strategy
        print_message(f"{TYPE}={plan.config[TYPE]} has no effect: without a checkpoint, a run cannot continue")
        return NEVER
    if not options.max_restarts:
        return NEVER
    delay = _seconds(options.restart_delay)
    first = NEVER.first if delay is None else delay
    return Strategy(attempts=options.max_restarts, first=first, longest=max(first, NEVER.longest), reset=_RESET_SECONDS)


def _stop(plan: Plan, options: RunOptions) -> Stop:
    grace = _seconds(options.grace)
    return Stop(grace=GRACE_SECONDS if grace is None else grace, now=plan.mode == "batch", kill=os._exit)


def _seconds(duration: str | None) -> float | None:
    return None if duration is None else parse_duration(duration) / 1000


def _behind_url(options: RunOptions) -> bool:
    return options.checkpoint is not None and not is_local_path(options.checkpoint)


def _refuse_checkpoint(plan: Plan, checkpoint: str, options: RunOptions, health: Health) -> None:
    """Refuse a checkpoint before Spark starts, if the run would refuse it afterwards."""
    from hintplan.runtime.checkpoint.parts import undamaged_record
    from hintplan.runtime.checkpoint.run_lock import refuse_held

    def waits(waited: Waited) -> None:
        health.enter(WAITING)
        print_message(waited.text)

    waiting = Waiting(longest=_seconds(options.wait), tell=waits)
    refuse_held(checkpoint, take_over=options.take_over, waiting=waiting)
    if is_local_path(checkpoint):
        continued = continuation(
            undamaged_record(absolute(checkpoint), options.spark.conf), plan, keep=options.keep_state
        )
        refuse(continued, checkpoint, allow_drop=options.allow_state_drop)


def _tell_digest(plan: Plan, path: str, expect: str | None) -> None:
    """Print the digest of the plan; PlanError if it is not the expected one."""
    digest = fingerprint(plan)
    if expect is not None and expect != digest:
        raise PlanError(
            f"the plan has the digest {digest}, not {expect}: it is not the plan that was reviewed",
            file=path,
            hint="run the reviewed plan, or have this one reviewed; hintplan diff shows the differences",
        )
    print_message(f"{plan.name}: digest {digest}")


def _refuse_streaming_options(plan: Plan, options: RunOptions) -> None:
    """Refuse streaming options for a batch plan, which reads its input once and ends. Only print a note for --once."""
    if options.trigger is not None:
        raise click.UsageError(f"{plan.name} is a batch plan: it runs once, so it has no --trigger")
    if options.checkpoint is not None:
        raise click.UsageError(f"{plan.name} is a batch plan: it keeps no state, so it has no --checkpoint")
    if options.drain:
        raise click.UsageError(f"{plan.name} is a batch plan: it closes all windows at its end, so it has no --drain")
    if options.grace is not None:
        raise click.UsageError(f"{plan.name} is a batch plan: it stops at once on a signal, so it has no --grace")
    if options.watch:
        raise click.UsageError(f"{plan.name} is a batch plan: it runs once, so it has no --watch")
    if options.once:
        print_message(f"{plan.name} is a batch plan: it reads the existing rows and stops, with or without --once")


@contextmanager
def opened_session(options: SparkOptions, plan: Plan | None = None, checkpoint: str | None = None) -> Iterator[Any]:
    """Provide a Spark session for the block; Spark's output goes to a log file, whose path is printed after an error.

    A new session is configured for ``plan`` on ``checkpoint``, and the packages that Spark will fetch are printed. The
    application has the name of the plan, unless spark-submit has set another name. An existing session, as in a
    notebook, is used and not stopped. NotInstalled if there is no PySpark.
    """
    require("spark")
    from py4j.protocol import Py4JError, Py4JNetworkError
    from pyspark.errors import PySparkException

    from hintplan.runtime.run.needs import Needs, needs_of, refuse_lacking_here, refuse_silent_server
    from hintplan.runtime.spark.explanation import failure_of_spark
    from hintplan.runtime.spark.session import (
        is_started_by_others,
        launch_jvm,
        refuse_managed,
        start_session,
        starts_jvm,
        stop_session,
        without_effect,
    )

    refuse_managed(options.conf)
    borrowed = options.remote is None and is_started_by_others()
    needs = Needs(conf=options.conf)
    if plan is not None and options.remote is None:
        refuse_lacking_here(plan, options.master or options.conf.get("spark.master"))
        needs = needs_of(plan, checkpoint, options.conf)
        refuse_silent_server(needs)
    for note in needs.notes:
        print_message(note)
    log = None if options.debug else SparkLog()
    try:
        with _signals_kept(STOPS_WHEN_STARTED, log) as received, log.captured() if log else nullcontext():
            name = "hintplan" if plan is None else plan.name
            jvm = None
            try:
                if options.remote is None and starts_jvm():
                    jvm = launch_jvm(options.master, needs.conf)
                with notice(_starting(options), descriptor=lambda: log.terminal if log else 2):
                    _load_what_runs()
                    spark = start_session(
                        options.master, needs.conf, remote=options.remote, needs=needs.session, name=name, jvm=jvm
                    )
            except RunError as error:
                # Java also gets the signal, ends if it is still starting, and may get it before this process does.
                code = getattr(error.__cause__, "returncode", None) if jvm is None else jvm.process.poll()
                if not received and code is not None and signal_that_ended(code) is None:
                    time.sleep(_SIGNAL_SECONDS)  # the exit code of a script of Spark does not tell the signal
                number = received[0] if received else signal_that_ended(code)
                if number is not None:
                    raise Exit(128 + number) from None
                raise
            finally:
                if jvm is not None:
                    jvm.abandon()
        if log and options.remote is None:
            log.mute_loss(spark)
        for note in without_effect(spark):
            print_message(note)
        try:
            if received:
                raise KeyboardInterrupt if received[0] == signal.SIGINT else Exit(128 + received[0])
            yield spark
        except Exit:
            raise
        except Exception as error:
            # If the JVM has ended, every error is a consequence of that.
            if not _is_gone(spark) and not isinstance(error, (Py4JNetworkError, ConnectionError)):
                if isinstance(error, (Py4JError, PySparkException)):
                    raise failure_of_spark("Spark failed", error) from error
                raise
            raise RunError(
                "Spark's JVM on this machine has ended, killed or out of memory",
                hint="run again: with a checkpoint, the run continues where it stopped. "
                "--conf spark.driver.memory=4g gives the JVM more memory",
            ) from error
        finally:
            # The JVM may be ending now, and ending is what a signal asks for.
            with _signals_kept("", None), suppress(Py4JNetworkError, ConnectionError):
                if not _is_gone(spark) and not borrowed:
                    stop_session(spark)
    except RunError:
        if log and log.path.stat().st_size:
            print_message(f"Spark's log: {log.path}")
            log = None
        raise
    finally:
        if log:
            log.discard()
    if options.remote is None and not borrowed:
        class_archive.make_in_background()


def _starting(options: SparkOptions) -> str:
    """Return the notice for a Spark session that starts, or that is connected to."""
    if options.remote is not None:
        return f"connecting to {options.remote}"
    import pyspark

    version = ".".join(pyspark.__version__.split(".")[:2])
    java = java_version()
    facts = [f"Java {java}" if java else "", options.master or options.conf.get("spark.master", "")]
    details = ", ".join(filter(None, facts))
    return f"starting Spark {version}" + (f" ({details})" if details else "")


def _load_what_runs() -> None:
    """Import what a run needs, which takes a second, while the JVM starts."""
    import hintplan.runtime.run.execute  # noqa: F401

    with suppress(ImportError):  # PySpark imports it, and pandas with it, at the first literal
        import pyspark.testing.utils  # noqa: F401


@contextmanager
def _signals_kept(answer: str, log: SparkLog | None) -> Iterator[list[int]]:
    """Defer SIGINT and SIGTERM to the end of the block, and yield the list of signal numbers received.

    An interrupt while the JVM starts would make PySpark leave it running forever. ``answer`` is printed at the first
    signal. At the second signal, this process ends, and the JVM with it.
    """
    received: list[int] = []

    def keep(number: int, frame: object) -> None:
        received.append(number)
        if len(received) > 1:
            os._exit(128 + number)
        if answer:
            terminal = log.terminal if log else 2
            os.write(terminal, f"{ERASED if os.isatty(terminal) else ''}{answer}\n".encode())

    if threading.current_thread() is not threading.main_thread():
        yield received  # only the main thread gets signals
        return
    previous = {number: signal.signal(number, keep) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _is_gone(spark: SparkSession) -> bool:
    """Return whether the JVM that this process has started for Spark has ended."""
    gateway = getattr(getattr(spark, "_sc", None), "_gateway", None)
    process = getattr(gateway, "proc", None)
    return process is not None and process.poll() is not None
