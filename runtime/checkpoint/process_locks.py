"""The checkpoints that this process holds, each with a function to release it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hintplan.runtime.checkpoint.heartbeat import Heartbeat

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


@dataclass(slots=True, kw_only=True)
class RunLock:
    """A held checkpoint.

    ``in_use`` returns whether the run is still active, because a run may end without anybody waiting for it. ``beat``
    renews the lease, if there is one.
    """

    name: str
    free: Callable[[], None]
    in_use: Callable[[], bool] = lambda: True
    beat: Heartbeat | None = None

    def stops(self, spark: SparkSession, queries: Iterable[StreamingQuery]) -> None:
        """Stop ``queries`` when the checkpoint is no longer held."""
        if self.beat is not None:
            self.beat.stops(spark, queries)

    @property
    def in_force(self) -> bool:
        """True if no other run can hold the checkpoint."""
        return self.beat is None or self.beat.lease.in_force

    def require(self) -> None:
        """Raise RunError if the checkpoint is no longer held."""
        if self.beat is not None and not self.beat.lease.in_force:
            raise self.beat.lease.lost()

    def release(self) -> None:
        """Release the checkpoint for the next run. Repeated calls have no effect."""
        if _held.get(self.name) is self:
            del _held[self.name]
            self.free()


_held: dict[str, RunLock] = {}
"""The locks of this process, by the name of the lock file."""


def hold(lock: RunLock) -> RunLock:
    """Register that this process holds ``lock``, and return it."""
    _held[lock.name] = lock
    return lock


def forget_ended(name: str) -> None:
    """Release the checkpoint that this process holds under ``name``, if its run has ended."""
    held = _held.get(name)
    if held is not None and not held.in_use():
        held.release()
