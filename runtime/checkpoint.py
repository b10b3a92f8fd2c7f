"""What a checkpoint belongs to: facts of the plan that wrote it, kept beside Spark's own files.

    <checkpoint>/hintplan/         one line of JSON: layout version, plan, partitions, digests of operators and tables
    <checkpoint>/<query id>/       Spark's checkpoint of a query: named after its sink, or the operator above its sinks

State is addressed by operator id and Spark trusts that operators keep their places, so a plan with other operators must
not continue it. Settings may change freely. The file is read and written through Spark, hence on any file system that
Spark knows and on Spark Connect.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from plans.digest import plan_digests
from plans.errors import RunError
from plans.model import LookupJoin, Plan
from plans.queries import Query

__all__ = ["LAYOUT", "CheckpointFacts", "compare", "facts_of", "read_facts", "write_facts"]

DEFERRED = "deferred"
LAYOUT = 2
"""Version of everything below a checkpoint that hintplan decides on: this file, and the state the shell keeps."""
QUERY_PER_SINK = 1
"""The layout before queries had several sinks, and still that of a checkpoint in which none has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointFacts:
    """What must hold of a plan for it to continue; ``operators`` and ``tables`` map names to digests."""

    plan: str
    partitions: int
    operators: Mapping[str, str] = field(default_factory=dict)
    tables: Mapping[str, str] = field(default_factory=dict)
    queries: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The sinks of each query that has several, by the id of the query."""
    layout: int = QUERY_PER_SINK


def facts_of(plan: Plan, partitions: int, queries: Sequence[Query] = ()) -> CheckpointFacts:
    """The facts that a new checkpoint of ``plan``, run as ``queries``, records.

    How a lookup retries is a setting, but a deferred one keeps state and an inline one has none, which Spark refuses to
    change under a checkpoint.
    """
    digests = plan_digests(plan)
    parking = {op.id for op in plan.operators if isinstance(op, LookupJoin) and op.retry and op.retry.mode == DEFERRED}
    operators = {
        name: f"{digest}-{DEFERRED}" if name in parking else digest for name, digest in digests["operators"].items()
    }
    shared = {query.id: query.sinks for query in queries if query.is_shared}
    return CheckpointFacts(
        plan=plan.name,
        partitions=partitions,
        operators=operators,
        tables=digests["tables"],
        queries=shared,
        layout=LAYOUT if shared else QUERY_PER_SINK,
    )


def read_facts(spark: SparkSession, checkpoint: str) -> CheckpointFacts | None:
    """What ``checkpoint`` belongs to, None if it is new; RunError if this version of hintplan cannot read it."""
    path = _path(checkpoint)
    try:
        lines = [row.value for row in spark.read.text(path).collect()]
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        return None
    if not lines:
        # The directory is made before its file: the run that made it ended in between, before any query started.
        return None
    try:
        found = json.loads("\n".join(lines))
        layout = found["layout"]
        if layout not in (QUERY_PER_SINK, LAYOUT):
            raise RunError(
                f"checkpoint {checkpoint} has layout {layout}, this version of hintplan reads layouts up to {LAYOUT}",
                hint="run the plan with the version of hintplan that wrote it, or use a new checkpoint directory",
            )
        return CheckpointFacts(**found)
    except (ValueError, KeyError, TypeError) as error:
        raise RunError(
            f"{path} is not what hintplan writes there: {error}",
            hint="use a new checkpoint directory, or restore this file from a backup",
        ) from error


def write_facts(spark: SparkSession, checkpoint: str, facts: CheckpointFacts) -> None:
    """Record ``facts`` in a new checkpoint."""
    found = {**asdict(facts), "operators": dict(facts.operators), "tables": dict(facts.tables)}
    if facts.layout == QUERY_PER_SINK:
        del found["queries"]  # so that a version that knows no other layout can continue it
    line = json.dumps(found)
    spark.createDataFrame([(line,)], "value string").coalesce(1).write.mode("overwrite").text(_path(checkpoint))


def compare(checkpoint: str, recorded: CheckpointFacts, plan: Plan) -> None:
    """RunError naming every operator and table in which ``plan`` differs from what ``checkpoint`` was written by."""
    wanted = facts_of(plan, recorded.partitions)
    changes = [
        *_retry_modes(recorded.operators, wanted.operators),
        *_changes("operator", _digests(recorded), _digests(wanted)),
        *_changes("table", recorded.tables, wanted.tables),
    ]
    if changes:
        raise RunError(
            f"checkpoint {checkpoint} was written by a plan with other facts: {'; '.join(changes)}",
            hint="run the plan it was written by, or give the changed plan a new checkpoint directory; "
            "settings, such as a TTL, may change on a running checkpoint",
        )


def _digests(facts: CheckpointFacts) -> dict[str, str]:
    return {name: digest.removesuffix(f"-{DEFERRED}") for name, digest in facts.operators.items()}


def _retry_modes(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Lookups that were or are deferred, and differ in nothing else."""
    found = []
    for name in sorted(before.keys() & after.keys()):
        old, new = before[name], after[name]
        if old != new and old.removesuffix(f"-{DEFERRED}") == new.removesuffix(f"-{DEFERRED}"):
            now = "deferred" if new.endswith(DEFERRED) else "no longer deferred"
            found.append(f"retries of {name} are {now} (its retry mode says whether it keeps state)")
    return found


def _changes(what: str, before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    found = {
        "added": sorted(after.keys() - before.keys()),
        "removed": sorted(before.keys() - after.keys()),
        "changed": sorted(name for name in before.keys() & after.keys() if before[name] != after[name]),
    }
    return [f"{what} {', '.join(names)} {verb}" for verb, names in found.items() if names]


def _path(checkpoint: str) -> str:
    return f"{checkpoint.rstrip('/')}/hintplan"
