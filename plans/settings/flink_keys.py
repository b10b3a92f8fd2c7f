"""Configuration keys of Flink that scripts carry and that mean nothing here, with the reason to tell.

Only what cannot change results is in this list: where and how Flink runs, and how it gets to the same rows. A key that
says what rows there are, or with which state a job begins, is either known (:mod:`plans.model.config`) or refused.

>>> why_idle("execution.checkpointing.interval")
'every micro-batch is a checkpoint, and --trigger says how often there is one'
>>> why_idle("execution.savepoint.path") is None
True
"""

from __future__ import annotations

from collections.abc import Mapping

_PLACE = "it is about where Flink runs; a run here is told by --master, --remote and --conf"
_ENGINE = "it is about how Flink's own engine gets to the same result"
_STATE = "state is in the directory that --checkpoint names"
_CHECKPOINTS = "every micro-batch is a checkpoint, and --trigger says how often there is one"
_EVENT_TIME = "rows are not held back for event time"

_REASONS: Mapping[str, str] = {
    "akka.": _PLACE,
    "blob.": _PLACE,
    "classloader.": _PLACE,
    "cluster.": _PLACE,
    "env.": _PLACE,
    "execution.attached": _PLACE,
    "execution.batch-shuffle-mode": _ENGINE,
    "execution.batch.": _ENGINE,
    "execution.buffer-timeout": _ENGINE,
    "execution.checkpointing.": _CHECKPOINTS,
    "execution.shutdown-on-attached-exit": _PLACE,
    "execution.target": _PLACE,
    "heartbeat.": _PLACE,
    "high-availability": _PLACE,
    "historyserver.": _PLACE,
    "io.tmp.dirs": _PLACE,
    "jobmanager.": _PLACE,
    "kubernetes.": _PLACE,
    "metrics.": _PLACE,
    "pekko.": _PLACE,
    "pipeline.auto-generate-uids": _ENGINE,
    "pipeline.auto-watermark-interval": _EVENT_TIME,
    "pipeline.max-parallelism": _ENGINE,
    "pipeline.object-reuse": _ENGINE,
    "pipeline.operator-chaining": _ENGINE,
    "pipeline.watermark-alignment.": _EVENT_TIME,
    "queryable-state.": _PLACE,
    "rest.": _PLACE,
    "restart-strategy": "whoever starts a run starts it again, and it goes on from its checkpoint",
    "slot.": _PLACE,
    "slotmanager.": _PLACE,
    "sql-client.": "it is about Flink's own client",
    "state.backend": _STATE,
    "state.checkpoint-storage": _STATE,
    "state.checkpoints.": _STATE,
    "state.savepoints.": _STATE,
    "table.display.": "it is about Flink's own client",
    "table.exec.async-state.": _ENGINE,
    "table.exec.disabled-operators": _ENGINE,
    "table.exec.mini-batch.": "every stream runs in micro-batches, and --trigger says how often there is one",
    "table.exec.operator-fusion-codegen.": _ENGINE,
    "table.exec.resource.": _ENGINE,
    "table.exec.shuffle-mode": _ENGINE,
    "table.exec.simplify-operator-name-enabled": _ENGINE,
    "table.exec.sort.": _ENGINE,
    "table.exec.source.idle-timeout": _EVENT_TIME,
    "table.exec.spill-compression.": _ENGINE,
    "table.exec.uid.": _ENGINE,
    "table.generated-code.": _ENGINE,
    "table.optimizer.adaptive-": _ENGINE,
    "table.optimizer.bushy-join-reorder-threshold": _ENGINE,
    "table.optimizer.distinct-agg.split.": _ENGINE,
    "table.optimizer.dynamic-filtering.": _ENGINE,
    "table.optimizer.incremental-agg-enabled": _ENGINE,
    "table.optimizer.join-reorder-enabled": _ENGINE,
    "table.optimizer.join.broadcast-threshold": _ENGINE,
    "table.optimizer.multiple-input-enabled": _ENGINE,
    "table.optimizer.reuse-": _ENGINE,
    "table.optimizer.runtime-filter.": _ENGINE,
    "table.optimizer.source.": _ENGINE,
    "table.optimizer.union-all-as-breakpoint-enabled": _ENGINE,
    "taskmanager.": _PLACE,
    "web.": _PLACE,
    "yarn.": _PLACE,
}
"""By the key, or by what it begins with if that ends in a dot or a dash, or has settings below it."""


def why_idle(key: str) -> str | None:
    """Why ``key`` means nothing here; None if it may mean something."""
    for start, reason in _REASONS.items():
        if key == start or key.startswith(start if start[-1] in ".-" else f"{start}."):
            return reason
    return None
