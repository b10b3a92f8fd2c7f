"""Builds the batch DataFrames of a plan: the DataFrame that is written to each sink.

:mod:`hintplan.runtime.builders.table` has the builder of each operator. An operator whose result is cached, or was
cached by an earlier job of the session, is built once and kept by :class:`hintplan.runtime.batch.cache.ResultCache`.
Starts no job.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hintplan.plans.analysis.changelog import output_kinds
from hintplan.plans.analysis.columns import output_columns
from hintplan.plans.analysis.drawn import drawing
from hintplan.plans.analysis.fingerprints import meanings
from hintplan.plans.declarations.row_kinds import INSERT_ONLY
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Correlate, LookupJoin, Operator, Scan, Sink
from hintplan.plans.settings.cached import CACHED, ENABLED
from hintplan.plans.settings.views import CachedSettings
from hintplan.runtime.batch.cache import CacheEntry, ResultCache
from hintplan.runtime.batch.observed import ObservedMetrics
from hintplan.runtime.batch.snapshot import snapshot
from hintplan.runtime.builders.backend import SparkBackend
from hintplan.runtime.builders.edges import Edges
from hintplan.runtime.builders.table import builder_of
from hintplan.runtime.connectors import table as connectors
from hintplan.runtime.connectors.program_objects import NO_OBJECTS, ProgramObjects
from hintplan.runtime.requests.request import RequestRun
from hintplan.runtime.results.files import KeepBatch

_KEPT = CachedSettings(enabled=True, storage_level="MEMORY_AND_DISK")


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltSink:
    """The job of a sink: its rows, their observed metrics, and the cached results that they are read from.

    ``write`` writes the rows; calling it runs the job. ``lookups`` and ``functions`` are the operators that look up and
    call.
    """

    sink: str
    write: Callable[[], None]
    observed: ObservedMetrics
    reads: tuple[CacheEntry, ...]
    lookups: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()


def build_sinks(
    plan: Plan,
    spark: SparkSession,
    lookups: RequestRun,
    cache: ResultCache,
    results: str | None,
    objects: ProgramObjects = NO_OBJECTS,
) -> tuple[BuiltSink, ...]:
    """Return a job per sink of ``plan``, in the order of the sinks.

    The run with the token of ``lookups`` uses cached results until :meth:`ResultCache.end` ends it. With ``results``,
    rows are kept in that directory (:mod:`hintplan.runtime.results.files`) instead of written to the sink. Raise
    RunError, which names the operator, for an operator that may not or cannot run.
    """
    edges = Edges(
        backend=SparkBackend(session=spark),
        plan=plan,
        columns=output_columns(plan),
        changelog={name: kinds != INSERT_ONLY for name, kinds in output_kinds(plan).items()},
        lookups=lookups,
        objects=objects,
    )
    building = _Building(
        edges=edges,
        cache=cache,
        meanings=meanings(plan, objects.identities),
        results=results,
        scans={scan.id: scan for scan in plan.scans},
        listed={},
        snapshots={},
        drawing=drawing(plan),
        drawn={},
    )
    return tuple(building.sink(sink) for sink in plan.sinks)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Building:
    edges: Edges
    cache: ResultCache
    meanings: Mapping[str, str]
    results: str | None
    scans: Mapping[str, Scan]
    listed: dict[str, DataFrame]
    """The DataFrames of scans, by id: one listing of files serves all sinks."""
    snapshots: dict[str, DataFrame]
    """The same scans, as cached results read them."""
    drawing: frozenset[str]
    drawn: dict[str, CacheEntry]
    """Random values with several readers, by id: all readers in the run must see the same values."""

    def sink(self, sink: Sink) -> BuiltSink:
        observed = ObservedMetrics()
        edges = replace(self.edges, observe_as=observed.observation)
        frames, reads = self.frames(sink, edges)
        top = frames[sink.id].observe(observed.observation(sink.id), F.count(F.lit(1)).alias("rows_out"))
        if self.results is not None:
            write: Callable[[], None] = partial(KeepBatch(directory=self.results), top, 0)
        else:
            table = edges.plan.tables[sink.table]
            if sink.overwrite is None:
                write = connectors.batch_writer(top, sink.table, table, edges.objects)
            else:
                write = connectors.batch_overwriter(top, sink.table, table)
        operators = [edges.plan.by_id[name] for name in observed.observations]
        return BuiltSink(
            sink=sink.id,
            write=write,
            observed=observed,
            reads=reads,
            lookups=tuple(operator.id for operator in operators if isinstance(operator, LookupJoin)),
            functions=tuple(operator.id for operator in operators if isinstance(operator, Correlate)),
        )

    def frames(self, sink: Sink, edges: Edges) -> tuple[dict[str, DataFrame], tuple[CacheEntry, ...]]:
        """Return the DataFrames that ``sink`` needs, down to cached results, and the cached results that it reads."""
        needed = self.needed(sink)
        kept = self.below_new_results(needed)
        frames: dict[str, DataFrame] = {}
        reads: dict[str, tuple[CacheEntry, ...]] = {}
        for operator in edges.plan.operators:
            if operator.id not in needed:
                continue
            entry = self.entry(operator)
            below = _distinct(entry for name in operator.inputs for entry in reads.get(name, ()))
            settings = operator.cached
            if entry is None and settings is not None and settings.enabled:
                frame = self.frame(operator, frames, edges, kept)
                meaning, run = self.meanings[operator.id], edges.lookups.token
                entry = self.cache.add(operator.id, edges.plan, meaning, settings, frame, below, run)
            if entry is None and operator.id in self.drawing:
                entry = self.drawn_once(operator, self.frame(operator, frames, edges, kept), below)
            if entry is None:
                frames[operator.id], reads[operator.id] = self.frame(operator, frames, edges, kept), below
            else:
                frames[operator.id], reads[operator.id] = entry.frame, (entry,)
        return frames, reads[sink.id]

    def drawn_once(self, operator: Operator, frame: DataFrame, below: tuple[CacheEntry, ...]) -> CacheEntry:
        """Return the rows of ``frame``, kept until the run ends; no other run finds them."""
        if operator.id not in self.drawn:
            plan, meaning, run = self.edges.plan, self.meanings[operator.id], self.edges.lookups.token
            entry = self.cache.add(operator.id, plan, f"{meaning} {run}", _KEPT, frame, below, run)
            self.cache.drop(entry)
            self.drawn[operator.id] = entry
        return self.drawn[operator.id]

    def needed(self, sink: Sink) -> set[str]:
        needed: set[str] = set()
        open_ids = [sink.id]
        while open_ids:
            name = open_ids.pop()
            if name not in needed:
                needed.add(name)
                operator = self.edges.plan.operator(name)
                if self.entry(operator) is None:
                    open_ids += operator.inputs
        return needed

    def entry(self, operator: Operator) -> CacheEntry | None:
        """Return the cached result for ``operator``, unless its plan declines cached results."""
        settings = operator.settings.get(CACHED.name)
        meaning = self.meanings[operator.id]
        if settings is None or settings.values[ENABLED]:
            return self.cache.find(meaning, self.edges.lookups.token)
        entry = self.cache.find(meaning)
        if entry is not None and settings.origin.get("statement", {}).get(ENABLED) is False:
            self.cache.drop(entry)  # UNCACHE TABLE
        return None

    def below_new_results(self, needed: set[str]) -> set[str]:
        """Return the ``needed`` operators that are computed for a result which this run will cache."""
        below: set[str] = set()
        for operator in reversed(self.edges.plan.operators):
            settings = operator.cached
            caches = settings is not None and settings.enabled and self.entry(operator) is None
            if operator.id in needed and (caches or operator.id in below):
                below |= {operator.id, *operator.inputs}
        return below & needed

    def frame(self, operator: Operator, frames: Mapping[str, DataFrame], edges: Edges, kept: set[str]) -> DataFrame:
        build = builder_of(operator).batch
        assert build is not None, f"{operator.id} is of streaming plans only"
        scan = self.scans.get(operator.id)
        if scan is None:
            return build(operator, [frames[name] for name in operator.inputs], edges)
        if scan.id not in self.listed:
            self.listed[scan.id] = build(scan, [], edges)
        if scan.id not in kept:
            return self.listed[scan.id]
        if scan.id not in self.snapshots:
            table = edges.plan.tables[scan.table]
            self.snapshots[scan.id] = snapshot(edges.spark, self.listed[scan.id], scan.table, table, scan.columns)
        return self.snapshots[scan.id]


def _distinct(entries: Iterable[CacheEntry]) -> tuple[CacheEntry, ...]:
    return tuple({id(entry): entry for entry in entries}.values())
