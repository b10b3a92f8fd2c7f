"""Configuration keys of Flink that scripts contain and that mean nothing here, with the reason to report.

A key without effect cannot change results: it controls where and how Flink runs, or how Flink computes the same rows. A
key that affects the result or the initial state of a job is either known (:mod:`hintplan.plans.model.config`) or
refused. Together, these are all keys of Flink 2.3 (tests/flink/keys.json).

>>> why_idle("web.port") == why_idle("rest.port"), why_idle("execution.savepoint.path")
(True, None)
>>> refused_key("execution.savepoint-restore-mode").instead
'remove it, and name the directory: hintplan run --checkpoint DIR'
"""

from __future__ import annotations

from collections.abc import Mapping

from hintplan.plans.frozen import frozen
from hintplan.plans.settings.watermark import ONE_WATERMARK

_PLACE = "it concerns where Flink runs; here, --master, --remote and --conf determine this"
_ENGINE = "it is about how Flink's own engine gets to the same result"
_STATE = "state is in the directory that --checkpoint names"
_SAVEPOINTS = "there are no savepoints; hintplan state CHECKPOINT --snapshot DIR copies a checkpoint to DIR"
_CHECKPOINTS = "every micro-batch is a checkpoint, and --trigger sets their interval"
_TIME_OF_SINKS = "sinks write the rowtime as it is in the query"
_JARS = "connectors are built in, and functions are Python classes"
_NO_SUCH_FUNCTION = "no such function exists"

