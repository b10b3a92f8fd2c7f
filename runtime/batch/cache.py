"""Cached results of a session (FLIP-205): what is kept, where, and how often it served.

A result is found by what its operator means (:mod:`hintplan.plans.analysis.fingerprints`), so another plan with an
equal operator reads it too. It is created by the first job that computes it, and stays as it was then, a snapshot of
its inputs, until it is dropped. Blocks that are lost with an executor are computed again by Spark, from the files that
the snapshot is of (:mod:`hintplan.runtime.batch.snapshot`).

A run of a plan holds what it uses from when it is built to when it has ended: what is dropped meanwhile is gone for
those who come later, and is freed with its last user. What a run that did not end well leaves in part is dropped.

    cache = ResultCache(spark)
    entry = cache.find(meaning, run) or cache.add("join_o_c", plan, meaning, settings, frame, reads=(), run=run)
    cache.end(run, well=True)

Threads may use it at the same time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hintplan.plans.model.plan import Plan
from hintplan.plans.settings.views import CachedSettings
from hintplan.runtime.spark.session import is_remote
from hintplan.runtime.spark.versions import facts


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedResult:
    """A cached result as it was when it was asked for.

    ``rows`` and ``bytes`` (as stored, on all executors) are None until all of it has been computed; on Spark Connect
    ``bytes`` is None. ``hits`` counts the jobs that read it without computing it.
    """

    operator: str
    plan: str
    rows: int | None
    bytes: int | None
    storage_level: str
    hits: int
    drop: Callable[[], None] = field(repr=False, compare=False)

    def invalidate(self) -> None:
        """Drop the result: the next job that wants it computes and keeps it anew. Doing it again changes nothing."""
        self.drop()


@dataclass(slots=True, kw_only=True, eq=False)
class CacheEntry:
    """A result under ``meaning``, computed from those it ``reads``; ``users`` are the runs that use it."""

    operator: str
    plan: str
    meaning: str
    storage_level: str
    frame: DataFrame
    reads: tuple[CacheEntry, ...]
    users: set[Hashable] = field(default_factory=set)
    computed: bool = False
    hits: int = 0

    def served(self) -> bool:
        """Note that a job which reads this result has ended well; whether it found the result there."""
        if self.computed:
            self.hits += 1
            return True
        self.computed = True
        for entry in self.reads:
            entry.served()
        return False


@dataclass(slots=True)
class ResultCache:
    """The results of one session: ``entries`` by meaning, and in ``kept`` all that may be stored, dropped ones too."""

    spark: SparkSession
    entries: dict[str, CacheEntry] = field(default_factory=dict)
    kept: list[CacheEntry] = field(default_factory=list)
    added: int = 0
    lock: threading.RLock = field(default_factory=threading.RLock)

    def find(self, meaning: str, run: Hashable = None) -> CacheEntry | None:
        """The result of operators that mean this, computed or still to be; ``run``, if there is one, now uses it."""
        with self.lock:
            entry = self.entries.get(meaning)
            if entry is not None and run is not None:
                entry.users.add(run)
            return entry

    def add(
        self,
        operator: str,
        plan: Plan,
        meaning: str,
        settings: CachedSettings,
        frame: DataFrame,
        reads: tuple[CacheEntry, ...],
        run: Hashable,
    ) -> CacheEntry:
        """Have Spark keep the rows of ``frame`` when they are computed for the first time; ``run`` uses them."""
        with self.lock:
            self.added += 1
            # Spark takes equal plans for one another wherever they come from. A metric with a name of its own makes
            # this one unlike any other, so that nobody reads it who has not found it here.
            marked = frame.observe(f"__cached_{id(self):x}_{self.added}", F.count(F.lit(1)).alias("rows"))
            entry = CacheEntry(
                operator=operator,
                plan=plan.name,
                meaning=meaning,
                storage_level=settings.storage_level,
                frame=marked.persist(_storage_level(settings.storage_level)),
                reads=reads,
                users={run},
            )
            self.entries[meaning] = entry
            self.kept.append(entry)
            return entry

    def drop(self, entry: CacheEntry) -> None:
        """Forget ``entry``, and free its blocks once no run uses them."""
        with self.lock:
            if self.entries.get(entry.meaning) is entry:
                del self.entries[entry.meaning]
            self._free()

    def end(self, run: Hashable, *, well: bool) -> None:
        """``run`` uses nothing any more. Unless it has ended ``well``, what it used and is not there as a whole goes.

        Of a result that no job could compute nothing may stay: neither rows nor the list of files it was to come from.
        """
        with self.lock:
            for entry in [each for each in self.kept if run in each.users]:
                entry.users.remove(run)
                if not well and self.entries.get(entry.meaning) is entry and not self.is_whole(entry):
                    del self.entries[entry.meaning]
            self._free()

    def close(self) -> None:
        """Drop all results, and free them whoever uses them."""
        with self.lock:
            self.entries.clear()
            for entry in self.kept:
                entry.users.clear()
            self._free()

    def _free(self) -> None:
        for entry in [each for each in self.kept if not each.users and self.entries.get(each.meaning) is not each]:
            self.kept.remove(entry)
            entry.frame.unpersist(blocking=True)

    def results(self) -> tuple[CachedResult, ...]:
        """All results, in the order in which plans asked for them."""
        with self.lock:
            return tuple(self._result(entry) for entry in self.entries.values())

    def _result(self, entry: CacheEntry) -> CachedResult:
        rows, size = self.measured(entry)

        def drop() -> None:
            self.drop(entry)

        return CachedResult(
            operator=entry.operator,
            plan=entry.plan,
            rows=rows,
            bytes=size,
            storage_level=entry.storage_level,
            hits=entry.hits,
            drop=drop,
        )

    def is_whole(self, entry: CacheEntry) -> bool:
        """Whether all of a result has been stored."""
        if is_remote(self.spark):
            return _is_loaded(entry.frame)
        return _builder(self.spark, entry.frame) is not None

    def measured(self, entry: CacheEntry) -> tuple[int | None, int | None]:
        """Rows and stored bytes of a result, as far as it is known to be there as a whole."""
        if is_remote(self.spark):
            # A Connect client sees no storage status; counting reads what is stored, and only the sizes of its batches.
            return (entry.frame.count(), None) if _is_loaded(entry.frame) else (None, None)
        return _storage(self.spark, entry.frame)


def _builder(java: Any, frame: Any) -> Any:
    """What Spark has stored of ``frame``, if that is all of it; else None."""
    found = java._jsparkSession.sharedState().cacheManager().lookupCachedData(frame._jdf)
    # Py4J shows Scala's None as Python's.
    builder = None if found is None or found.isEmpty() else found.get().cachedRepresentation().cacheBuilder()
    return builder if builder is not None and builder.isCachedColumnBuffersLoaded() else None


def _storage(java: Any, frame: Any) -> tuple[int | None, int | None]:
    """What Spark's cache knows of ``frame``: it counts rows as it stores them."""
    builder = _builder(java, frame)
    if builder is None:
        return None, None
    rdd = builder.cachedColumnBuffers().id()
    infos = java.sparkContext._jsc.sc().getRDDStorageInfo()
    size = sum(info.memSize() + info.diskSize() for info in infos if info.id() == rdd)
    return facts(str(java.version)).kept_rows(builder), int(size)


def _is_loaded(frame: Any) -> bool:
    """Whether Spark's statistics of the cached plan have a row count, which they have once all of it is stored."""
    text: str = frame._explain_string(mode="cost")
    return any("InMemoryRelation" in line and "rowCount=" in line for line in text.splitlines()[:4])


def _storage_level(name: str) -> StorageLevel:
    """Spark's level of that name as the JVM has it: in memory, rows are kept as objects unless it says ``SER``."""
    base, _, replicas = name.rpartition("_") if name[-1].isdigit() else (name, "", "1")
    memory, disk, off_heap = "MEMORY" in base, "DISK" in base, base == "OFF_HEAP"
    return StorageLevel(
        disk or off_heap, memory or off_heap, off_heap, memory and not base.endswith("_SER"), int(replicas)
    )
