"""Cached results of a session (FLIP-205): the results, their storage, and the number of times that jobs read them.

A result is found by the meaning of its operator (:mod:`hintplan.plans.analysis.fingerprints`), so another plan with an
equal operator reads it, too. The first job that computes a result creates it. It stays a snapshot of its inputs at that
time until it is dropped. If an executor is lost, Spark computes the lost blocks again, from the files of the snapshot
(:mod:`hintplan.runtime.batch.snapshot`).

The run of a plan holds the results that it uses from its build to its end. A result that is dropped meanwhile is
invisible to later runs, and is freed with its last user. If a run fails, its incomplete results are dropped.

    cache = ResultCache(spark)
    entry = cache.find(meaning, run) or cache.add("join_o_c", plan, meaning, settings, frame, reads=(), run=run)
    cache.end(run, well=True)

Threads may use the cache at the same time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hintplan.plans.model.plan import Plan
from hintplan.plans.settings.views import CachedSettings
from hintplan.runtime.spark.session import is_remote
from hintplan.runtime.spark.versions import facts

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedResult:
    """A cached result at the time of the request.

    ``rows`` and ``bytes`` (as stored, on all executors) are None until the whole result has been computed; on Spark
    Connect ``bytes`` is None. ``hits`` counts the jobs that read it without computing it.
    """

    operator: str
    plan: str
    rows: int | None
    bytes: int | None
    storage_level: str
    hits: int
    drop: Callable[[], None] = field(repr=False, compare=False)

    def invalidate(self) -> None:
        """Drop the result, so that the next job that needs it recomputes it. A second call changes nothing."""
        self.drop()


@dataclass(slots=True, kw_only=True, eq=False)
class CacheEntry:
    """A result under ``meaning``, computed from the results that it ``reads``; ``users`` are the runs that use it."""

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
        """Record that a job which reads this result has succeeded; return True if the result was already there."""
        if self.computed:
            self.hits += 1
            return True
        self.computed = True
        for entry in self.reads:
            entry.served()
        return False


@dataclass(slots=True)
class ResultCache:
    """The results of one session: ``entries`` by meaning; ``kept`` also has dropped ones that may still be stored."""

    spark: SparkSession
    entries: dict[str, CacheEntry] = field(default_factory=dict)
    kept: list[CacheEntry] = field(default_factory=list)
    added: int = 0
    lock: threading.RLock = field(default_factory=threading.RLock)

    def find(self, meaning: str, run: Hashable = None) -> CacheEntry | None:
        """Return the result with this meaning, computed or not, or None; ``run``, if given, uses it from now on."""
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
        """Let Spark keep the rows of ``frame`` when they are first computed; ``run`` uses them."""
        with self.lock:
            self.added += 1
            # Spark's cache serves every equal plan, whatever its origin. A metric with a unique name makes this plan
            # differ from all others, so that only users of this entry read it.
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
        """Remove ``entry``, and free its blocks once no run uses them."""
        with self.lock:
            if self.entries.get(entry.meaning) is entry:
                del self.entries[entry.meaning]
            self._free()

    def end(self, run: Hashable, *, well: bool) -> None:
        """End the use of all results by ``run``; unless it ended ``well``, drop its incomplete results.

        Nothing may remain of a result that no job could compute: neither rows nor the list of files that it reads.
        """
        with self.lock:
            for entry in [result for result in self.kept if run in result.users]:
                entry.users.remove(run)
                if not well and self.entries.get(entry.meaning) is entry and not self.is_whole(entry):
                    del self.entries[entry.meaning]
            self._free()

    def close(self) -> None:
        """Drop all results, and free them even if runs use them."""
        with self.lock:
            self.entries.clear()
            for entry in self.kept:
                entry.users.clear()
            self._free()

    def _free(self) -> None:
        for entry in [
            result for result in self.kept if not result.users and self.entries.get(result.meaning) is not result
        ]:
            self.kept.remove(entry)
            entry.frame.unpersist(blocking=True)

    def results(self) -> tuple[CachedResult, ...]:
        """Return all results, in the order in which plans requested them."""
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
        """Return True if all rows of a result have been stored."""
        if is_remote(self.spark):
            return _is_loaded(entry.frame)
        return _builder(self.spark, entry.frame) is not None

    def measured(self, entry: CacheEntry) -> tuple[int | None, int | None]:
        """Return the number of rows and stored bytes of a result; None for numbers that are not known yet."""
        if is_remote(self.spark):
            # A Connect client sees no storage status. A count reads only the sizes of the stored batches.
            return (entry.frame.count(), None) if _is_loaded(entry.frame) else (None, None)
        return _storage(self.spark, entry.frame)


def _builder(spark: SparkSession, frame: DataFrame) -> JavaObject | None:
    """Return Spark's stored form of ``frame`` if it is complete, else None."""
    cached = spark._jsparkSession.sharedState().cacheManager().lookupCachedData(frame._jdf)
    # Py4J shows Scala's None as Python's.
    builder = None if cached is None or cached.isEmpty() else cached.get().cachedRepresentation().cacheBuilder()
    return builder if builder is not None and builder.isCachedColumnBuffersLoaded() else None


def _storage(spark: SparkSession, frame: DataFrame) -> tuple[int | None, int | None]:
    """Return the rows and bytes of ``frame`` in Spark's cache, which counts rows as it stores them."""
    builder = _builder(spark, frame)
    if builder is None:
        return None, None
    rdd = builder.cachedColumnBuffers().id()
    infos = spark.sparkContext._jsc.sc().getRDDStorageInfo()
    size = sum(info.memSize() + info.diskSize() for info in infos if info.id() == rdd)
    return facts(str(spark.version)).kept_rows(builder), int(size)


def _is_loaded(frame: DataFrame) -> bool:
    """Return True if Spark's statistics of the cached plan have a row count, which means that all of it is stored."""
    client: Any = frame
    text: str = client._explain_string(mode="cost")
    return any("InMemoryRelation" in line and "rowCount=" in line for line in text.splitlines()[:4])


def _storage_level(name: str) -> StorageLevel:
    """Return Spark's storage level ``name`` as the JVM has it: rows in memory are objects unless it has ``SER``."""
    base, _, replicas = name.rpartition("_") if name[-1].isdigit() else (name, "", "1")
    memory, disk, off_heap = "MEMORY" in base, "DISK" in base, base == "OFF_HEAP"
    return StorageLevel(
        disk or off_heap, memory or off_heap, off_heap, memory and not base.endswith("_SER"), int(replicas)
    )
