"""Decides what a run of a plan on a checkpoint would do with each state, without starting the run.

The record of a local checkpoint is a small text file, which is read here without PySpark. Spark reads the record of a
checkpoint behind a URL.
"""

from __future__ import annotations

import glob
import os
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from hintplan.plans.api.plans import PlanLike, plan_of
from hintplan.plans.checkpoint.continuation import Continuation, continuation
from hintplan.plans.checkpoint.record import CheckpointRecord, absolute, is_local_path
from hintplan.plans.checkpoint.report import Expiring, Paint, Start, Verdict, check_json, check_text, verdict_of
from hintplan.plans.compare.costs import with_costs
from hintplan.plans.errors import NotInstalled, RunError
from hintplan.plans.evidence.document import Evidence
from hintplan.plans.extras import require
from hintplan.plans.model.plan import Plan
from hintplan.plans.text.aligned import unpainted
from hintplan.plans.text.names import nearest
from hintplan.plans.text.printed import Printed
from hintplan.runtime.checkpoint.parts import undamaged_record

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CheckResult(Printed):
    """The effect of ``plan`` on the states of ``checkpoint``. ``record`` is its record, or None if it is new.

    ``spark`` is the Spark version that would continue it. ``missing`` is a note if the directory does not exist.
    ``start`` has the rows that shorter TTLs hide, and the rows of kept states; only for a checkpoint on this machine.
    """

    plan: Plan
    checkpoint: str
    continuation: Continuation
    record: CheckpointRecord | None
    spark: str | None
    missing: str
    start: Start

    @property
    def expiring(self) -> Mapping[str, Expiring]:
        """The rows that shorter TTLs hide, by the path of each TTL."""
        return self.start.expiring

    @property
    def verdict(self) -> Verdict:
        """``new``, ``continues``, ``drops`` (only if state may be dropped) or ``refused``."""
        return verdict_of(self.continuation, self.record)

    def text(self, *, paint: Paint = unpainted) -> str:
        """Return the output of ``hintplan check``; ``paint`` may colour a text and must not change its width."""
        return check_text(
            self.continuation,
            self.record,
            self.plan,
            spark=self.spark,
            missing=self.missing,
            start=self.start,
            paint=paint,
        )

    def json(self) -> dict[str, Any]:
        """Return the output of ``hintplan check --json`` as JSON values."""
        return check_json(
            self.continuation,
            self.record,
            self.plan,
            self.checkpoint,
            spark=self.spark,
            missing=self.missing,
            start=self.start,
        )


def check(
    plan: PlanLike,
    checkpoint: str | os.PathLike[str],
    spark: SparkSession | None = None,
    *,
    keep_state: Collection[str] = (),
    at: int | None = None,
) -> CheckResult:
    """Return what a run of ``plan`` on ``checkpoint`` would do with each state: carry it over, start empty, be refused.

    ``keep_state`` names operators that keep their stored rows, although another query has produced them. A directory of
    this machine is read without Spark, unless ``spark`` is given. A checkpoint behind a URL is read by ``spark``, the
    active session, or a new local session. ``at`` is the time of the run's start in ms since 1970, for which rows are
    counted; the default is now. RunError if the plan keeps no state, the checkpoint is damaged, or an
    operator cannot keep its state.
    """
    plan, checkpoint = plan_of(plan), os.fspath(checkpoint)
    if plan.mode == "batch":
        raise RunError(f"{plan.name} is a batch plan: it keeps no state, so it has no checkpoint")
    if spark is None and is_local_path(checkpoint):
        return checked_here(plan, checkpoint, keep=keep_state, at=at)
    require("spark")
    from pyspark.sql import SparkSession

    from hintplan.runtime.run.needs import started_for

    spark = spark or SparkSession.getActiveSession() or started_for(plan, checkpoint)
    return checked_by_spark(plan, checkpoint, spark, keep=keep_state)


def checked_here(
    plan: Plan,
    checkpoint: str,
    conf: Mapping[str, str] | None = None,
    *,
    at: int | None = None,
    keep: Collection[str] = (),
) -> CheckResult:
    """Check a checkpoint on this machine, which Spark with ``conf`` would continue at the time ``at`` (ms)."""
    record = undamaged_record(absolute(checkpoint), conf or {})
    result = _result(plan, checkpoint, record, spark=_installed_spark(), share=True, keep=keep)
    start = _start(at)
    result = replace(result, start=start)
    continued = result.continuation
    outcomes = {state.operator: state.outcome for verdict in continued.verdicts for state in verdict.states}
    kept = {name for name, outcome in outcomes.items() if outcome in _KEPT}
    changes = [change for change in continued.changes if change.operator in kept and change.effect.level in _OF_TTL]
    by_consent = (*continued.keepable, *(name for name, outcome in outcomes.items() if outcome == "is kept"))
    if result.verdict == "refused" or not (changes or by_consent):
        return result
    try:
        require("state")
    except NotInstalled:  # the report explains how to count them
        return result
    from hintplan.runtime.inspect.expiring import changed_states, count_expiring, count_kept

    path = absolute(checkpoint)
    rows = count_kept(plan, path, by_consent, at=start.at) if by_consent else None
    counted = replace(start, expiring=count_expiring(plan, path, changes, at=start.at), kept=rows)
    evidence = changed_states(plan, path, changes, at=start.at)
    result = replace(result, start=counted)
    return result if evidence is None else with_evidence(result, evidence)


def with_evidence(result: CheckResult, evidence: Evidence) -> CheckResult:
    """Return the result with the cost of each changed TTL, according to the observations of a run."""
    found = result.continuation
    return replace(result, continuation=replace(found, changes=with_costs(found.changes, evidence)))


def _start(at: int | None) -> Start:
    return Start(at=int(time.time() * 1000) if at is None else at, given=at is not None)


_KEPT = ("carries over", "is kept")
_OF_TTL = ("ttl", "expire")
"""The effects of a changed TTL."""


def checked_by_spark(plan: Plan, checkpoint: str, spark: SparkSession, *, keep: Collection[str] = ()) -> CheckResult:
    """Check a checkpoint that ``spark`` reads."""
    from hintplan.runtime.checkpoint.record import read_undamaged
    from hintplan.runtime.spark.session import is_remote

    record = read_undamaged(spark, absolute(checkpoint))
    return _result(plan, checkpoint, record, spark=str(spark.version), share=not is_remote(spark), keep=keep)


def _result(
    plan: Plan,
    checkpoint: str,
    record: CheckpointRecord | None,
    *,
    spark: str | None,
    share: bool,
    keep: Collection[str],
) -> CheckResult:
    continued = continuation(record, plan, share=share, keep=keep)
    missing = _missing(checkpoint)
    return CheckResult(
        plan=plan,
        checkpoint=checkpoint,
        continuation=continued,
        record=record,
        spark=spark,
        missing=missing,
        start=_start(None),
    )


def _missing(checkpoint: str) -> str:
    """Return a note if the directory ``checkpoint`` does not exist, with the most similar checkpoint near it."""
    if "://" in checkpoint or os.path.isdir(path := absolute(checkpoint)):
        return ""
    above, name = os.path.split(path.rstrip("/"))
    records = glob.glob(os.path.join(glob.escape(above), "*", "hintplan"))
    close = nearest(name, [os.path.basename(os.path.dirname(record)) for record in records])
    meant = f"; did you mean {os.path.join(os.path.dirname(checkpoint.rstrip('/')), close)}?" if close else ""
    return f"there is no directory {checkpoint} yet: a run would make it{meant}"


def _installed_spark() -> str | None:
    try:
        return version("pyspark")
    except PackageNotFoundError:
        return None