_REASONS: Mapping[str, str] = {
    "akka.": _PLACE,
    "blob.": _PLACE,
    "classloader.": _PLACE,
    "cluster.": _PLACE,
    "dstl.": _STATE,
    "env.": _PLACE,
    "execution.allow-client-job-configurations": _PLACE,
    "execution.async-state.": _ENGINE,
    "execution.attached": _PLACE,
    "execution.batch-shuffle-mode": _ENGINE,
    "execution.batch-state-backend.": _ENGINE,
    "execution.batch.": _ENGINE,
    "execution.buffer-timeout": _ENGINE,
    "execution.checkpointing.dir": _STATE,
    "execution.checkpointing.savepoint-dir": _SAVEPOINTS,
    "execution.checkpointing.": _CHECKPOINTS,
    "execution.job-listeners": _PLACE,
    "execution.job-status-changed-listeners": _PLACE,
    "execution.program-config.": _PLACE,
    "execution.shutdown-on-application-finish": _PLACE,
    "execution.shutdown-on-attached-exit": _PLACE,
    "execution.sort-keyed-partition.": _ENGINE,
    "execution.sort-partition.": _ENGINE,
    "execution.sorted-inputs.": _ENGINE,
    "execution.submit-failed-job-on-application-error": _PLACE,
    "execution.target": _PLACE,
    "execution.terminate-application-on-any-job-terminated-exceptionally": _PLACE,
    "heartbeat.": _PLACE,
    "high-availability": _PLACE,
    "historyserver.": _PLACE,
    "io.tmp.dirs": _PLACE,
    "jobmanager.": _PLACE,
    "kubernetes.": _PLACE,
    "metrics.": _PLACE,
    "pekko.": _PLACE,
    "pipeline.auto-generate-uids": _ENGINE,
    "pipeline.auto-watermark-interval": ONE_WATERMARK,
    "pipeline.cep.": _ENGINE,
    "pipeline.classpaths": _JARS,
    "pipeline.closure-cleaner-level": _ENGINE,
    "pipeline.force-avro": _ENGINE,
    "pipeline.force-kryo": _ENGINE,
    "pipeline.force-kryo-avro": _ENGINE,
    "pipeline.generic-types": _ENGINE,
    "pipeline.jars": _JARS,
    "pipeline.max-parallelism": _ENGINE,
    "pipeline.object-reuse": _ENGINE,
    "pipeline.operator-chaining": _ENGINE,
    "pipeline.serialization-config": _ENGINE,
    "pipeline.sources.pause-until-first-checkpoint": _CHECKPOINTS,
    "pipeline.vertex-description-mode": _ENGINE,
    "pipeline.vertex-name-include-index-prefix": _ENGINE,
    "pipeline.watermark-alignment.": ONE_WATERMARK,
    "queryable-state.": _PLACE,
    "rest.": _PLACE,
    "savepoints.state.backend.fs.dir": _SAVEPOINTS,
    "slot.": _PLACE,
    "slotmanager.": _PLACE,
    "sql-client.": "it is about Flink's own client",
    "state.backend": _STATE,
    "state.changelog.": _STATE,
    "state.checkpoint-storage": _STATE,
    "state.checkpoint.": _STATE,
    "state.checkpoints.": _STATE,
    "state.latency-track.": _STATE,
    "state.savepoints.": _SAVEPOINTS,
    "state.size-track.": _STATE,
    "state.storage.": _STATE,
    "table.catalog-modification.listeners": _PLACE,
    "table.display.": "it is about Flink's own client",
    "table.exec.async-ml-predict.": _NO_SUCH_FUNCTION,
    "table.exec.async-state.": _ENGINE,
    "table.exec.async-vector-search.": _NO_SUCH_FUNCTION,
    "table.exec.deduplicate.": _ENGINE,
    "table.exec.delta-join.": _ENGINE,
    "table.exec.disabled-operators": _ENGINE,
    "table.exec.interval-join.": _ENGINE,
    "table.exec.local-hash-agg.": _ENGINE,
    "table.exec.mini-batch.": "every stream runs in micro-batches, and --trigger sets their interval",
    "table.exec.operator-fusion-codegen.": _ENGINE,
    "table.exec.rank.": _ENGINE,
    "table.exec.resource.": _ENGINE,
    "table.exec.shuffle-mode": _ENGINE,
    "table.exec.simplify-operator-name-enabled": _ENGINE,
    "table.exec.sink.keyed-shuffle": _ENGINE,
    "table.exec.sink.require-on-conflict": "a sink with another key keeps all rows, with and without ON CONFLICT",
    "table.exec.sink.rowtime-inserter": _TIME_OF_SINKS,
    "table.exec.sink.upsert-materialize-strategy.": _ENGINE,
    "table.exec.sort.": _ENGINE,
    "table.exec.spill-compression.": _ENGINE,
    "table.exec.uid.": _ENGINE,
    "table.exec.unbounded-over.": _ENGINE,
    "table.exec.window-agg.": _ENGINE,
    "table.generated-code.": _ENGINE,
    "table.optimizer.adaptive-": _ENGINE,
    "table.optimizer.bushy-join-reorder-threshold": _ENGINE,
    "table.optimizer.delta-join.": _ENGINE,
    "table.optimizer.distinct-agg.split.": _ENGINE,
    "table.optimizer.dynamic-filtering.": _ENGINE,
    "table.optimizer.incremental-agg-enabled": _ENGINE,
    "table.optimizer.join-reorder-enabled": _ENGINE,
    "table.optimizer.join.broadcast-threshold": _ENGINE,
    "table.optimizer.multi-join.": _ENGINE,
    "table.optimizer.multiple-input-enabled": _ENGINE,
    "table.optimizer.ptf.": _ENGINE,
    "table.optimizer.reuse-": _ENGINE,
    "table.optimizer.runtime-filter.": _ENGINE,
    "table.optimizer.skewed-join-optimization.": _ENGINE,
    "table.optimizer.source.": _ENGINE,
    "table.optimizer.sql2rel.": _ENGINE,
    "table.optimizer.union-all-as-breakpoint-enabled": _ENGINE,
    "table.resources.": _PLACE,
    "table.secret-store.": _PLACE,
    "taskmanager.": _PLACE,
    "web.": _PLACE,
    "yarn.": _PLACE,
}
"""Reasons by key; an entry that ends in a dot or a dash is a prefix, and other entries also cover keys below them."""


_RECOVERY = (
    "a run continues from its own checkpoint",
    "remove it, and name the directory: hintplan run --checkpoint DIR",
)
_NAMES = ("tables live in default_catalog.default_database", "remove it")


@frozen
class RefusedKey:
    """A key of Flink that would change a job in a way that is not supported: the reason, and an alternative.

    ``default`` is Flink's default, which a job follows anyway; None if there is none.
    """

    default: str | None
    reason: str
    instead: str


def _refused(default: str | None, reason: str, instead: str) -> RefusedKey:
    return RefusedKey(default=default, reason=reason, instead=instead)


