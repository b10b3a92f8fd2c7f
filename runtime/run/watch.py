"""Watches the batches in progress of a run: reports their progress, and detects a batch that seems to be stuck."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hintplan.runtime.progress import BatchProgress
from hintplan.runtime.run.patience import Patience
from hintplan.runtime.running import RunningBatch, StuckBatch
from hintplan.runtime.spark.batch_stages import Contents, stages_of

if TYPE_CHECKING:
    from hintplan.runtime.run.execution import Execution

_LOOK_SECONDS = 1.0


@dataclass(slots=True)
class Watch:
    """Watches an :class:`hintplan.runtime.run.execution.Execution`.

    ``pace`` is the time between two reports on a batch, in seconds.
    """

    execution: Execution
    pace: float
    _patience: dict[str, Patience] = field(default_factory=dict)
    _contents: dict[tuple[str, int], Contents] = field(default_factory=dict)
    _due: float = 0.0

    def ended(self, batch: BatchProgress) -> None:
        """Record the end of a batch."""
        for name in self.execution.queries:
            if self._sinks(name)[0] == batch.sink:
                self._of(name).took(batch.duration_ms)

    def news(self, now: float) -> Iterator[RunningBatch | StuckBatch]:
        """Yield the reports that are due at ``now``, in seconds. For a stuck batch, its progress comes first."""
        if now < self._due:
            return
        self._due = now + _LOOK_SECONDS
        for name, query in self.execution.queries.items():
            patience = self._of(name)
            at_work = self.execution.at_work(name)
            ended = -1 if at_work.ended is None else at_work.ended
            running = patience.due(now, working=at_work.working, ended=ended)
            if running is None:
                continue
            if (name, ended) not in self._contents:
                self._contents = {key: stages for key, stages in self._contents.items() if key[0] != name}
            stages = stages_of(query, ended, self._contents.setdefault((name, ended), {}))
            batch = RunningBatch(
                sinks=self._sinks(name),
                batch=_following(at_work.ended) if stages is None or stages.batch is None else stages.batch,
                running_ms=int(running * 1000),
                stages=None if stages is None else stages.stages,
                last_failure=None if stages is None else stages.last_failure,
                page=None if stages is None else stages.page,
            )
            if self.execution.followed is not None:
                self.execution.followed.working(name, batch)
            yield batch
            quiet = patience.quiet(now, batch.done)
            if patience.stuck(running, quiet):
                quiet_ms = None if quiet is None else int(quiet * 1000)
                yield StuckBatch(batch=batch, usual_ms=patience.usual_ms, quiet_ms=quiet_ms)

    def _of(self, name: str) -> Patience:
        return self._patience.setdefault(name, Patience(pace=self.pace))

    def _sinks(self, name: str) -> tuple[str, ...]:
        return tuple(self.execution.sinks.get(name, (name,)))


def _following(ended: int | None) -> int | None:
    return None if ended is None else ended + 1
