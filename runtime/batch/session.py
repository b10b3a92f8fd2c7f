"""``Session``: several batch plans in one Spark session, which share cached results (FLIP-205).

    with Session() as session:
        session.execute(hintplan.load("first.json")).await_termination()
        session.execute(hintplan.load("second.json")).await_termination()      # reads results that the first cached
        for result in session.cached_results():
            print(result.operator, result.rows, result.bytes, result.storage_level, result.hits)

Jobs run one after another, whichever threads start them. A plan is built when the plan before it has ended, so it can
read the results of that plan. Results that the earlier plan could not compute are computed again. The end of the block
drops all cached results, even if a job has failed.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Mapping
from types import MappingProxyType, TracebackType
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from hintplan.plans.analysis.fingerprints import meanings
from hintplan.plans.analysis.sub_plans import shared_operators
from hintplan.plans.analysis.validate import plan_problems
from hintplan.plans.api.plans import PlanLike, plan_of
from hintplan.plans.connectors.policy import OPEN, Policy, refuse_reach
from hintplan.plans.errors import PlanError, RunError
from hintplan.plans.model.config import PARALLELISM, TIME_ZONE
from hintplan.plans.model.plan import Plan
from hintplan.plans.text.names import did_you_mean
from hintplan.runtime.batch.build import build_sinks
from hintplan.runtime.batch.cache import CachedResult, ResultCache
from hintplan.runtime.batch.execution import BatchExecution, Told
from hintplan.runtime.builders.table import builder_of
from hintplan.runtime.connectors.program_objects import NO_OBJECTS, ProgramObjects, SinkFunction, objects_for
from hintplan.runtime.connectors.table import failed_tables
from hintplan.runtime.requests.request import RequestRun
from hintplan.runtime.results.files import keeping
from hintplan.runtime.spark.planning import plan_wide_rows, shuffle_without_checksums
from hintplan.runtime.spark.session import (
    give_variables,
    prepare_session,
    restriction_notes,
    start_session,
)
from hintplan.runtime.spark.shipping import ship_code

_SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"


class Session:
    """Runs batch plans on ``spark``, the active session, or a new local one, which remains open when this one closes.

    ``policy`` lists the places and modules that plans may use, in addition to those always open. On Spark Connect,
    plans can read DataFrames of temporary views and of large local data only ``with_views``. Plans then run in a copy
    of ``spark`` as it is now.
    """

    def __init__(
        self,
        spark: SparkSession | None = None,
        *,
        policy: Policy | Mapping[str, Any] = OPEN,
        with_views: bool = False,
    ) -> None:
        policy = Policy.of(policy)
        spark = spark or SparkSession.getActiveSession() or start_session(None, {})
        self._spark = prepare_session(
            spark, time_zone="UTC", once=True, with_views=with_views, unrestricted=policy.unrestricted_spark
        )
        shuffle_without_checksums(self._spark)
        self._policy = policy
        self._partitions = str(self._spark.conf.get(_SHUFFLE_PARTITIONS))
        self._cache = ResultCache(self._spark)
        self._execution: BatchExecution | None = None
        # Keeps the DataFrames alive, so that no other DataFrame gets the identity of one of them.
        self._objects: list[ProgramObjects] = []
        self._starting = threading.Lock()
        self._closed = False
        ship_code(self._spark, policy.modules)
        give_variables(self._spark, policy.environment)

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def execute(
        self,
        plan: PlanLike,
        *,
        tables: Mapping[str, DataFrame] = MappingProxyType({}),
        sinks: Mapping[str, SinkFunction] = MappingProxyType({}),
        results: str | None = None,
    ) -> BatchExecution:
        """Start the jobs of ``plan``, one per sink, once the jobs of the plan before have ended.

        ``tables``, ``sinks`` and ``results`` are as in :func:`hintplan.runtime.run.execute.execute`. Later plans find a
        cached result of a DataFrame if they are given the same DataFrame. Raise PlanError if the plan is wrong;
        RunError if it cannot run here, or is a streaming plan.
        """
        loaded = plan_of(plan)
        return self._started(loaded, results, close=False, objects=objects_for(loaded, tables, sinks, self._spark))

    def cached_results(self) -> tuple[CachedResult, ...]:
        """Return the results that are or will be kept, in the order in which plans requested them."""
        return self._cache.results()

    def uncache(self, operator: str) -> int:
        """Drop the results of operators called ``operator``, of any plan, and return the number of results.

        Raise RunError if there is none.
        """
        entries = tuple(self._cache.entries.values())
        matching = [entry for entry in entries if entry.operator == operator]
        if not matching:
            cached_ids = sorted({entry.operator for entry in entries})
            raise RunError(
                f"there is no cached result of an operator '{operator}'",
                hint=did_you_mean(operator, cached_ids, what="cached results") if cached_ids else "nothing is cached",
            )
        for entry in matching:
            self._cache.drop(entry)
        return len(matching)

    def drop_cached(self, plan: PlanLike) -> int:
        """Drop the results that ``plan`` would read, of any plan, and return the number of results."""
        read = meanings(plan_of(plan)).values()
        entries = [entry for meaning in read if (entry := self._cache.find(meaning)) is not None]
        for entry in entries:
            self._cache.drop(entry)
        return len(entries)

    def close(self) -> None:
        """Stop the running plan and drop all cached results. A second call changes nothing."""
        self._closed = True
        self._stop()
        with self._starting:  # a thread may just have started a plan
            self._stop()
            self._cache.close()

    def execute_and_close(
        self, plan: Plan, *, objects: ProgramObjects = NO_OBJECTS, results: str | None = None, told: Told | None = None
    ) -> BatchExecution:
        """Start the jobs of ``plan`` as :meth:`execute` does, and close the session when they have ended.

        ``told`` receives each job that has succeeded.
        """
        try:
            return self._started(plan, results, close=True, told=told, objects=objects)
        except BaseException:
            self.close()
            raise

    def _stop(self) -> None:
        if self._execution is not None and self._execution.active:
            self._execution.stop()

    def _started(
        self, plan: Plan, results: str | None, *, close: bool, objects: ProgramObjects, told: Told | None = None
    ) -> BatchExecution:
        self._refuse_if_closed()
        problems = plan_problems(plan)
        if problems:
            raise PlanError(diagnostics=problems)
        if plan.mode != "batch":
            raise RunError(
                f"plan {plan.name} is a streaming plan; a Session runs batch plans",
                hint="run it with hintplan.execute, or SET 'execution.runtime-mode' = 'batch' in its script",
            )
        refuse_reach(plan.tables, self._policy)
        with self._starting:
            if self._execution is not None:
                self._execution.wait(None)
            self._refuse_if_closed()
            self._objects.append(objects)
            self._execution = self._built(plan, results, close=close, told=told, objects=objects.on(self._spark))
            self._execution.start()
            return self._execution

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise RunError("the session is closed", hint="open another one; the cached results of this one are lost")

    def _built(
        self, plan: Plan, results: str | None, *, close: bool, told: Told | None, objects: ProgramObjects
    ) -> BatchExecution:
        zone = plan.config.get(TIME_ZONE, "UTC")
        self._spark.conf.set("spark.sql.session.timeZone", zone)
        self._spark.conf.set(_SHUFFLE_PARTITIONS, plan.config.get(PARALLELISM, self._partitions))
        plan_wide_rows(self._spark, sum(len(table.columns) for table in plan.tables.values()))
        lookups = RequestRun(
            token=uuid.uuid4().hex,
            allowed_modules=self._policy.modules,
            allowed_paths=self._policy.absolute_paths,
            time_zone=zone,
            once=True,
        )
        if results is not None:
            keeping(self._spark)
        try:
            jobs = build_sinks(plan, self._spark, lookups, self._cache, results, objects)
        except BaseException:
            self._cache.end(lookups.token, well=False)
            raise

        def finished(well: bool) -> None:
            self._cache.end(lookups.token, well=well)
            if close:
                self._closed = True
                self._cache.close()

        return BatchExecution(
            plan=plan.name,
            spark=self._spark,
            jobs=jobs,
            cache=self._cache,
            finished=finished,
            tables=failed_tables(self._spark, plan.tables),
            notes=(*_notes(plan), *restriction_notes(self._spark), *objects.notes),
            told=told,
        )


def _notes(plan: Plan) -> tuple[str, ...]:
    """Return notes on all differences between the run and what the plan may suggest."""
    notes = [note for operator in plan.operators if (note := builder_of(operator).batch_note(operator)) is not None]
    for name, sinks in shared_operators(plan).items():
        if plan.operator(name).cached is None:
            notes.append(
                f"{name} is computed once for each of {len(sinks)} sinks; "
                f"{name}.cached.enabled=true in the plan keeps its result for all of them"
            )
    return tuple(notes)