_REFUSED: Mapping[str, RefusedKey] = {
    "execution.savepoint-restore-mode": _refused(None, *_RECOVERY),
    "execution.savepoint.ignore-unclaimed-state": _refused("false", *_RECOVERY),
    "execution.savepoint.path": _refused(None, *_RECOVERY),
    "execution.state-recovery.approximate-local-recovery": _refused("false", *_RECOVERY),
    "execution.state-recovery.claim-mode": _refused("NO_CLAIM", *_RECOVERY),
    "execution.state-recovery.from-local": _refused("false", *_RECOVERY),
    "execution.state-recovery.ignore-unclaimed-state": _refused("false", *_RECOVERY),
    "execution.state-recovery.path": _refused(None, *_RECOVERY),
    "execution.state-recovery.without-channel-state.checkpoint-id": _refused("-1", *_RECOVERY),
    "pipeline.cached-files": _refused(
        None, "files are not handed to functions", "put the file where the workers are, and open it in the function"
    ),
    "pipeline.global-job-parameters": _refused(
        None, "functions do not receive parameters", "write them as arguments of the function"
    ),
    "pipeline.jobvertex-parallelism-overrides": _refused(
        "{}",
        "operators have names of their own here",
        "compile, then run hintplan set plan.json <operator>.partitions=N",
    ),
    "table.builtin-catalog-name": _refused("default_catalog", *_NAMES),
    "table.builtin-database-name": _refused("default_database", *_NAMES),
    "table.catalog-store.kind": _refused(
        "generic_in_memory", "there is no catalog besides the script", "declare the tables in the script"
    ),
    "table.column-expansion-strategy": _refused("[]", "'*' means all columns", "list the columns that are meant"),
    "table.exec.async-lookup.key-ordered-enabled": _refused(
        "false", "answers come in the order of all rows, or in none", "use 'output-mode'='ordered' in the LOOKUP hint"
    ),
    "table.exec.legacy-cast-behaviour": _refused(
        "DISABLED", "casts follow Flink 2.3", "use TRY_CAST where a cast that fails is to be NULL"
    ),
    "table.exec.sink.nested-constraint-enforcer": _refused(
        "IGNORE", "constraints inside of nested types are not checked", "check the values in the query"
    ),
    "table.legacy-nested-row-nullability": _refused("false", "rows follow Flink 2.3", "remove it"),
    "table.optimizer.non-deterministic-update.strategy": _refused(
        "IGNORE", "nondeterministic calls are refused where rows can change, or pinned", "remove it"
    ),
    "table.plan.compile.catalog-objects": _refused("ALL", "a plan holds all of its tables", "remove it"),
    "table.plan.restore.catalog-objects": _refused("ALL", "a plan holds all of its tables", "remove it"),
    "table.rtas-ctas.atomicity-enabled": _refused(
        "false", "a table of CREATE TABLE ... AS is filled batch by batch", "remove it"
    ),
    "table.sql-dialect": _refused("default", "the language is Flink SQL", "write the script in Flink SQL"),
}


_ELSEWHERE: Mapping[str, str] = {
    "table.exec.hive.": "remove it, and read the files of the table",
    "table.planner": "remove it: there is one planner",
    "execution.planner": "remove it: there is one planner",
    "execution.type": "write 'execution.runtime-mode'",
    "execution.parallelism": "write 'parallelism.default'",
    "execution.max-parallelism": "remove it: state has no key groups",
    "execution.restart-strategy.": "write 'restart-strategy.type'",
    "execution.time-characteristic": "remove it: the WATERMARK of a table names the column of its time",
    "execution.min-idle-state-retention": "write 'table.exec.state.ttl'",
    "execution.max-idle-state-retention": "write 'table.exec.state.ttl'",
    "table.exec.state.retention": "write 'table.exec.state.ttl'",
    "spark.": "remove it, and pass it to the run: hintplan run --conf KEY=VALUE",
    "fs.": "remove it, and pass it to the run: hintplan run --conf spark.hadoop.KEY=VALUE",
    "s3.": "remove it, and pass it to the run: hintplan run --conf spark.hadoop.fs.s3a.KEY=VALUE",
    "security.": "remove it: the user who starts Spark logs in, and tables have the credentials of their connectors",
}
"""Alternatives to keys in scripts that Flink 2.3 does not have; each entry also covers all keys below it."""


def replacement_hint(key: str) -> str | None:
    """Return the alternative to setting ``key``, which Flink 2.3 does not have, or None if none is known."""
    return next((text for start, text in _ELSEWHERE.items() if key == start or key.startswith(_below(start))), None)


def _below(start: str) -> str:
    return start if start.endswith(".") else f"{start}."


def refused_key(key: str) -> RefusedKey | None:
    """Return the reason why Flink's ``key`` must keep its default; None if it can be set, or is not a key."""
    return _REFUSED.get(key)


def why_idle(key: str) -> str | None:
    """Return the reason why ``key`` means nothing here, or None if it may mean something."""
    for start, reason in _REASONS.items():
        if key == start or key.startswith(start if start[-1] in ".-" else f"{start}."):
            return reason
    return None
