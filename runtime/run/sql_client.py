"""Spark behind a SQL client: one session for all plans, which starts with the first statement that needs it.

A plan runs until its available input is read, or in the background until it is stopped. Batch plans share cached
results while the client exists. This module knows plans, but not SQL. It passes the rows of a query to a function of
the caller.
"""

from __future__ import annotations

import re
import signal
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from hintplan.plans.analysis.columns import output_columns
from hintplan.plans.checkpoint.record import absolute, is_local_path
from hintplan.plans.client.interfaces import SparkEngine
from hintplan.plans.connectors.policy import Policy
from hintplan.plans.connectors.table import bounding_options, dropping_options
from hintplan.plans.declarations.row_kinds import ALL_KINDS
from hintplan.plans.errors import RunError
from hintplan.plans.extras import require
from hintplan.plans.model.config import TIME_ZONE
from hintplan.plans.model.plan import Plan
from hintplan.plans.text.names import did_you_mean
from hintplan.runtime.run.command import opened_session
from hintplan.runtime.run.spark_options import SparkOptions
from hintplan.runtime.supervision.stop import Stop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hintplan.runtime.batch.execution import BatchExecution
    from hintplan.runtime.batch.session import Session
    from hintplan.runtime.results.files import KeptRows
    from hintplan.runtime.run.execution import Execution

