"""The end of event time: after all available input is read, a run may close all windows, and can then not continue.

Flink does so at the end of a bounded source. Here a checkpoint may get more input later, so its windows stay open, and
``--drain`` closes them with one more batch (:mod:`hintplan.runtime.spark.ending`). A run without a checkpoint always
closes them. Spark's log records that batch, so a checkpoint shows that it was drained, and further runs refuse it,
because all rows that they would read would come too late.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from hintplan.plans.analysis.streaming_queries import Query
from hintplan.plans.analysis.watermarks import reading_tables
from hintplan.plans.checkpoint.record import CheckpointRecord
from hintplan.plans.errors import RunError
from hintplan.plans.model.plan import Plan
from hintplan.runtime.checkpoint.files import CheckpointFiles
from hintplan.runtime.checkpoint.parts import last_batches
from hintplan.runtime.spark.ending import has_ended


@dataclass(frozen=True, slots=True, kw_only=True)
class Drained:
    """The queries of a checkpoint that are ``drained``, and those whose last batch drains them and was ``begun``."""

    drained: frozenset[str] = frozenset()
    begun: frozenset[str] = frozenset()


def queries_by_time(plan: Plan, queries: Collection[Query]) -> tuple[str, ...]:
    """Return the ids of the queries with an operator that goes by the watermark of a table."""
    timed = reading_tables(plan)
    return tuple(query.id for query in queries if not set(plan.upstream(*query.sinks)).isdisjoint(timed))


def drained_queries(files: CheckpointFiles, recorded: CheckpointRecord | None, running: Collection[Query]) -> Drained:
    """Return the queries among ``running`` that have closed all windows of the checkpoint, or have begun to do so."""
    drained, begun = set[str](), set[str]()
    continued = {query.id for query in running}
    for query in recorded.queries if recorded is not None else ():
        if query.id not in continued:
            continue
        began, ended = last_batches(files, query.logs)
        path = f"{query.logs}/offsets/{max(began, ended)}"
        if path not in files.sizes:
            continue
        lines: Sequence[str] = files.read([path])[path].decode(errors="replace").splitlines()
        if any(map(has_ended, lines)):
            (begun if began > ended else drained).add(query.id)
    return Drained(drained=frozenset(drained), begun=frozenset(begun))


def refuse_drained(before: Drained, timed: Collection[str], checkpoint: str, *, drain: bool) -> None:
    """Raise RunError if the run cannot continue the checkpoint, because it was drained.

    ``timed`` are the queries that go by event time. A run that drains may continue if some of them are left.
    """
    if before.begun and not drain:
        raise RunError(
            f"checkpoint {checkpoint} is being drained: the last batch of {' and '.join(sorted(before.begun))} closes "
            "all windows, and has not ended",
            hint="run it with --drain, which finishes this batch",
        )
    if before.drained and not (drain and set(timed) - before.drained):
        raise RunError(
            f"checkpoint {checkpoint} was drained: all windows of {' and '.join(sorted(before.drained))} are closed, "
            "so all further rows would come too late",
            hint="start with a new checkpoint, which reads the sources from the beginning",
        )
