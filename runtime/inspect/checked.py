"""What a run of a plan on a checkpoint would do with each state, decided without starting one.

The record of a local checkpoint is a small text file, read here, and PySpark is not loaded for it. Of a checkpoint
behind a URL Spark reads it.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from hintplan.plans.api.plans import PlanLike, plan_of
from hintplan.plans.checkpoint.continuation import Continuation, continuation
from hintplan.plans.checkpoint.record import CheckpointRecord, absolute, is_local_path
from hintplan.plans.checkpoint.report import Expiring, Paint, Verdict, check_json, check_text, verdict_of
from hintplan.plans.errors import NotInstalled, RunError
from hintplan.plans.extras import require
from hintplan.plans.model.plan import Plan
from hintplan.plans.settings.effects import SHORTER_TTL
from hintplan.plans.text.names import nearest
from hintplan.plans.text.printed import Printed
from hintplan.runtime.checkpoint.parts import undamaged_record

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CheckResult(Printed):
    """What would become of ``checkpoint`` under ``plan``. ``record`` says what ran on it, None if it is new.

    ``spark`` is the version that would continue it; ``missing`` says that there is no such directory. ``expiring`` has
    the rows that shorter TTLs hide, by the path of each; of a checkpoint on this machine only.
    """

    plan: Plan
    checkpoint: str
    continuation: Continuation
    record: CheckpointRecord | None
    spark: str | None
    missing: str
    expiring: Mapping[str, Expiring] = field(default_factory=dict)

    @property
    def verdict(self) -> Verdict:
        """``new``, ``goes on``, ``drops`` (only if state may be dropped) or ``refused``."""
        return verdict_of(self.continuation, self.record)

    def text(self, *, paint: Paint = lambda text, part: text) -> str:
        """What ``hintplan check`` prints; ``paint`` may colour a text and must not change its width."""
        return check_text(
            self.continuation,
            self.record,
            self.plan,
            spark=self.spark,
            missing=self.missing,
            expiring=self.expiring,
            paint=paint,
        )

    def json(self) -> dict[str, Any]:
        """What ``hintplan check --json`` prints, as JSON values."""
        return check_json(
            self.continuation,
            self.record,
            self.plan,
            self.checkpoint,
            spark=self.spark,
            missing=self.missing,
            expiring=self.expiring,
        )


def check(
    plan: PlanLike,
    checkpoint: str | os.PathLike[str],
    spark: SparkSession | None = None,
    *,
    keep_state: Collection[str] = (),
) -> CheckResult:
    """Tell what a run of ``plan`` on ``checkpoint`` would do with each state: carry it over, start empty, be refused.

    ``keep_state`` are the operators that go on, by consent, with state whose rows another query made.
    A directory of this machine is read without Spark, unless ``spark`` is given; behind a URL it is read by ``spark``,
    or the active session, or a new local one. RunError if the plan keeps no state, the checkpoint is damaged, or an
    operator cannot keep its state.
    """
    plan, checkpoint = plan_of(plan), os.fspath(checkpoint)
    if plan.mode == "batch":
        raise RunError(f"{plan.name} is a batch plan: it keeps no state, so it has no checkpoint")
    if spark is None and is_local_path(checkpoint):
        return checked_here(plan, checkpoint, keep=keep_state)
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
    """Of a checkpoint on this machine, which Spark, configured by ``conf``, would continue at the time ``at`` (ms)."""
    record = undamaged_record(absolute(checkpoint), conf or {})
    found = _result(plan, checkpoint, record, spark=_installed_spark(), share=True, keep=keep)
    kept = {state.operator for one in found.continuation.verdicts for state in one.states if state.outcome == _KEPT}
    changes = [change for change in found.continuation.changes if change.operator in kept]
    if found.verdict == "refused" or not any(change.effect is SHORTER_TTL for change in changes):
        return found
    try:
        require("state")
    except NotInstalled:  # the report says how to count them
        return found
    from hintplan.runtime.inspect.expiring import count_expiring

    return replace(found, expiring=count_expiring(plan, absolute(checkpoint), changes, at=at))


_KEPT = "carries over"


def checked_by_spark(plan: Plan, checkpoint: str, spark: SparkSession, *, keep: Collection[str] = ()) -> CheckResult:
    """Of a checkpoint that ``spark`` reads."""
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
    found = continuation(record, plan, share=share, keep=keep)
    missing = _missing(checkpoint)
    return CheckResult(
        plan=plan, checkpoint=checkpoint, continuation=found, record=record, spark=spark, missing=missing
    )


def _missing(checkpoint: str) -> str:
    """That there is no directory ``checkpoint``, and which checkpoint beside it may be meant."""
    if "://" in checkpoint or os.path.isdir(path := absolute(checkpoint)):
        return ""
    above, name = os.path.split(path.rstrip("/"))
    found = glob.glob(os.path.join(glob.escape(above), "*", "hintplan"))
    close = nearest(name, [os.path.basename(os.path.dirname(one)) for one in found])
    meant = f"; did you mean {os.path.join(os.path.dirname(checkpoint.rstrip('/')), close)}?" if close else ""
    return f"there is no directory {checkpoint} yet: a run would make it{meant}"


def _installed_spark() -> str | None:
    try:
        return version("pyspark")
    except PackageNotFoundError:
        return None