Row = tuple[str | None, tuple[Any, ...]]
"""The row kind, None in batch mode, and the values, as text or as JSON values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientJob:
    """A plan that runs in the background."""

    name: str
    plan: Plan
    execution: Any

    @property
    def status(self) -> str:
        """``RUNNING``, ``FINISHED`` or ``FAILED``."""
        try:
            self.execution.raise_failure()
        except RunError:
            return "FAILED"
        return "RUNNING" if self.execution.active else "FINISHED"


@dataclass(slots=True, kw_only=True)
class Engine:
    """Runs plans, with the options of ``hintplan run``; close it at the end."""

    master: str | None
    remote: str | None
    conf: Mapping[str, str]
    checkpoint: str | None
    trigger: str | None
    policy: Policy
    allow_state_drop: bool
    allow_older_sink: bool
    allow_missing_files: bool
    as_json: bool
    debug: bool
    jobs: dict[str, ClientJob] = field(default_factory=dict)
    _stack: ExitStack = field(default_factory=ExitStack)
    _spark: SparkSession | None = None
    _batch: Session | None = None

    def insert(self, plan: Plan) -> int:
        """Run ``plan`` on the available input; return 0, or the exit code of the signal that stopped it."""
        require("spark")
        from hintplan.runtime.run.supervised import Supervision, run_plan

        # Start Spark first: it sets a handler for Ctrl-C, which must not replace the handler of the run.
        self._session(plan)
        with _told_to_clients():
            requests = self.checkpoint is not None and plan.mode != "batch" and not is_local_path(self.checkpoint)
            return run_plan(
                plan,
                lambda waiting: self._started(plan),
                Supervision(stop=_stop(plan), once=True),
                as_json=self.as_json,
                requests=requests,
            )

    def start(self, plan: Plan) -> str:
        """Run ``plan`` in the background until it is stopped, and return the name of its job."""
        require("spark")
        from hintplan.runtime.run.execute import execute

        execution = execute(plan, self._session(plan), **self._settings(plan, once=False), trigger=self.trigger)
        numbered = (f"{plan.name}-{number}" for number in range(2, len(self.jobs) + 3))
        name = plan.name if plan.name not in self.jobs else next(n for n in numbered if n not in self.jobs)
        self.jobs[name] = ClientJob(name=name, plan=plan, execution=execution)
        return name

    def select(self, plan: Plan, show: Callable[[list[Row]], None]) -> int:
        """Run a query on the available input, and ``show`` its rows as they arrive; return 0, or a signal's exit code.

        RunError if this machine cannot read the files that workers write for the query.
        """
        require("spark")
        from hintplan.runtime.results.files import KeptRows
        from hintplan.runtime.run.execute import execute
        from hintplan.runtime.run.supervised import follow
        from hintplan.runtime.spark.session import shares_machine

        spark = self._session(plan)
        if self.checkpoint is None and not shares_machine(spark):
            raise RunError(
                "rows of a query wait in files that this machine and all workers can see",
                hint="give a directory on a shared file system with --checkpoint",
            )
        with _told_to_clients(), tempfile.TemporaryDirectory(prefix="hintplan-rows-") as folder:
            base = folder if self.checkpoint is None else f"{absolute(self.checkpoint)}/select-{uuid.uuid4().hex}"
            kept = KeptRows(directory=f"{base}/rows")
            checkpoint = None if self.checkpoint is None else f"{base}/run"
            rows = self._reader(plan)
            stop = _stop(plan)
            with ExitStack() as stack:
                stack.enter_context(stop.listening(signal.SIGINT))
                if self.checkpoint is not None:
                    stack.callback(KeptRows(directory=base).discard)
                execution: Execution | BatchExecution
                if plan.mode == "batch":
                    execution = self._batch_session(plan).execute(plan, results=kept.directory)
                else:
                    execution = execute(
                        plan, spark, checkpoint=checkpoint, drain=True, results=kept.directory, policy=self.policy
                    )
                status = follow(execution, stop, lambda: rows(kept, show))
                if status == "finished":
                    rows(kept, show)
                return 0 if status == "finished" else stop.exit_code

    def fill(self, plan: Plan) -> int:
        """Compute the cached results that ``plan`` reads, and drop its rows; return 0, or a signal's exit code."""
        from hintplan.runtime.run.supervised import follow

        self._session(plan)
        (sink,) = plan.sinks
        table = replace(plan.tables[sink.table], options=dropping_options())
        stop = _stop(plan)
        with _told_to_clients(), stop.listening(signal.SIGINT):
            execution = self._batch_session(plan).execute(replace(plan, tables={**plan.tables, sink.table: table}))
            status = follow(execution, stop, lambda: None)
        return 0 if status == "finished" else stop.exit_code

    def stop(self, name: str) -> None:
        """Stop the job ``name`` after its current batch; RunError if there is no such job."""
        if name not in self.jobs:
            hint = did_you_mean(name, self.jobs, what="jobs") if self.jobs else "nothing runs in the background"
            raise RunError(f"there is no job '{name}'", hint=hint)
        execution = self.jobs.pop(name).execution
        while not execution.stop_between_batches():
            execution.raise_failure()
            execution.wait(0.2)

    def drop_cached(self, plan: Plan) -> None:
        """Drop the cached results that ``plan`` would read."""
        if self._batch is not None:
            self._batch.drop_cached(plan)

    def wait(self) -> int:
        """Wait for all jobs; return 0, or the exit code of the signal that stopped them. RunError if a job fails."""
        from hintplan.runtime.run.supervised import follow

        stop, status = Stop(), "finished"
        try:
            with stop.listening():
                for job in self.jobs.values():
                    if follow(job.execution, stop, lambda: None) == "stopped":
                        status = "stopped"
            return 0 if status == "finished" else stop.exit_code
        finally:
            self.jobs.clear()

    def close(self) -> None:
        """Stop all jobs, and Spark if it was started."""
        for job in self.jobs.values():
            job.execution.stop()
        self.jobs.clear()
        if self._batch is not None:
            self._batch.close()
            self._batch = None
        self._stack.close()
        self._spark = None

    def _started(self, plan: Plan) -> Execution | BatchExecution:
        """Start ``plan`` on the available input, and return its execution."""
        from hintplan.runtime.run.execute import execute

        if plan.mode == "batch":
            return self._batch_session(plan).execute(plan)
        return execute(plan, self._session(plan), **self._settings(plan, once=True))

    def _batch_session(self, plan: Plan) -> Session:
        """Return the session of all batch plans of the client, which holds their cached results."""
        from hintplan.runtime.batch.session import Session

        if self._batch is None:
            self._batch = Session(self._session(plan), policy=self.policy)
        return self._batch

    def _session(self, plan: Plan) -> SparkSession:
        """Return the Spark session; start it with the requirements of the first plan."""
        if self._spark is None:
            options = SparkOptions(master=self.master, remote=self.remote, conf=self.conf, debug=self.debug)
            session = opened_session(options, plan, self.checkpoint)
            self._spark = self._stack.enter_context(session)
        return self._spark

    def _settings(self, plan: Plan, *, once: bool) -> dict[str, Any]:
        directory = None if self.checkpoint is None else f"{absolute(self.checkpoint)}/{_folder(plan.name)}"
        return {
            "checkpoint": directory,
            "once": once,
            "allow_state_drop": self.allow_state_drop,
            "allow_older_sink": self.allow_older_sink,
            "allow_missing_files": self.allow_missing_files,
            "policy": self.policy,
        }

    def _reader(self, plan: Plan) -> Callable[[Any, Callable[[list[Row]], None]], None]:
        from hintplan.runtime.results.json_values import json_value_of
        from hintplan.runtime.results.text import cell

        (sink,) = plan.sinks
        zone = plan.config.get(TIME_ZONE, "UTC")
        types = [column.type for column in output_columns(plan)[sink.inputs[0]]]
        writers = [json_value_of(name) if self.as_json else cell(name, zone) for name in types]
        streams = plan.mode == "streaming"

        def read(kept: KeptRows, show: Callable[[list[Row]], None]) -> None:
            for piece, kinds in kept.new():
                columns = [
                    [write(value) for value in column.to_pylist()]
                    for write, column in zip(writers, piece.columns, strict=True)
                ]
                named = [ALL_KINDS[kind] for kind in kinds] if kinds else ["+I"] * piece.num_rows
                values = zip(*columns, strict=True)
                show(list(zip(named if streams else [None] * piece.num_rows, values, strict=True)))

        return read


open_engine: Callable[..., SparkEngine] = Engine
"""Opens an engine for the SQL client, with the fields of :class:`Engine`."""


@contextmanager
def _told_to_clients() -> Iterator[None]:
    """Replace the hint of errors about unbounded input by a hint for users who write SQL instead of options."""
    try:
        yield
    except RunError as error:
        (problem, *other_problems) = error.diagnostics
        option = (problem.path or "").rpartition(".options.")[2]
        if other_problems or option not in bounding_options():
            raise
        hint = f"set '{option}'; an INSERT can run in the background after SET 'table.dml-sync' = 'false'"
        raise RunError(diagnostics=(replace(problem, hint=hint),)) from error


def _stop(plan: Plan) -> Stop:
    return Stop(now=plan.mode == "batch")


def _folder(name: str) -> str:
    """Convert a plan's name to the name of a directory."""
    return re.sub(r"[^\w.-]", "_", name).lstrip(".") or "plan"
