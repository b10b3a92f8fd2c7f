"""Runs a plan on a session of its own, guarded by the checkpoint.

A streaming plan has one or more queries (:mod:`hintplan.plans.analysis.streaming_queries`). A batch plan runs as a
:class:`hintplan.runtime.batch.session.Session` with one job per sink.

    execution = execute(hintplan.load("plan.json"), checkpoint="/data/checkpoints/revenue", once=True)
    execution.await_termination()

This module does not know the command line. It refuses invalid plans and checkpoints before it starts or writes
anything.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
import uuid
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession

from hintplan.plans.analysis.streaming_queries import Query
from hintplan.plans.analysis.sub_plans import shared_operators
from hintplan.plans.analysis.validate import plan_problems
from hintplan.plans.api.plans import PlanLike, plan_of
from hintplan.plans.checkpoint.continuation import (
    refuse,
)
from hintplan.plans.checkpoint.report import checkpoint_notes
from hintplan.plans.connectors.policy import OPEN, Policy, refuse_reach
from hintplan.plans.declarations.durations import parse_duration
from hintplan.plans.errors import PlanError, RunError
from hintplan.plans.model.config import TIME_ZONE
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import LateRows
from hintplan.runtime.batch.execution import BatchExecution
from hintplan.runtime.batch.session import Session
from hintplan.runtime.checkpoint.clock_notes import clock_notes
from hintplan.runtime.checkpoint.files import (
    NO_FILES,
    local_directory,
)
from hintplan.runtime.checkpoint.lease import Waiting, lease_seconds
from hintplan.runtime.checkpoint.run_lock import TELLS, acquire, await_free
from hintplan.runtime.connectors import table as connectors
from hintplan.runtime.connectors.program_objects import SinkFunction, objects_for
from hintplan.runtime.engine.logged_files import ALLOWED, REACHED
from hintplan.runtime.metrics.metrics import Metrics
from hintplan.runtime.requests.request import RequestRun
from hintplan.runtime.results import files
from hintplan.runtime.run.building import before_run
from hintplan.runtime.run.draining import drained_queries, queries_by_time, refuse_drained
from hintplan.runtime.run.execution import Execution
from hintplan.runtime.run.in_advance import refuse_in_advance
from hintplan.runtime.run.live_edits import LiveEdits, refuse_unwatchable, watched_file
from hintplan.runtime.run.needs import refuse_unreachable, started_for
from hintplan.runtime.run.sink_batches import refuse_other_batches
from hintplan.runtime.run.starting import Start
from hintplan.runtime.spark.planning import (
    plan_batches_as_a_whole,
    plan_wide_rows,
    shuffle_without_checksums,
    write_logs_by_renaming,
)
from hintplan.runtime.spark.session import (
    give_variables,
    is_remote,
    prepare_session,
    refuse_stopped,
    restriction_notes,
    shares_machine,
)
from hintplan.runtime.spark.shipping import ship_code

DEFAULT_TRIGGER = "1 s"
"""The time between the starts of two batches of a continuous run. Without a trigger, Spark would run empty batches
without a pause.
"""


def execute(
    plan: PlanLike,
    spark: SparkSession | None = None,
    *,
    tables: Mapping[str, DataFrame] = MappingProxyType({}),
    sinks: Mapping[str, SinkFunction] = MappingProxyType({}),
    checkpoint: str | os.PathLike[str] | None = None,
    once: bool = False,
    drain: bool = False,
    trigger: str | None = None,
    policy: Policy | Mapping[str, Any] = OPEN,
    allow_state_drop: bool = False,
    keep_state: Collection[str] = (),
    allow_older_sink: bool = False,
    allow_missing_files: bool = False,
    results: str | None = None,
    take_over: bool = False,
    lease: str | None = None,
    waiting: Waiting | None = None,
    metrics: Metrics | None = None,
    watch: bool | LiveEdits = False,
) -> Execution | BatchExecution:
    """Start ``plan``, a plan or the path of a file, as streaming queries or batch jobs.

    It runs on ``spark``, the session of the DataFrames, the active session, or a new local session, in this order.

    - ``tables`` has a DataFrame for each table that the plan reads with the connector ``dataframe``: streaming
      DataFrames for a stream, others for a batch job.
    - ``sinks`` has a function for each such table that the plan writes. It is called with the rows and the number of
      each micro-batch. After a failure, it may be called again with the same number.
    - ``checkpoint`` is the directory where the run keeps its state between runs, on a file system that all workers
      share. Without it, a local run uses a temporary directory.
    - ``once`` processes the available input and ends. ``drain`` does so too, and then closes all windows that go by
      event time, after which the checkpoint cannot be continued. A ``once`` run without a checkpoint always drains.
    - ``trigger`` is the time between two batches, such as ``'5 s'``.
    - ``policy``, which may be a mapping, allows the plan to reach and load more than is always allowed.
    - ``allow_state_drop``: a run refuses a checkpoint with state that the plan does not continue
      (:mod:`hintplan.plans.checkpoint.continuation`). With this flag, it drops that state.
    - ``keep_state`` names operators that keep their stored rows, although the changed plan would store other rows.
    - ``allow_older_sink`` accepts a sink that has lost batches which the checkpoint has written.
    - ``allow_missing_files``: a batch fails if its source files were removed or changed since it recorded them, unless
      this flag is set.
    - ``results`` is a directory, with the same requirements as ``checkpoint``. The run keeps its rows there for
      :class:`hintplan.runtime.results.files.KeptRows`, instead of writing them to the sink.
    - ``take_over``: a checkpoint has one run at a time (:mod:`hintplan.runtime.checkpoint.run_lock`). With this flag,
      the run takes the checkpoint from a run on another machine, whose state is unknown.
    - ``lease`` is the duration of the lease on a shared checkpoint, such as ``'60 s'``. ``waiting`` configures the wait
      for another run's lease. By default, the run waits until it sees that the other run is alive, or until the lease
      expires.
    - ``metrics`` measure the run (:func:`hintplan.runtime.metrics.metrics.open_metrics`).
    - ``watch``: the run reads the file of the plan again when it changes, and applies edits between two batches
      (:mod:`hintplan.runtime.run.live_edits`). The run looks at the file while the program waits for it or looks at
      its progress.

    A batch plan processes the available input and ends. It has neither a checkpoint nor a trigger, and its cached
    results are dropped after its last job. PlanError if the plan is invalid; RunError if it cannot run here.
    """
    edits = watch if isinstance(watch, LiveEdits) else watched_file(plan) if watch else None
    plan, checkpoint = plan_of(plan), None if checkpoint is None else os.fspath(checkpoint)
    if edits is not None:
        refuse_unwatchable(plan, checkpoint, once=once or drain)
    problems = plan_problems(plan)
    if problems:
        raise PlanError(diagnostics=problems)
    if spark is not None:
        refuse_stopped(spark)
    objects, policy = objects_for(plan, tables, sinks, spark), Policy.of(policy)
    spark = spark or objects.session()
    if plan.mode == "batch":
        _refuse_streaming_settings(checkpoint, trigger)
        refuse_reach(plan.tables, policy)
        spark = spark or SparkSession.getActiveSession() or started_for(plan, None)
        followed = None if metrics is None else metrics.begun(plan, {sink.id: (sink.id,) for sink in plan.sinks})
        observer = None if followed is None else followed.told
        with objects.with_views() as objects:
            session = Session(spark, policy=policy, with_views=bool(objects.views))
            jobs = session.execute_and_close(plan, objects=objects, results=results, told=observer)
        if followed is not None:
            followed.begin(jobs)
        return jobs
    _refuse_cached(plan)
    refuse_reach(plan.tables, policy, checkpoint)
    drain = drain or (once and checkpoint is None)
    once = once or drain
    settings, seconds = _trigger(once, trigger), lease_seconds(lease)
    if once:
        for scan in plan.scans:
            connectors.refuse_unbounded(scan.table, plan.tables[scan.table])
    spark = spark or SparkSession.getActiveSession()
    if spark is None:
        refuse_in_advance(plan, checkpoint, {})
        spark = started_for(plan, checkpoint)
    zone = plan.config.get(TIME_ZONE, "UTC")
    with objects.with_views() as objects:
        own = prepare_session(
            spark,
            time_zone=zone,
            once=once,
            take_over=take_over,
            with_views=bool(objects.views),
            unrestricted=policy.unrestricted_spark,
        )
        objects = objects.on(own)
    if checkpoint is None and not shares_machine(own):
        raise RunError(
            "a run on a cluster keeps its state in a checkpoint that all workers can reach",
            hint="give a checkpoint directory on a shared file system",
        )
    refuse_unreachable(own, plan, checkpoint)
    if is_remote(own):
        refuse_late_rows(plan)
        if edits is not None:
            raise RunError("edits of a running job are not applied on Spark Connect", hint="leave out watch")
    waiting = waiting or TELLS
    guarded = checkpoint is not None and not is_remote(own)
    free = await_free(own, checkpoint, waiting, take_over=take_over) if checkpoint is not None and guarded else None
    before = before_run(plan, own, checkpoint, keep_state)
    refuse(before.continuation, checkpoint or "", allow_drop=allow_state_drop)
    timed = queries_by_time(plan, before.continuation.queries)
    earlier = drained_queries(before.there, before.recorded, before.continuation.queries)
    refuse_drained(earlier, timed, checkpoint or "", drain=drain)
    own.conf.set("spark.sql.shuffle.partitions", str(before.partitions))
    plan_batches_as_a_whole(own)
    shuffle_without_checksums(own)
    plan_wide_rows(own, sum(len(table.columns) for table in plan.tables.values()))
    if allow_missing_files and not is_remote(own):
        own.conf.set(ALLOWED, "true")
    if policy.paths and not is_remote(own):
        own.conf.set(REACHED, json.dumps(policy.absolute_paths))
    ship_code(own, policy.modules)
    give_variables(own, policy.environment)
    lookups = RequestRun(
        token=uuid.uuid4().hex,
        allowed_modules=policy.modules,
        allowed_paths=policy.absolute_paths,
        time_zone=zone,
        once=once,
    )
    if results is not None:
        files.keeping(own)
    location = checkpoint or tempfile.mkdtemp(prefix="hintplan-checkpoint-")
    if not is_remote(own) and (location.startswith("s3a://") or local_directory(own, location) is not None):
        write_logs_by_renaming(own)
    start = Start(
        spark=own,
        checkpoint=checkpoint,
        location=location,
        lookups=lookups,
        objects=objects,
        trigger=settings,
        drain=drain,
        keep_state=keep_state,
        results=results,
    )
    planned = start.planned(plan, before)
    running = planned.continued.queries
    followed = None if metrics is None else metrics.begun(plan, {query.id: query.sinks for query in running})
    notes = (
        *(() if before.recorded is None else checkpoint_notes(before.recorded, plan, str(own.version))),
        *_repeated(plan, running),
        *restriction_notes(own),
        *objects.notes,
        *planned.building.notes,
    )
    failed_tables = connectors.failed_tables(own, plan.tables)
    lock = None
    if checkpoint is not None and guarded:
        lock = acquire(own, checkpoint, take_over=take_over, seconds=seconds, seen=free, waiting=waiting)
    execution = Execution(
        queries={},
        checkpoint=location,
        temporary=checkpoint is None,
        partitions=before.partitions,
        notes=notes,
        followed=followed,
        lock=lock,
        row_counts=start.counts,
        failed_tables=failed_tables,
        function_failures=objects.failures,
        edits=edits,
    )
    if lock is not None:
        lock.in_use = partial(_is_active, execution)
    try:
        there = NO_FILES if checkpoint is None else planned.building.unmoved_files()
        if results is None:
            refuse_other_batches(
                plan,
                running,
                there,
                before.recorded,
                own,
                allow_older=allow_older_sink or is_remote(own),
            )
        if before.recorded is not None:
            logs = [query.logs for query in before.recorded.queries]
            execution.notes += tuple(clock_notes(there, logs, int(time.time() * 1000)))
        if edits is not None:
            edits.begin(plan, start)
        start.begin(execution, planned, there)
        execution.advance_if_read()
        if followed is not None:
            followed.begin(execution)
    except BaseException:
        execution.stop()
        raise
    return execution


def _is_active(execution: Execution) -> bool:
    """Return True while the run is active, and False once its session has stopped."""
    try:
        return execution.is_unfinished
    except (Py4JError, OSError):
        return False


def _refuse_streaming_settings(checkpoint: str | None, trigger: str | None) -> None:
    if checkpoint is not None:
        raise RunError("a batch plan keeps no state, so it has no checkpoint", hint="run it without one")
    if trigger is not None:
        raise RunError("a batch plan runs once, so it has no trigger", hint="run it without one")


def _refuse_cached(plan: Plan) -> None:
    for operator in plan.operators:
        settings = operator.cached
        if settings is not None and settings.enabled:
            raise RunError(
                f"operator {operator.id} is to be cached, which only batch plans can",
                hint="SET 'execution.runtime-mode' = 'batch' in the script, or remove the setting",
                path=f"operators.{operator.id}.cached",
            )


def refuse_late_rows(plan: Plan) -> None:
    """Raise RunError for a plan that writes late rows, which a query with a single sink cannot do."""
    for operator in plan.operators:
        if isinstance(operator, LateRows):
            raise RunError(
                f"late rows cannot go to '{operator.target}' on Spark Connect: there a query has one sink",
                hint="set late-rows.target to 'none', or run without Spark Connect",
                path=f"tables.{operator.target}",
            )


def _trigger(once: bool, trigger: str | None) -> dict[str, Any]:
    if once and trigger is not None:
        raise RunError("a run with once has no trigger", hint="give one or the other")
    if once:
        return {"availableNow": True}
    try:
        milliseconds = parse_duration(trigger or DEFAULT_TRIGGER, require_unit=True)
    except ValueError as error:
        raise RunError(f"the trigger is wrong: {error}", hint="write a duration such as '5 s'") from error
    return {"processingTime": f"{milliseconds} milliseconds"}


def _repeated(plan: Plan, running: Sequence[Query]) -> list[str]:
    """Return notes on operators that run, and keep state, separately in several queries."""
    notes = []
    query_of = {sink: " and ".join(query.sinks) for query in running for sink in query.sinks}
    for name, sinks in shared_operators(plan).items():
        queries = tuple(dict.fromkeys(query_of[sink] for sink in sinks))
        if len(queries) == 1:
            continue
        stateful = any(plan.operator(ancestor).state for ancestor in plan.upstream(name))
        notes.append(
            f"{name} runs once in the query of each of {len(queries)} sinks ({', '.join(queries)})"
            + (", with state of its own in each" if stateful else "")
        )
    return notes
