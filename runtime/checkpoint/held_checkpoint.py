"""The checkpoints that this process holds, each with what lets go of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hintplan.runtime.checkpoint.heartbeat import Heartbeat

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(slots=True, kw_only=True)
class RunLock:
    """A held checkpoint. ``in_use`` says whether the run still goes on, for runs whose end nobody waits for.

    ``beat`` renews its lease, where it has one.
    """

    name: str
    free: Callable[[], None]
    in_use: Callable[[], bool] = lambda: True
    beat: Heartbeat | None = None

    def stops(self, spark: SparkSession, queries: Iterable[Any]) -> None:
        """See that ``queries`` stop when the checkpoint is not held any more."""
        if self.beat is not None:
            self.beat.stops(spark, queries)

    @property
    def in_force(self) -> bool:
        """Whether nobody else can hold the checkpoint."""
        return self.beat is None or self.beat.lease.in_force

    def require(self) -> None:
        """RunError if the checkpoint is not held any more."""
        if self.beat is not None and not self.beat.lease.in_force:
            raise self.beat.lease.lost()

    def release(self) -> None:
        """Let the next run begin; again is fine."""
        if _held.get(self.name) is self:
            del _held[self.name]
            self.free()


_held: dict[str, RunLock] = {}
"""What this process holds, by the name of the lock file."""


def hold(lock: RunLock) -> RunLock:
    """Note that this process holds ``lock``."""
    _held[lock.name] = lock
    return lock


def forget_ended(name: str) -> None:
    """Let go of what a run of this process holds under ``name`` that has ended."""
    held = _held.get(name)
    if held is not None and not held.in_use():
        held.release()
